//! Why tasks wait: for others, and for threads of their own.

use crate::clause::{Because, Expected, Reason, Stands, Wants, Within};
use crate::inside::{Inside, InsideWait};
use crate::nonempty::NonEmpty;
use crate::progress::Progress;
use crate::task::{Place, Task};
use crate::waits::{Wait, Why, waits_of};
use crate::whereabouts::Whereabouts;
use lockstep_comm::is_named_so;
use lockstep_trace::threads::meaning;
use lockstep_trace::{EndKind, ThreadName, TraceName};
use std::collections::{BTreeSet, VecDeque};

/// Threads besides the first that are told of.
pub(crate) const MOST: usize = 2;
/// So many that are waited for are named.
const MOST_TARGETS: usize = 16;

/// Why a task waits, in short.
pub(crate) fn reason(progress: &Progress, task: u32) -> Option<Reason> {
    let first = progress.tasks.get(&task)?.trace;
    match wait_of(progress, first) {
        Some(wait) => Some(within(progress, task, wait)),
        None if progress.waiting.partly.contains(&task) => beside(progress, task, first),
        None => Some(Reason {
            why: Because::Outside(outside(progress, task)?),
            threads: Vec::from_iter(behind(progress, task, first)),
        }),
    }
}

fn outside(progress: &Progress, task: u32) -> Option<Wants> {
    let waits: Vec<&Wait> = waits_of(&progress.waiting, task).collect();
    let first = *waits.first()?;
    let alike = waits.iter().all(|it| it.why == first.why);
    if first.or_another && waits.len() > 1 {
        // What was sent and not received says more than that anybody might have something to say.
        let is_of_a_send = |it: &&&Wait| matches!(it.why, Why::Receiver(_));
        let sent = waits.iter().find(is_of_a_send);
        return Some(match (&first.why, alike, sent) {
            (Why::Message(_) | Why::OtherTag(..), false, Some(sent)) => {
                Wants::OrMessage(Expected::of(progress, sent))
            }
            (Why::Message(Some(tag)), true, _) => Wants::Anybody(Some(*tag)),
            (Why::Message(_) | Why::OtherTag(..), ..) => Wants::Anybody(None),
            _ => together(&waits)?,
        });
    }
    if alike && waits.len() > 1 && waits.len() <= MOST_TARGETS {
        return together(&waits);
    }
    let expected = Expected::of(progress, first);
    Some(match waits.len() {
        1 => Wants::Each(NonEmpty::one(expected)),
        all => Wants::First(expected, all - 1),
    })
}

/// The same of several.
fn together(waits: &[&Wait]) -> Option<Wants> {
    let first = waits.first()?;
    let mut of: Vec<u32> = waits.iter().map(|it| it.to).collect();
    of.sort_unstable();
    of.dedup();
    let why = match &first.why {
        Why::OtherTag(tag, _) => Why::Message(Some(*tag)),
        why => why.clone(),
    };
    Some(Wants::Together {
        of: NonEmpty::new(of)?,
        why,
        any: first.or_another,
    })
}

impl Expected {
    /// What is waited for.
    #[must_use]
    pub fn of(progress: &Progress, wait: &Wait) -> Self {
        // The message that is waited for was left out, as is told: it sent the others later.
        let first = progress.causes.first();
        let left_out = first.is_some_and(|it| it.task == wait.to && it.left_a_message_out());
        let is_named = |it: &_| progress.communicators.contains_key(it);
        Self {
            of: wait.to,
            why: match &wait.why {
                Why::OtherTag(tag, _) if left_out => Why::Message(Some(*tag)),
                why => why.clone(),
            },
            // What is said in another communicator is no answer.
            within: wait.communicator.filter(is_named),
        }
    }
}

impl Progress {
    /// What tasks wait for.
    #[must_use]
    pub fn wants(&self) -> Vec<(u32, Wants)> {
        let of = |task: &u32| {
            let waits: Vec<&Wait> = waits_of(&self.waiting, *task).collect();
            let first = waits.first()?;
            let all_alike = waits.iter().all(|wait| wait.why == first.why);
            let wants = match all_alike && waits.len() > 1 {
                true => together(&waits)?,
                false => {
                    let each = waits.iter().map(|it| Expected::of(self, it));
                    Wants::Each(NonEmpty::new(each.collect())?)
                }
            };
            Some((*task, wants))
        };
        self.tasks.keys().filter_map(of).collect()
    }
}

/// What the first thread of a task waits for in its process, and where the threads are that it comes down to.
fn within(progress: &Progress, task: u32, wait: &InsideWait) -> Reason {
    let why = Because::Inside(Within::of(progress, wait));
    // A thread without MPI is a task itself, and told of as one.
    if !progress.is_mpi {
        let is_over = |it: &&TraceName| progress.threads.get(it).is_some_and(Vec::is_empty);
        let holders = match wait.why {
            Inside::Lock(_) => wait.to.as_slice(),
            _ => &[],
        };
        let over = holders.iter().filter(is_over);
        let threads = over.map(|it| (*it, Stands::Over)).collect();
        return Reason { why, threads };
    }
    let mut seen = BTreeSet::from([wait.from]);
    let mut next: VecDeque<TraceName> = wait.to.iter().copied().collect();
    let (mut threads, mut between) = (Vec::new(), Vec::new());
    while let Some(thread) = next.pop_front() {
        if !seen.insert(thread) {
            continue;
        }
        match wait_of(progress, thread) {
            Some(wait) => {
                let why = Because::Inside(Within::of(progress, wait));
                between.push((thread, Stands::Waits(at(progress, thread), why)));
                next.extend(&wait.to);
            }
            None => threads.push((thread, stands(progress, task, thread))),
        }
    }
    threads.append(&mut between);
    threads.truncate(MOST);
    Reason { why, threads }
}

/// A task whose first thread waits in MPI, and another thread does not.
fn beside(progress: &Progress, task: u32, first: TraceName) -> Option<Reason> {
    let wait = waits_of(&progress.waiting, task).next()?;
    let mut threads = progress.threads.iter();
    let runs = threads.find(|(thread, stack)| {
        thread.process == first.process
            && **thread != first
            && matches!(thread.thread, ThreadName::Main(_))
            && !stack.is_empty()
            && wait_of(progress, **thread).is_none()
    });
    let runs = runs.map(|it| (*it.0, Stands::At(at(progress, *it.0))));
    Some(Reason {
        why: expects(progress, wait),
        threads: Vec::from_iter(runs),
    })
}

fn expects(progress: &Progress, wait: &Wait) -> Because {
    Because::Outside(Wants::Each(NonEmpty::one(Expected::of(progress, wait))))
}

/// A thread that waits for a lock of the first of its task, which waits in MPI.
fn behind(progress: &Progress, task: u32, first: TraceName) -> Option<(TraceName, Stands)> {
    let mut inside = progress.waiting.inside.iter();
    let wait = inside.find(|it| {
        it.task == task && matches!(it.why, Inside::Lock(_)) && it.to == [first] && it.from != first
    })?;
    let why = Because::Inside(Within::of(progress, wait));
    Some((wait.from, Stands::Waits(at(progress, wait.from), why)))
}

fn wait_of(progress: &Progress, thread: TraceName) -> Option<&InsideWait> {
    progress.waiting.inside.iter().find(|it| it.from == thread)
}

/// A thread that waits for no other.
fn stands(progress: &Progress, task: u32, thread: TraceName) -> Stands {
    let stack = progress.threads.get(&thread);
    let Some(stack) = stack.filter(|it| !it.is_empty()) else {
        return Stands::Over;
    };
    let in_mpi = stack.iter().any(|it| is_named_so(&it.function));
    let wait = waits_of(&progress.waiting, task).next();
    let at = at(progress, thread);
    match wait.filter(|_| in_mpi) {
        Some(wait) => Stands::Waits(at, expects(progress, wait)),
        None => Stands::At(at),
    }
}

/// Of a rank that died while its first thread waited for others of it, the only thread that did not wait.
pub(crate) fn died_in(progress: &Progress, task: u32) -> Option<TraceName> {
    let task = progress.tasks.get(&task);
    let task = task.filter(|it| progress.is_mpi && is_by_signal(it))?;
    let waits = |thread: TraceName, stack: &[Place]| {
        let is_waiting = |it: &Place| it.imported && meaning(&it.function).waits();
        let is_in_mpi = stack.iter().any(|it| is_named_so(&it.function));
        is_in_mpi || wait_of(progress, thread).is_some() || stack.last().is_some_and(is_waiting)
    };
    if !waits(task.trace, &task.stack) || task.stack.iter().any(|it| is_named_so(&it.function)) {
        return None;
    }
    let others = progress.threads.iter();
    let others = others.filter(|it| it.0.process == task.trace.process && *it.0 != task.trace);
    let mut going = others.filter(|(thread, stack)| !stack.is_empty() && !waits(**thread, stack));
    let first = going.next()?;
    going.next().is_none().then_some(*first.0)
}

fn is_by_signal(task: &Task) -> bool {
    task.crashed && task.end.kind == EndKind::Signalled
}

/// Where a thread is.
pub(crate) fn at(progress: &Progress, thread: TraceName) -> Whereabouts {
    let stack = progress.threads.get(&thread);
    Whereabouts::of_stack(stack.map_or(&[], Vec::as_slice))
}

/// The function of a library that a signal interrupted.
fn interrupted(progress: &Progress, thread: TraceName) -> Option<String> {
    let task = progress.tasks.values().find(|it| it.trace == thread);
    let stack = match (task, progress.threads.get(&thread)) {
        (Some(task), _) => &task.stack[..],
        (None, Some(stack)) => stack,
        (None, None) => &[],
    };
    let mut pairs = stack.windows(2).rev();
    let pair = pairs.find(|it| it[0].imported && !it[1].imported);
    pair.map(|it| it[0].function.clone())
}

/// Threads of the same process that will come to nothing any more, if they are few.
fn over(progress: &Progress, thread: TraceName) -> Vec<TraceName> {
    let over = progress.threads.iter().filter(|(other, stack)| {
        let is_main = matches!(other.thread, ThreadName::Main(_));
        other.process == thread.process && is_main && stack.is_empty()
    });
    let over: Vec<TraceName> = over.map(|it| *it.0).collect();
    match over.len() <= MOST {
        true => over,
        false => Vec::new(),
    }
}

impl Within {
    fn of(progress: &Progress, wait: &InsideWait) -> Self {
        let only = match wait.to.as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        let all = NonEmpty::new(wait.to.clone());
        match (wait.why, all) {
            (Inside::Lock(_), _) if wait.to == [wait.from] => Self::OwnLock,
            (Inside::Lock(_), Some(holders)) => Self::Lock(holders),
            (Inside::Lock(_), None) => Self::CopiedLock,
            (Inside::Behind(_), _) => Self::Behind(wait.to.clone()),
            (Inside::Semaphore, _) => Self::Semaphore,
            (Inside::Again, _) => Self::Again(interrupted(progress, wait.from)),
            (Inside::Signal, _) => Self::Signal(only),
            (Inside::Barrier, _) => Self::Barrier(over(progress, wait.from)),
            (Inside::End, None) => Self::GoneThread,
            (Inside::End, Some(_)) => Self::End(only),
            (Inside::Team, Some(team)) => Self::Team(team),
            (Inside::Team, None) => {
                Self::GoneTeam(progress.forked.get(&wait.from.process).copied())
            }
        }
    }
}
