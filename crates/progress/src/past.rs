//! Who is past the place where others wait for it: it went on without a message that they wait for, or without a collective
//! operation.
//!
//! *Guarantees*: none of who is wrong; it is the last thing that is asked, of tasks of a deadlock of which nothing else is known.
//! *Costs*: O(waits log tasks). *Not for*: tasks whose places nothing orders.

use crate::cause::{Cause, Deed};
use crate::group::Order;
use crate::task::Group;
use crate::waits::{Wait, Waiting, Why};
use lockstep_api::mpi::{self, Does};
use lockstep_comm::{CommunicatorId, Conversation, State};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether one task is behind another.
fn behind<'a>(groups: &[Group], order: &'a Order) -> impl Fn(u32, u32) -> bool + 'a {
    let mut group_of: FxHashMap<u32, usize> = FxHashMap::default();
    for (group, it) in groups.iter().enumerate() {
        group_of.extend(it.tasks.iter().map(|task| (*task, group)));
    }
    move |a: u32, b: u32| {
        let groups = group_of.get(&a).zip(group_of.get(&b));
        groups.is_some_and(|(a, b)| order.is_behind(*a, *b))
    }
}

/// Tasks of which several wait for a message that are behind, and that will not send any more: they came to their end, or wait
/// for all in a collective operation.
pub(crate) fn went_on(
    groups: &[Group],
    order: &Order,
    waiting: &Waiting,
    conversations: &BTreeMap<u32, Conversation>,
) -> Vec<Cause> {
    let is_behind = behind(groups, order);
    let is_over = |task: u32| {
        let conversation = conversations.get(&task);
        conversation.is_some_and(|it| it.state == State::Finished)
    };
    let (mut meet, mut receive) = (BTreeSet::new(), BTreeSet::new());
    for wait in &waiting.waits {
        match wait.why {
            Why::Collective(..) => meet.insert(wait.from),
            _ => receive.insert(wait.from),
        };
    }
    let meets = |task: u32| meet.contains(&task) && !receive.contains(&task);
    let mut found: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|it| !it.or_another) {
        let Wait { from, to, .. } = *wait;
        let is_past = is_over(to) || meets(to) && is_behind(from, to);
        if is_past && matches!(wait.why, Why::Message(_)) {
            found.entry(to).or_default().insert(from);
        }
    }
    found.retain(|_, victims| victims.len() > 1);
    let few = 2 * found.len() < conversations.len();
    let found = found.into_iter().filter(|_| few);
    let cause = |(task, victims): (u32, BTreeSet<u32>)| Cause {
        victims: victims.into_iter().collect(),
        ..Cause::of(task, Deed::WentOn)
    };
    found.map(cause).collect()
}

/// The only task for whose message somebody waits in an earlier iteration of a loop than it is in itself, or elsewhere behind
/// it, if it sent one such before: in lockstep, who is behind has been sent to. Each waits for the other, if by way of others;
/// else what both wait for is to blame.
pub(crate) fn went_ahead(
    groups: &[Group],
    order: &Order,
    waiting: &Waiting,
    conversations: &BTreeMap<u32, Conversation>,
) -> Option<Cause> {
    let mut loops_of: FxHashMap<u32, &[(String, u64)]> = FxHashMap::default();
    for group in groups {
        loops_of.extend(group.tasks.iter().map(|it| (*it, group.loops.as_slice())));
    }
    let is_behind = behind(groups, order);
    let is_ahead = |wait: &&Wait| {
        let loops = loops_of.get(&wait.to).zip(loops_of.get(&wait.from));
        let is_later = loops.is_some_and(|(ahead, behind)| is_later(ahead, behind));
        is_later || is_behind(wait.from, wait.to)
    };
    let sent_before = |wait: &&Wait| {
        let (Why::Message(tag), Some(said)) = (&wait.why, conversations.get(&wait.to)) else {
            return false;
        };
        let mut sent = said.all_sent();
        sent.any(|it| {
            let is_there = (it.to, Some(it.communicator)) == (wait.from, wait.communicator);
            is_there && tag.is_none_or(|tag| tag == it.tag)
        })
    };
    let mut core_of: FxHashMap<u32, usize> = FxHashMap::default();
    for (core, tasks) in waiting.cores.iter().enumerate() {
        core_of.extend(tasks.iter().map(|task| (*task, core)));
    }
    let are_one = |wait: &&Wait| {
        let cores = core_of.get(&wait.from).zip(core_of.get(&wait.to));
        cores.is_some_and(|(from, to)| from == to)
    };
    let mut found: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    let waits = waiting.waits.iter().filter(|it| !it.or_another);
    for it in waits.filter(are_one).filter(is_ahead).filter(sent_before) {
        found.entry(it.to).or_default().insert(it.from);
    }
    if found.len() > 1 {
        return None;
    }
    let (task, victims) = found.pop_first()?;
    Some(Cause {
        victims: victims.into_iter().collect(),
        ..Cause::of(task, Deed::WentOn)
    })
}

/// Whether of two tasks in the same loops the first is in a later iteration.
fn is_later(one: &[(String, u64)], other: &[(String, u64)]) -> bool {
    let mut both = one.iter().zip(other);
    let apart = both.find(|(one, other)| one != other);
    apart.is_some_and(|(one, other)| one.0 == other.0 && one.1 > other.1)
}

/// Tasks that are further in the program than others, which wait for them in a collective operation: where they are the
/// fewer, or made fewer such calls than anybody else, in whatever communicator. If they are not, those who wait made a call that
/// most do not make.
pub(crate) fn passed(
    groups: &[Group],
    order: &Order,
    waiting: &Waiting,
    conversations: &BTreeMap<u32, Conversation>,
) -> Vec<(u32, Arc<str>)> {
    let is_behind = behind(groups, order);
    // Of each operation who waits in it, and who is past it.
    type Sides = (BTreeSet<u32>, BTreeSet<u32>);
    let mut operations: BTreeMap<(&Arc<str>, CommunicatorId), Sides> = BTreeMap::new();
    for wait in waiting.waits.iter().filter(|wait| !wait.or_another) {
        if let Why::Collective(name, communicator) = &wait.why
            && is_behind(wait.from, wait.to)
        {
            let (behind, ahead) = operations.entry((name, *communicator)).or_default();
            behind.insert(wait.from);
            ahead.insert(wait.to);
        }
    }
    // Nothing comes behind the last call: whoever has yet to make it is not past it.
    operations.retain(|(name, _), _| mpi::meaning(name).does != Does::End);
    let times = |task: u32, name: &str| conversations.get(&task).map(|it| it.shares_of(name));
    let made_fewest = |ahead: &BTreeSet<u32>, name: &str| {
        let most = ahead.iter().filter_map(|it| times(*it, name)).max();
        let mut others = conversations.keys().filter(|it| !ahead.contains(it));
        others.all(|it| times(*it, name) > most)
    };
    let few = operations
        .into_iter()
        .filter(
            |((name, _), (behind, ahead))| match ahead.len().cmp(&behind.len()) {
                Ordering::Less => true,
                Ordering::Equal => made_fewest(ahead, name),
                Ordering::Greater => false,
            },
        );
    few.flat_map(|((name, _), (_, ahead))| ahead.into_iter().map(|task| (task, name.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_tests::{Asked, Job, collective, receive, send};
    use crate::task::Activity;
    use lockstep_comm::{Mode, PartKind, Peer};

    /// Rank 0 went past a loop in which the others wait for it, and came to its end or waits for all.
    fn went(state: State, kinds: Vec<PartKind>) -> Vec<(u32, Vec<u32>)> {
        let mut job = Job::default();
        job.call(0, "MPI_Reduce", kinds, state == State::Finished);
        let conversation = job.0.entry(0).or_default();
        conversation.state = state;
        for task in 1..4 {
            let wanted = receive(Peer::Task(0), Some(4));
            job.call(task, "MPI_Recv", vec![wanted], false);
        }
        let group = |tasks: Vec<u32>| Group {
            tasks,
            stack: Vec::new().into(),
            leaf: None,
            loops: Vec::new(),
            turns: Vec::new(),
            activity: Activity::Communication,
        };
        let groups = [group(vec![0]), group(vec![1, 2, 3])];
        let order = Order::pairs(vec![vec![false, false], vec![true, false]]);
        let found = went_on(&groups, &order, &job.waiting(), &job.0);
        found.into_iter().map(waited_for).collect()
    }

    /// Who went on, and who waits for it.
    fn waited_for(it: Cause) -> (u32, Vec<u32>) {
        assert_eq!(it.deed, Deed::WentOn);
        (it.task, it.victims)
    }

    #[test]
    fn who_went_on_where_others_wait_for_it() {
        let told = (0, vec![1, 2, 3]);
        let told = [told];
        assert_eq!(went(State::Finished, Vec::new()), told);
        let reduces = || vec![collective("MPI_Reduce", None)];
        assert_eq!(went(State::Waiting, reduces()), told);
        // It waits for a message itself.
        let waits = vec![receive(Peer::Task(1), Some(4))];
        assert!(went(State::Waiting, waits).is_empty());
    }

    /// Of a pipeline of ranks 0 to 3, who sent before, and the rounds in which they are; each but the first waits for the one
    /// before it, and that for the last. `first` says which of them is behind which in the same round.
    fn ahead(sent: bool, rounds: [u64; 4], first: &[(usize, usize)]) -> Option<(u32, Vec<u32>)> {
        ahead_of(pipeline(sent), rounds, first)
    }

    fn pipeline(sent: bool) -> Job {
        let mut job = Job::default();
        for task in 0..4 {
            let next = send((task + 1) % 4, 4, Mode::Standard);
            if sent {
                job.call(task, "MPI_Send", vec![next], true);
            }
            let wanted = receive(Peer::Task((task + 3) % 4), Some(4));
            job.call(task, "MPI_Recv", vec![wanted.clone()], true);
            job.call(task, "MPI_Recv", vec![wanted], false);
        }
        job
    }

    fn ahead_of(job: Job, rounds: [u64; 4], first: &[(usize, usize)]) -> Option<(u32, Vec<u32>)> {
        let group = |(task, round): (u32, u64)| Group {
            tasks: vec![task],
            stack: Vec::new().into(),
            leaf: None,
            loops: vec![("main/step".to_owned(), round)],
            turns: Vec::new(),
            activity: Activity::Communication,
        };
        let groups: Vec<Group> = (0..).zip(rounds).map(group).collect();
        let is_behind = |a| (0..4).map(|b| first.contains(&(a, b))).collect();
        let order = Order::pairs((0..4).map(is_behind).collect());
        let found = went_ahead(&groups, &order, &job.waiting(), &job.0);
        found.map(waited_for)
    }

    #[test]
    fn who_is_a_round_ahead_of_who_waits_for_it() {
        let told = |rank: u32, next: u32| (rank, vec![next]);
        assert_eq!(ahead(true, [9, 8, 8, 8], &[]), Some(told(0, 1)));
        assert_eq!(ahead(true, [9, 9, 8, 8], &[]), Some(told(1, 2)));
        assert_eq!(ahead(true, [8; 4], &[]), None);
        assert_eq!(ahead(true, [9, 8, 9, 8], &[]), None);
        assert_eq!(ahead(false, [9, 8, 8, 8], &[]), None);
        // In the same round, but further.
        assert_eq!(ahead(true, [8; 4], &[(3, 2)]), Some(told(2, 3)));
        assert_eq!(ahead(true, [8; 4], &[(3, 2), (1, 0)]), None);
        assert_eq!(ahead(true, [8; 4], &[(3, 1)]), None);
        // All wait for the one that ended.
        let mut job = pipeline(true);
        job.0.entry(3).or_default().state = State::Finished;
        assert_eq!(ahead_of(job, [9, 8, 8, 8], &[]), None);
    }
}
