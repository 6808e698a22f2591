//! Who made the others wait by doing something else: tasks that left work out are ahead, and whoever waits
//! for them is their victim; so is whoever waits for a message that went astray, or for a task that went past a
//! collective operation.

use crate::astray::Misdirection;
use crate::cause::{Alike, Cause, Deed, Part};
use crate::departure::{departure, unlike_before};
use crate::exchange::left_out_of_exchange;
use crate::gap::{Gap, gap};
use crate::group::Order;
use crate::habit::{Habits, Missed};
use crate::lapse::Rounds;
use crate::observe::Observed;
use crate::omission::{self, Omission, Wanted, omission};
use crate::past::passed;
use crate::precedent::precedents;
use crate::strays::awaited;
use crate::task::Group;
use crate::waits::{Wait, Waiting, Why};
use lockstep_calltree::NodeId;
use lockstep_check::Aspect;
use lockstep_comm::{Conversation, Envelope, PartId};
use lockstep_diagnosis::{Disagreement, Right, origin};
use lockstep_trace::{TraceName, c_name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Tasks that departed from what is usual. `normal` holds the same tasks of a normal run; `wrong` are those who are wrong by it in
/// an operation that cannot complete.
pub(crate) fn causes(
    observed: &Observed,
    normal: Option<&BTreeMap<u32, NodeId>>,
    waiting: &Waiting,
    wrong: &BTreeSet<u32>,
) -> Vec<Cause> {
    let mut victims = victims(waiting);
    within(observed, waiting, &mut victims);
    let found = match normal {
        Some(normal) => unlike_normal(observed, normal, waiting),
        None => unlike_usual(observed, waiting),
    };
    let cause = |(task, deed): (u32, Deed)| Cause {
        task,
        victims: victims.get(&task).into_iter().flatten().copied().collect(),
        alike: earlier(observed, task, &deed, waiting).unwrap_or_default(),
        ..Cause::of(task, deed)
    };
    let is_here = |it: &Cause| it.by_normal() || !goes_elsewhere(observed, it, waiting);
    let mut left = omission::ALL;
    let or_omitted = |it: Cause| match is_here(&it) {
        true => Some(it),
        false => Some(cause((
            it.task,
            Deed::Omitted(omitted(observed, it.task, waiting, &mut left)?),
        ))),
    };
    let found = found.into_iter().map(cause);
    let mut found: Vec<Cause> = found.filter_map(or_omitted).collect();
    // Where most differ, the runs do not belong together, or the program never does the same twice; but for those who are wrong
    // in an operation that the others do as in the normal run, or left out what somebody waits for.
    if found.len() * 2 > observed.tasks.len() {
        let is_owed = |it: &Cause| wrong.contains(&it.task) || owes(it, waiting);
        found.retain(|it| it.by_normal() && is_owed(it));
    }
    // A process that started the others has no part in what its threads wait for.
    if !observed.is_mpi && !waiting.stuck.is_empty() {
        found.retain(|it| !it.victims.is_empty() || waiting.stuck.contains(&it.task));
    }
    if found.iter().any(|it| !it.victims.is_empty()) {
        found.retain(|it| !it.victims.is_empty() || wrong.contains(&it.task));
    }
    found
}

/// Whether a message that a task left out would have gone to another than those who wait for one of it, as all such messages
/// went before: that it was left out has its reason, then.
fn goes_elsewhere(observed: &Observed, cause: &Cause, waiting: &Waiting) -> bool {
    let Some(conversation) = observed.conversations.get(&cause.task) else {
        return false;
    };
    // To whom it did not go is known.
    if matches!(cause.deed, Deed::Omitted(_)) {
        return false;
    }
    let along = &cause.alike.along;
    let is_along = |operation| {
        let call = conversation.call(operation);
        call.is_some_and(|it| along.contains(&it))
    };
    let parts = conversation.parts.iter();
    let sent = parts.filter_map(|it| Some((it.operation, it.kind.envelope()?.to)));
    let receivers: BTreeSet<u32> = sent.filter(|it| is_along(it.0)).map(|it| it.1).collect();
    let wanted = waiting.waits.iter().filter(|it| it.to == cause.task);
    let wanted = wanted.filter(|it| matches!(it.why, Why::Message(_) | Why::OtherTag(..)));
    let mut wanted = wanted.map(|it| it.from).peekable();
    match receivers.first() {
        Some(only) if receivers.len() == 1 => {
            wanted.peek().is_some() && wanted.all(|it| it != *only)
        }
        _ => false,
    }
}

/// Earlier calls of the task like the one that it left out.
fn earlier(observed: &Observed, task: u32, deed: &Deed, waiting: &Waiting) -> Option<Alike> {
    let beside = match deed {
        Deed::Skipped(gap) => gap.operations.as_slice(),
        Deed::Omitted(omission) => omission.operation.as_slice(),
        _ => &[],
    };
    if !beside.is_empty() {
        let conversation = observed.conversations.get(&task)?;
        let beside = beside.iter();
        return Some(Alike {
            along: beside.filter_map(|it| conversation.call(*it)).collect(),
            sent: Vec::new(),
        });
    }
    let path: Vec<&str> = match deed {
        Deed::Departed { departure, .. } => {
            let frames = departure.frames.iter().map(|it| it.0.as_str());
            let missing = departure
                .left_out
                .first()
                .filter(|_| departure.instead.is_empty());
            frames.chain(Some(missing?.as_str())).collect()
        }
        Deed::Lapsed(lapse) => lapse.path.iter().map(String::as_str).collect(),
        _ => return None,
    };
    let at = observed.tasks.keys().position(|it| *it == task)?;
    let trace = observed.tasks.get(&task)?.trace;
    let events = precedents(&observed.forest, *observed.roots.get(at)?, &path);
    Some(Alike {
        along: events.into_iter().map(|event| (trace, event)).collect(),
        sent: sent_alike(observed, task, c_name(path.last()?).as_ref(), waiting),
    })
}

/// The last calls of this function by which a task sent messages such as others wait for.
fn sent_alike(
    observed: &Observed,
    task: u32,
    name: &str,
    waiting: &Waiting,
) -> Vec<(TraceName, u64)> {
    let Some(conversation) = observed.conversations.get(&task) else {
        return Vec::new();
    };
    let wanted = waiting.waits.iter().filter(|it| it.to == task);
    let wanted = wanted.filter_map(|it| match it.why {
        Why::Message(Some(tag)) | Why::OtherTag(tag, _) => Some(Envelope {
            to: it.from,
            tag,
            communicator: it.communicator?,
        }),
        _ => None,
    });
    let wanted: BTreeSet<Envelope> = wanted.collect();
    let parts = conversation.parts.iter().rev();
    let parts = parts.filter(|it| it.kind.envelope().is_some_and(|it| wanted.contains(&it)));
    let calls = parts.filter_map(|it| {
        let is_it = c_name(&conversation.operations.get(it.operation)?.name) == name;
        is_it.then(|| conversation.call(it.operation)).flatten()
    });
    calls.take(MOST_ALIKE).collect()
}

/// So many calls that sent what is waited for are looked at.
const MOST_ALIKE: usize = 64;

/// Tasks that did otherwise than in a normal run. Where messages are taken as they come, how many rounds each of several tasks
/// makes is decided anew in each run: who did otherwise then did so within its rounds, as its own habits tell.
fn unlike_normal(
    observed: &Observed,
    normal: &BTreeMap<u32, NodeId>,
    waiting: &Waiting,
) -> Vec<(u32, Deed)> {
    let mut found = departed(observed, normal);
    let only_rounds =
        |it: &(u32, Deed)| matches!(&it.1, Deed::Departed { departure, .. } if departure.rounds);
    let mut conversations = observed.conversations.values();
    let wavers = found.len() > 1 && found.iter().any(only_rounds);
    if wavers && conversations.any(Conversation::takes_from_anybody) {
        let usual = unlike_usual(observed, waiting);
        found.retain(|it| !only_rounds(it) && usual.iter().all(|other| it.0 != other.0));
        found.extend(usual);
        found.sort_by_key(|it| it.0);
    }
    found
}

/// Where tasks departed from what they did in a normal run.
fn departed(observed: &Observed, normal: &BTreeMap<u32, NodeId>) -> Vec<(u32, Deed)> {
    let tasks = observed.tasks.keys().zip(&observed.roots);
    let departed = tasks.filter_map(|(task, root)| {
        let departure = departure(&observed.forest, *normal.get(task)?, *root)?;
        // How a container grows follows from data.
        if departure.is_of_a_library() {
            return None;
        }
        let by_normal = true;
        Some((
            *task,
            Deed::Departed {
                departure,
                by_normal,
            },
        ))
    });
    departed.collect()
}

/// Tasks that others wait for, and that did otherwise than they used to, or than others do.
fn unlike_usual(observed: &Observed, waiting: &Waiting) -> Vec<(u32, Deed)> {
    let mut awaited: BTreeMap<u32, Missed> = BTreeMap::new();
    for wait in &waiting.waits {
        let missed = awaited.entry(wait.to).or_default();
        match &wait.why {
            Why::Message(_) | Why::OtherTag(..) => missed.message = true,
            Why::Collective(name, _) => {
                missed.collectives.insert(name.clone());
            }
            _ => {}
        }
    }
    let (forest, roots) = (&observed.forest, &observed.roots);
    let mut rounds = Rounds::new(forest, roots);
    let mut habits: Option<Option<Habits<'_>>> = None;
    let mut left = omission::ALL;
    let mut found = Vec::new();
    // Those for whom all wait in the end come first, as there is a limit to what is looked at.
    let core: BTreeSet<u32> = waiting.cores.iter().flatten().copied().collect();
    let mut tasks: Vec<(usize, &u32)> = observed.tasks.keys().enumerate().collect();
    tasks.sort_by_key(|(_, task)| !core.contains(task));
    for (at, task) in tasks {
        let Some(missed) = awaited.get(task) else {
            continue;
        };
        let mut exception = || {
            let habits = habits.get_or_insert_with(|| Habits::new(forest, roots));
            habits.as_ref()?.exception(roots[at], missed)
        };
        let own = || Habits::own_exception(forest, roots, at, missed);
        let departed = unlike_before(forest, roots[at])
            .or_else(&mut exception)
            .or_else(own);
        let by_normal = false;
        let departed = departed.map(|departure| Deed::Departed {
            departure,
            by_normal,
        });
        let lapsed = || rounds.lapse(at, missed).map(Deed::Lapsed);
        let skipped = || skipped(observed, *task, waiting).map(Deed::Skipped);
        // One call that is missing is as good an answer as a message; another way that it went is not.
        let is_vague = |it: &Deed| matches!(it, Deed::Departed { departure, .. } if departure.only().is_none());
        let (clear, vague) = match departed {
            Some(it) if is_vague(&it) => (None, Some(it)),
            departed => (departed, None),
        };
        let exchanged = |left: &mut usize| exchanged(observed, *task, waiting, left);
        let omitted = |left: &mut usize| omitted(observed, *task, waiting, left);
        let deed = clear.or_else(|| exchanged(&mut left).map(Deed::Omitted));
        let deed = match vague {
            Some(it) => deed
                .or_else(|| omitted(&mut left).map(Deed::Omitted))
                .or(Some(it)),
            None => deed
                .or_else(lapsed)
                .or_else(skipped)
                .or_else(|| omitted(&mut left).map(Deed::Omitted)),
        };
        found.extend(deed.map(|it| (*task, it)));
    }
    found
}

/// Whom a task left out of those to whom it sent, where nobody else waits for a message of it.
fn skipped(observed: &Observed, task: u32, waiting: &Waiting) -> Option<Gap> {
    let said = observed.conversations.get(&task)?;
    let waits = waiting.waits.iter().filter(|it| it.to == task);
    let mut waits = waits.filter_map(awaited);
    match (waits.next()?, waits.next()) {
        (it, None) if !it.or_another => gap(said, it.by, it.tag, it.communicator),
        _ => None,
    }
}

/// The message that a task left out, of those for which others wait.
fn omitted(
    observed: &Observed,
    task: u32,
    waiting: &Waiting,
    left: &mut usize,
) -> Option<Omission> {
    let missed = missed_of(task, waiting, |it| matches!(it.why, Why::Message(_)));
    match missed.is_empty() {
        true => None,
        false => omission(observed.conversations.get(&task)?, &missed, left),
    }
}

/// The message that a task left out of an exchange; what it sent with another tag may be of the next one.
fn exchanged(
    observed: &Observed,
    task: u32,
    waiting: &Waiting,
    left: &mut usize,
) -> Option<Omission> {
    let missed = missed_of(task, waiting, Wait::is_for_message);
    left_out_of_exchange(&observed.conversations, task, &missed, left)
}

/// The messages of a task alone that others wait for.
fn missed_of(task: u32, waiting: &Waiting, is_it: impl Fn(&Wait) -> bool) -> Vec<Wanted> {
    let waits = waiting.waits.iter();
    let waits = waits.filter(|it| it.to == task && !it.or_another && is_it(it));
    let missed = waits.filter_map(|it| match it.why {
        Why::Message(tag) => Some((it.from, tag, it.communicator?)),
        Why::OtherTag(tag, _) => Some((it.from, Some(tag), it.communicator?)),
        _ => None,
    });
    missed.collect()
}

/// Who waits for each task, for it alone.
fn victims(waiting: &Waiting) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut victims: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|wait| !wait.or_another) {
        victims.entry(wait.to).or_default().insert(wait.from);
    }
    victims
}

/// Whether a task left out a collective operation for which others wait.
fn owes(cause: &Cause, waiting: &Waiting) -> bool {
    let Deed::Departed { departure, .. } = &cause.deed else {
        return false;
    };
    let mut waits = waiting.waits.iter().filter(|it| it.to == cause.task);
    waits.any(|it| match &it.why {
        Why::Collective(name, _) => departure.left_out.iter().any(|it| c_name(it) == **name),
        _ => false,
    })
}

/// Adds who waits for a thread of the same process, where each thread is a task.
fn within(observed: &Observed, waiting: &Waiting, victims: &mut BTreeMap<u32, BTreeSet<u32>>) {
    if observed.is_mpi {
        return;
    }
    let numbers = observed.tasks.values().map(|it| (it.trace, it.number));
    let numbers: BTreeMap<TraceName, u32> = numbers.collect();
    for wait in &waiting.inside {
        for to in wait.to.iter().filter_map(|it| numbers.get(it)) {
            victims.entry(*to).or_default().insert(wait.task);
        }
    }
}

/// Messages that went astray, and tasks that are past a collective operation in which others wait for them.
pub(crate) fn deeds(
    astray: Vec<Misdirection>,
    groups: &[Group],
    order: &Order,
    waiting: &Waiting,
    conversations: &BTreeMap<u32, Conversation>,
) -> Vec<Cause> {
    let astray = astray.into_iter();
    let astray = astray.map(|it| (it.task(), Deed::Misdirected(it)));
    let passed = passed(groups, order, waiting, conversations).into_iter();
    let deeds = astray.chain(passed.map(|(task, name)| (task, Deed::Passed(name))));
    let victims = victims(waiting);
    let victims_of = |task| victims.get(&task).into_iter().flatten().copied().collect();
    let cause = |(task, deed)| Cause {
        victims: victims_of(task),
        ..Cause::of(task, deed)
    };
    deeds.map(cause).collect()
}

/// The few who call another collective operation than most, or with another root or size, where it cannot complete so; none
/// where they are as many as the others.
pub(crate) fn differed(
    disagreements: &[Disagreement],
    conversations: &BTreeMap<u32, Conversation>,
    waiting: &Waiting,
) -> Vec<Cause> {
    let prevents = disagreements.iter().find(|it| it.mismatch.prevents());
    let first = prevents.map(|it| origin(disagreements, it));
    first.map_or(Vec::new(), |it| wrong(it, conversations, waiting, true))
}

/// Those for whom others wait, where the first collective operation that did not fit took something else from them: what they
/// went on with was wrong.
pub(crate) fn misled(
    disagreements: &[Disagreement],
    conversations: &BTreeMap<u32, Conversation>,
    waiting: &Waiting,
) -> Vec<Cause> {
    let first = disagreements.first();
    let wrong = |it| wrong(it, conversations, waiting, false);
    let mut found = first.map_or(Vec::new(), wrong);
    found.retain(|it| !it.victims.is_empty());
    found
}

/// Those who are wrong in a disagreement.
fn wrong(
    disagreement: &Disagreement,
    conversations: &BTreeMap<u32, Conversation>,
    waiting: &Waiting,
    stops: bool,
) -> Vec<Cause> {
    let (mismatch, wrong) = (&disagreement.mismatch, disagreement.wrong());
    let Some((most, right)) = mismatch.sides.first().filter(|_| !wrong.is_empty()) else {
        return Vec::new();
    };
    let name = |id: &PartId| -> Option<Arc<str>> {
        let conversation = conversations.get(&id.task)?;
        let operation = conversation.parts.get(id.part)?.operation;
        Some(conversation.operations.get(operation)?.name.clone())
    };
    let usual = right.first().and_then(name);
    let way = |side: usize| match (&usual, disagreement.callers.get(side)) {
        (Some(name), Some(callers)) => Part::CalledFrom(name.clone(), callers.clone()),
        _ => Part::OtherWay,
    };
    let part = |said: &str, side: usize| match mismatch.aspect {
        Aspect::Function => Part::Called(said.to_owned()),
        Aspect::Root => Part::Root(said.to_owned()),
        Aspect::Reduction | Aspect::Size | Aspect::Terms => Part::Had(said.to_owned()),
        Aspect::Way => way(side),
    };
    let own = |said: &str, side: usize| match (mismatch.aspect, &usual) {
        (Aspect::Reduction, Some(name)) => Part::CalledWith(name.clone(), said.to_owned()),
        _ => part(said, side),
    };
    let victims = victims(waiting);
    let each = (1..)
        .zip(wrong)
        .flat_map(|(side, (said, who))| who.iter().map(move |it| (said, it, side)));
    let cause = |(said, id, side): (&String, &PartId, usize)| {
        let name = name(id)?;
        let victims = victims.get(&id.task).into_iter().flatten();
        let deed = Deed::Differed {
            instead_of: usual.clone().filter(|it| *it != name),
            name,
            did: own(said, side),
            most: part(most, 0),
            by_normal: disagreement.right == Right::Normal,
            stops,
        };
        Some(Cause {
            victims: victims.copied().collect(),
            ..Cause::of(id.task, deed)
        })
    };
    let mut causes: Vec<Cause> = each.filter_map(cause).collect();
    causes.sort_by_key(|it| it.task);
    causes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Asked, Job, collective, receive};
    use lockstep_check::mismatches;
    use lockstep_comm::Matching;
    use lockstep_comm::{PartKind, Peer};

    /// All reduce, rank 1 by another operation; then the last waits for a message of one of them.
    fn reduced(awaited: u32) -> Vec<(u32, Deed)> {
        let mut job = Job::default();
        for task in 0..4 {
            let mut kind = collective("MPI_Allreduce", None);
            if let PartKind::Collective(it) = &mut kind {
                let own = if task == 1 { "MPI_MIN" } else { "MPI_SUM" };
                it.reduction = Some(own.into());
            }
            job.call(task, "MPI_Allreduce", vec![kind], true);
        }
        let wanted = receive(Peer::Task(awaited), Some(4));
        job.call(3, "MPI_Recv", vec![wanted], false);
        let matching = Matching::new(&job.0);
        let all = mismatches(&job.0, &job.members(), &matching).into_iter();
        let all: Vec<Disagreement> = all.map(Disagreement::from).collect();
        assert!(differed(&all, &job.0, &job.waiting()).is_empty());
        let found = misled(&all, &job.0, &job.waiting());
        found.into_iter().map(|it| (it.task, it.deed)).collect()
    }

    #[test]
    fn who_reduced_otherwise_and_is_waited_for() {
        let deed = Deed::Differed {
            name: "MPI_Allreduce".into(),
            instead_of: None,
            did: Part::CalledWith("MPI_Allreduce".into(), "MPI_MIN".to_owned()),
            most: Part::Had("MPI_SUM".to_owned()),
            by_normal: false,
            stops: false,
        };
        assert_eq!(reduced(1), [(1, deed)]);
        assert!(reduced(2).is_empty());
    }
}
