//! The groups of MPI that a thread makes, where it is known who is in them.
//!
//! *Guarantees*: a group that is known has exactly these members. *Not seen*: groups of ranges, unions and the like,
//! those of windows and files. *Costs*: memory for the groups that are there.

use crate::message::{CommunicatorId, Membership};
use lockstep_trace::mpi::Kind;
use lockstep_trace::{Resolved, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Those of a communicator, or some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiGroup {
    /// Of which communicator.
    pub of: CommunicatorId,
    /// Their ranks in it, by rank in the group; `None` is all.
    pub ranks: Option<Arc<[i64]>>,
}

impl MpiGroup {
    /// The tasks in it.
    #[must_use]
    pub fn tasks(&self, members: &Membership) -> Option<Vec<u32>> {
        if members.sides.contains_key(&self.of) {
            return None;
        }
        let all = members.members(self.of)?;
        let Some(ranks) = &self.ranks else {
            return Some(all.to_vec());
        };
        let task = |rank: &i64| all.get(usize::try_from(*rank).ok()?).copied();
        ranks.iter().map(task).collect()
    }
}

/// Those that are known, by their handles.
#[derive(Debug, Clone, Default)]
pub(crate) struct MpiGroups {
    known: FxHashMap<i64, MpiGroup>,
}

impl MpiGroups {
    /// The one that a call names.
    pub fn named(&self, event: &Resolved) -> Option<MpiGroup> {
        self.known.get(&event.handle("group")?.raw).cloned()
    }

    /// What a call will make, by its name without `MPI_`.
    pub fn recipe(&self, base: &str, event: &Resolved) -> Option<MpiGroup> {
        match base {
            "Comm_group" => Some(MpiGroup {
                of: event.communicator()?,
                ranks: None,
            }),
            "Group_incl" => {
                let MpiGroup { of, ranks } = self.named(event)?;
                let Some((Value::Numbers(count, chosen), _)) = event.get("ranks") else {
                    return None;
                };
                let is_whole = usize::try_from(*count) == Ok(chosen.len());
                let rank = |it: &i64| match &ranks {
                    Some(ranks) => ranks.get(usize::try_from(*it).ok()?).copied(),
                    None => Some(*it),
                };
                let ranks: Option<Arc<[i64]>> = chosen.iter().map(rank).collect();
                is_whole.then_some(MpiGroup {
                    of,
                    ranks: Some(ranks?),
                })
            }
            _ => None,
        }
    }

    /// A call made groups, or this one.
    pub fn made(&mut self, group: Option<MpiGroup>, event: &Resolved) {
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        for argument in arguments {
            if let (Kind::NewGroup, Value::Handle(handle)) = (argument.kind, &argument.value) {
                self.known.remove(&handle.raw);
                if let Some(group) = &group {
                    self.known.insert(handle.raw, group.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Why;
    use crate::message::{PartKind, Step};
    use crate::message_tests::{Job, resolved};
    use lockstep_trace::{Argument, Handle};

    fn group(kind: Kind, name: &'static str, raw: i64) -> Argument {
        let value = Value::Handle(Handle { raw, name: None });
        Argument { name, kind, value }
    }

    #[test]
    fn some_of_some() {
        let mut it = MpiGroups::default();
        let all = MpiGroup {
            of: CommunicatorId(0),
            ranks: None,
        };
        it.made(
            Some(all),
            &resolved(vec![group(Kind::NewGroup, "group", 1)]),
        );
        let mut include = |of: i64, count: i64, ranks: &[i64], made: i64| {
            let ranks = Argument {
                name: "ranks",
                kind: Kind::Ints,
                value: Value::Numbers(count, ranks.into()),
            };
            let call = resolved(vec![group(Kind::Group, "group", of), ranks]);
            let recipe = it.recipe("Group_incl", &call);
            it.made(
                recipe.clone(),
                &resolved(vec![group(Kind::NewGroup, "newgroup", made)]),
            );
            recipe.and_then(|it| it.ranks).map(|it| it.to_vec())
        };
        assert_eq!(include(1, 3, &[5, 3, 1], 2), Some(vec![5, 3, 1]));
        assert_eq!(include(2, 2, &[2, 0], 3), Some(vec![1, 5]));
        // Of no such rank, of a group that is not known, and not all of them recorded.
        assert_eq!(include(2, 1, &[3], 3), None);
        assert_eq!(include(3, 1, &[0], 4), None);
        assert_eq!(include(1, 9, &[0], 4), None);
    }

    /// A step of an epoch on a window, for these.
    fn step(step: Step, ranks: Option<&[i64]>) -> Vec<PartKind> {
        vec![PartKind::Epoch {
            window: CommunicatorId(0),
            step,
            group: ranks.map(|ranks| MpiGroup {
                of: CommunicatorId(0),
                ranks: Some(ranks.into()),
            }),
        }]
    }

    #[test]
    fn who_never_posts_is_waited_for() {
        let waits = |posts: &[u32]| {
            let mut job = Job::default();
            job.call(0, "MPI_Win_start", step(Step::Start, Some(&[1, 2])), true)
                .call(0, "MPI_Win_complete", step(Step::Complete, None), false);
            for task in [1, 2] {
                job.call(task, "MPI_Barrier", vec![], true);
            }
            for &task in posts {
                job.call(task, "MPI_Win_post", step(Step::Post, Some(&[0])), true);
            }
            let waits = job.waiting().waits;
            let told = waits.into_iter().map(|it| (it.from, it.to, it.why));
            told.collect::<Vec<_>>()
        };
        let post = |of| (0, of, Why::Epoch("MPI_Win_post"));
        assert_eq!(waits(&[1]), [post(2)]);
        assert_eq!(waits(&[]), [post(1), post(2)]);
        assert_eq!(waits(&[1, 2]), []);
    }

    #[test]
    fn who_was_let_in_is_waited_for() {
        let mut job = Job::default();
        job.call(0, "MPI_Win_start", step(Step::Start, Some(&[1])), false)
            .call(1, "MPI_Win_post", step(Step::Post, Some(&[0])), true)
            .call(1, "MPI_Win_wait", step(Step::Wait, None), false)
            .call(2, "MPI_Win_start", step(Step::Start, Some(&[3])), true)
            .call(2, "MPI_Win_complete", step(Step::Complete, None), true);
        let waits = job.waiting().waits;
        let told: Vec<_> = waits.iter().map(|it| (it.from, it.to)).collect();
        assert_eq!(told, [(1, 0)]);
    }
}
