//! Who stands elsewhere than most of those that wait for each other.

use crate::cause::{Cause, Deed, Part};
use crate::task::{Group, Place};
use crate::waits::{MOST_SHOWN, Waiting, Why, waits_of};
use lockstep_comm::{CommunicatorId, is_named_so};
use lockstep_diagnosis::{Hypothesis, Kind};
use lockstep_trace::{SourceLine, c_name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Where tasks wait: the functions that they are in, outermost first, and of a collective operation the communicator.
type Side<'a> = (Vec<&'a str>, Option<CommunicatorId>);

/// Of tasks that wait for each other, those few in a collective operation to which none of most came, which are elsewhere
/// together: they are outnumbered. A message is no matter of votes, since its sender and its receiver differ; all call a
/// collective operation.
pub(crate) fn outnumbered(groups: &[Group], waiting: &Waiting) -> Vec<Cause> {
    let cores = waiting.cores.iter();
    cores
        .flat_map(|core| of_core(groups, waiting, core))
        .collect()
}

fn of_core(groups: &[Group], waiting: &Waiting, core: &[u32]) -> Vec<Cause> {
    let core: BTreeSet<u32> = core.iter().copied().collect();
    let mut sides: BTreeMap<Side<'_>, (&Group, BTreeSet<u32>)> = BTreeMap::new();
    for group in groups {
        let path: Vec<&str> = group.stack.iter().map(|it| it.function.as_str()).collect();
        for task in group.tasks.iter().filter(|it| core.contains(it)) {
            let side = (path.clone(), met(waiting, *task));
            let (_, tasks) = sides.entry(side).or_insert((group, BTreeSet::new()));
            tasks.insert(*task);
        }
    }
    let Some((most, many)) = sides.into_values().max_by_key(|it| it.1.len()) else {
        return Vec::new();
    };
    let few: Vec<u32> = core.difference(&many).copied().collect();
    let alone = |task: &u32| {
        let awaited = waits_of(waiting, *task).filter(|it| many.contains(&it.to));
        met(waiting, *task).is_some() && awaited.count() >= many.len().min(MOST_SHOWN)
    };
    if many.len() <= few.len() || !few.iter().all(alone) {
        return Vec::new();
    }
    let cause = |task: u32| {
        let group = groups.iter().find(|it| it.tasks.contains(&task))?;
        let ((name, line), (usual, usual_line)) = (called(group)?, called(most)?);
        let part = |name: &Arc<str>, line, is_apart| Part::CalledAt {
            name: name.clone(),
            line,
            is_apart,
        };
        let is_apart = (&name, &line) == (&usual, &usual_line);
        let deed = Deed::Differed {
            did: part(&name, line, is_apart),
            most: part(&usual, usual_line, false),
            instead_of: Some(usual).filter(|it| *it != name),
            name,
            by_normal: false,
            stops: false,
        };
        Some(Cause {
            victims: many.iter().copied().collect(),
            hypothesis: Hypothesis::new(task, Kind::Outvoted),
            ..Cause::of(task, deed)
        })
    };
    few.into_iter().filter_map(cause).collect()
}

/// The communicator of the only operation in which a task waits, where that is a collective one.
fn met(waiting: &Waiting, task: u32) -> Option<CommunicatorId> {
    let each = waits_of(waiting, task).map(|it| match it.why {
        Why::Collective(_, communicator) => Some(communicator),
        _ => None,
    });
    let all: Option<BTreeSet<CommunicatorId>> = each.collect();
    all.filter(|it| it.len() == 1)?.pop_first()
}

/// The function of MPI that tasks are in, and where they called it.
fn called(group: &Group) -> Option<(Arc<str>, Option<SourceLine>)> {
    let is_mpi = |it: &&Place| is_named_so(&it.function);
    let frame = group.stack.iter().find(is_mpi)?;
    let name = c_name(&frame.function);
    Some((name.as_ref().into(), frame.called_at.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Asked, Job, collective, receive};
    use crate::task::Activity;
    use lockstep_comm::Peer;

    /// Who is told of tasks that wait in these calls: in a collective operation, or for a message of a task. With what it called, and
    /// what most did.
    fn told(calls: &[(&str, Option<u32>)]) -> Vec<(u32, Vec<String>)> {
        let mut job = Job::default();
        let mut groups = Vec::new();
        for (task, (name, from)) in (0..).zip(calls) {
            let part = match from {
                Some(from) => receive(Peer::Task(*from), Some(1)),
                None => collective(name, None),
            };
            job.call(task, name, vec![part], false);
            let place = |function: &str, imported| Place {
                function: function.to_owned(),
                imported,
                called_at: None,
            };
            groups.push(Group {
                tasks: vec![task],
                stack: vec![place("main", false), place(name, true)].into(),
                leaf: None,
                loops: Vec::new(),
                turns: Vec::new(),
                activity: Activity::Communication,
            });
        }
        let found = outnumbered(&groups, &job.waiting()).into_iter();
        let functions = |it: &Cause| it.functions().into_iter().map(str::to_owned).collect();
        found.map(|it| (it.task, functions(&it))).collect()
    }

    const MEETS: (&str, Option<u32>) = ("MPI_Barrier", None);

    fn receives(from: u32) -> (&'static str, Option<u32>) {
        ("MPI_Recv", Some(from))
    }

    #[test]
    fn who_meets_alone_while_most_receive() {
        let names = ["MPI_Barrier", "MPI_Recv"].map(str::to_owned);
        let one = [(1, names.to_vec())];
        assert_eq!(told(&[receives(3), MEETS, receives(1), receives(2)]), one);
    }

    #[test]
    fn as_many_on_each_side_are_equals() {
        assert!(told(&[MEETS, receives(0)]).is_empty());
        assert!(told(&[MEETS, MEETS, receives(0), receives(1)]).is_empty());
    }

    #[test]
    fn who_receives_alone_may_wait_for_one_of_the_others() {
        assert!(told(&[MEETS, MEETS, receives(0), MEETS]).is_empty());
    }
}
