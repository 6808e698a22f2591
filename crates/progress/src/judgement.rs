//! Who holds the others up, and whether a task hangs at all.

use crate::ends::{crashed, ended, left};
use crate::group::Order;
use crate::progress::Progress;
use crate::task::{Activity, Group, Kind, Task};
use crate::waits::{Waiting, Why, waits_of};
use lockstep_diagnosis::{Disagreement, origin};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};

/// Tasks that nothing keeps from going on, and that others wait for, directly or not.
pub(crate) fn roots(tasks: &BTreeMap<u32, Task>, waiting: &Waiting) -> Vec<u32> {
    let mut waits: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for wait in &waiting.waits {
        waits.entry(wait.from).or_default().push(wait.to);
    }
    let is_going =
        |task: &u32| !matches!(tasks[task].activity, Activity::Finished | Activity::Ended);
    let targets: BTreeSet<u32> = waits.values().flatten().copied().collect();
    targets
        .into_iter()
        .filter(|task| tasks.contains_key(task))
        .filter(|task| !waits.contains_key(task) || waiting.partly.contains(task))
        .filter(is_going)
        .collect()
}

/// The groups of those who hold the others up, where it is known who waits for whom: who crashed, or
/// ended while others wait for them; those who are wrong in a collective operation; the
/// least progressed of those whom all wait for in the end.
pub(crate) fn held_up_by(
    groups: &[Group],
    tasks: &BTreeMap<u32, Task>,
    order: &Order,
    waiting: &Waiting,
    disagreements: &[Disagreement],
) -> Option<Vec<usize>> {
    let of = |few: &[u32]| -> Vec<usize> {
        let is_one = |group: &usize| {
            few.iter()
                .any(|it| groups[*group].tasks.binary_search(it).is_ok())
        };
        (0..groups.len()).filter(is_one).collect()
    };
    let crashed = crashed(tasks);
    if !crashed.is_empty() {
        return Some(of(&crashed));
    }
    let ended = ended(tasks, waiting);
    if !ended.is_empty() {
        return Some(of(&ended));
    }
    // All may have come to their end with what they said.
    let is_past = tasks.values().all(|it| it.activity == Activity::Finished);
    let stops = |it: &&Disagreement| it.mismatch.prevents() && (it.mismatch.open || !is_past);
    if let Some(stops) = disagreements.iter().find(stops) {
        let (_, wrong) = origin(disagreements, stops).wrong().first()?;
        let wrong: Vec<u32> = wrong.iter().map(|it| it.task).collect();
        return Some(of(&wrong));
    }
    let held_up_by = match waiting.stuck.is_empty() {
        true => roots(tasks, waiting),
        false => waiting.cores.concat(),
    };
    (!held_up_by.is_empty()).then(|| order.least(&of(&held_up_by)))
}

/// The least progressed groups of those that are not over; of several, those that wait for none of
/// the others.
pub(crate) fn least(groups: &[Group], order: &Order, waiting: &Waiting) -> Vec<usize> {
    let going: Vec<usize> = (0..groups.len())
        .filter(|group| groups[*group].activity != Activity::Finished)
        .collect();
    let least = order.least(&going);
    let mut group_of: BTreeMap<u32, usize> = BTreeMap::new();
    for group in &least {
        group_of.extend(groups[*group].tasks.iter().map(|task| (*task, *group)));
    }
    let pairs = waiting.waits.iter().filter_map(|wait| {
        let (from, to) = (group_of.get(&wait.from)?, group_of.get(&wait.to)?);
        (from != to).then_some(*from)
    });
    let waits: BTreeSet<usize> = pairs.collect();
    let waits_for_another = |group: usize| waits.contains(&group);
    let free: Vec<usize> = least
        .iter()
        .copied()
        .filter(|group| !waits_for_another(*group))
        .collect();
    if free.is_empty() { least } else { free }
}

/// `is_amiss` says whether MPI may have ended the job for a mistake.
pub(crate) fn judge(progress: &Progress, is_amiss: bool) -> (bool, Kind) {
    if !progress.waiting.stuck.is_empty() {
        // Who waits for a task that crashed was ended with it: the crash is what counts.
        return match crashed(&progress.tasks).is_empty() {
            true if is_polled(progress) && !is_definite(progress) => (true, Kind::Livelock),
            true => (true, Kind::Deadlock),
            false => (false, Kind::None),
        };
    }
    let is_held_up = match progress.waiting.waits.is_empty() {
        false => !roots(&progress.tasks, &progress.waiting).is_empty(),
        // Nobody knows who waits for whom; but some are in MPI, and who is behind is not.
        true => {
            let computes = |it: &usize| progress.groups[*it].activity == Activity::Computation;
            let mut groups = progress.groups.iter();
            groups.any(|it| it.activity == Activity::Communication)
                && progress.least.iter().any(computes)
        }
    };
    let went_on = crashed(&progress.tasks).is_empty() && left(&progress.tasks).is_empty();
    match went_on && !is_amiss && is_held_up {
        true => (true, Kind::Slow),
        false => (false, Kind::None),
    }
}

/// Whether some wait for each other in calls that cannot return, whatever others ask for.
fn is_definite(progress: &Progress) -> bool {
    let waits = |task: &u32| {
        let is_over = |it: &Task| matches!(it.activity, Activity::Ended | Activity::Finished);
        let task = progress.tasks.get(task);
        task.is_some_and(|it| it.polls.is_none() && !is_over(it))
    };
    let mut cores = progress.waiting.cores.iter();
    cores.any(|core| core.iter().all(waits))
}

/// Whether those that all wait for in the end could do something else: they ask again and again.
fn is_polled(progress: &Progress) -> bool {
    let mut core = progress.waiting.cores.iter().flatten();
    let polls = |task: &u32| {
        progress
            .tasks
            .get(task)
            .is_some_and(|it| it.polls.is_some())
    };
    core.any(polls)
        // Who waits for one that ended asks, and goes on asking.
        || progress.waiting.stuck.iter().any(|task| {
            let is_core = |to: u32| progress.waiting.cores.iter().flatten().any(|it| *it == to);
            polls(task) && waits_of(&progress.waiting, *task).any(|it| is_core(it.to))
        })
}

/// Those that are to be named in a deadlock.
pub(crate) fn named(progress: &Progress) -> Vec<u32> {
    let stuck = &progress.waiting.stuck;
    let core: Vec<u32> = progress.waiting.cores.concat();
    let gone: Vec<u32> = core
        .iter()
        .copied()
        .filter(|task| !stuck.contains(task))
        .collect();
    // Who waits for one that is gone; else those of the core that are behind; else the core.
    let behind: Vec<u32> = progress
        .least
        .iter()
        .flat_map(|group| &progress.groups[*group].tasks)
        .copied()
        .filter(|task| core.contains(task))
        .collect();
    let named = if !gone.is_empty() {
        let for_gone = |task: &&u32| awaited(progress, **task).iter().any(|it| gone.contains(it));
        stuck.iter().filter(for_gone).copied().collect()
    } else if !behind.is_empty() && behind.len() < core.len() {
        // A thread for which others of its process wait is told first, where it waits itself.
        let within = behind.iter().flat_map(|it| awaited_within(progress, *it));
        let within: BTreeSet<u32> = within
            .filter(|it| core.contains(it) && !behind.contains(it))
            .collect();
        // Of two, the other is told, too, if it does not wait for all.
        let is_apart = |task: u32| {
            waits_of(&progress.waiting, task).all(|it| !matches!(it.why, Why::Collective(..)))
        };
        let is_told = |it: &&u32| {
            core.len() == 2 && !behind.contains(it) && !within.contains(it) && is_apart(**it)
        };
        let others: Vec<u32> = core.iter().filter(is_told).copied().collect();
        [within.into_iter().collect(), behind, others].concat()
    } else {
        // Of threads, those first for whom others wait and for nobody else: who holds their lock, say.
        let waits = progress
            .waiting
            .inside
            .iter()
            .filter(|it| !progress.is_mpi && it.to.len() == 1);
        let wanted: Vec<TraceName> = waits.filter_map(|it| it.to.first().copied()).collect();
        let times = |task: &u32| {
            let trace = progress.tasks.get(task).map(|it| it.trace);
            wanted.iter().filter(|it| Some(**it) == trace).count()
        };
        let wants = |task: &u32| {
            let mut waits = progress.waiting.inside.iter();
            waits.any(|it| it.task == *task && it.object.is_some())
        };
        let mut core = core;
        core.sort_by_key(|it| std::cmp::Reverse((times(it), wants(it))));
        core
    };
    // A deadlock has a subject.
    match named.is_empty() {
        true => stuck.iter().copied().collect(),
        false => named,
    }
}

/// For whom a task waits: by messages and collective operations, and as a thread of its process.
fn awaited(progress: &Progress, task: u32) -> Vec<u32> {
    let outside = waits_of(&progress.waiting, task).map(|it| it.to);
    outside.chain(awaited_within(progress, task)).collect()
}

/// For which threads of its process a thread waits that is a task.
fn awaited_within(progress: &Progress, task: u32) -> Vec<u32> {
    let waits = progress
        .waiting
        .inside
        .iter()
        .filter(|it| !progress.is_mpi && it.task == task);
    let threads: BTreeSet<TraceName> = waits.flat_map(|it| it.to.iter().copied()).collect();
    let tasks = progress.tasks.values();
    tasks
        .filter(|it| threads.contains(&it.trace))
        .map(|it| it.number)
        .collect()
}
