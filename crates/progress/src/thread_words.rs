//! Threads that wait for each other within a task, in words.

use crate::holding::Call;
use crate::inside::{Inside, InsideWait};
use crate::place_words::{place, who};
use crate::progress::Progress;
use crate::task::{Activity, Group, Place, Task};
use crate::wait_words::reason;
use lockstep_comm::is_named_so;
use lockstep_trace::threads::meaning;
use lockstep_trace::{EndKind, ThreadName, TraceName};
use std::collections::{BTreeSet, VecDeque};

/// Threads besides the first that are told of.
const MOST: usize = 2;

/// `for thread 1.2 to come; thread 1.2 is in pause at a.c:9`: what the first thread of a task waits for in
/// its process, and where the threads are that it comes down to.
pub(crate) fn within(progress: &Progress, task: u32) -> Option<String> {
    let first = progress.tasks.get(&task)?.trace;
    let Some(wait) = wait_of(progress, first) else {
        return beside(progress, task, first);
    };
    let mut text = words(progress, wait);
    // A thread without MPI is a task itself, and told of as one.
    if !progress.is_mpi {
        let is_over = |it: &&TraceName| progress.threads.get(it).is_some_and(Vec::is_empty);
        for holder in wait
            .to
            .iter()
            .filter(is_over)
            .filter(|_| matches!(wait.why, Inside::Lock(_)))
        {
            text.push_str(&format!("; {} is over", thread(progress, *holder)));
        }
        return Some(text);
    }
    let mut seen = BTreeSet::from([first]);
    let mut next: VecDeque<TraceName> = wait.to.iter().copied().collect();
    let (mut ends, mut between) = (Vec::new(), Vec::new());
    while let Some(thread) = next.pop_front() {
        if !seen.insert(thread) {
            continue;
        }
        let at = at(progress, thread);
        match wait_of(progress, thread) {
            Some(wait) => {
                let why = words(progress, wait);
                between.push(format!(
                    "{} waits {at}, {why}",
                    self::thread(progress, thread)
                ));
                next.extend(&wait.to);
            }
            None => ends.push(end(progress, task, thread, &at)),
        }
    }
    for clause in ends.into_iter().chain(between).take(MOST) {
        text.push_str(&format!("; {clause}"));
    }
    Some(text)
}

/// A task whose first thread waits in MPI, and another thread does not.
fn beside(progress: &Progress, task: u32, first: TraceName) -> Option<String> {
    if !progress.waiting.partly.contains(&task) {
        return None;
    }
    let waits = || progress.waiting.waits.iter().find(|it| it.from == task);
    let runs = progress.threads.iter().find(|(thread, stack)| {
        thread.process == first.process
            && **thread != first
            && matches!(thread.thread, ThreadName::Main(_))
            && !stack.is_empty()
            && wait_of(progress, **thread).is_none()
    });
    let mut text = reason(progress, waits()?);
    if let Some((thread, _)) = runs {
        let (name, at) = (self::thread(progress, *thread), at(progress, *thread));
        text.push_str(&format!("; {name} is {at}"));
    }
    Some(text)
}

/// A thread that waits for a lock of the first of its task, which waits in MPI: `thread 0.1 waits in GOMP_critical_start at a.c:9,
/// for a lock that thread 0.0 holds`.
pub(crate) fn behind(progress: &Progress, task: u32) -> Option<String> {
    let first = progress.tasks.get(&task)?.trace;
    let mut inside = progress.waiting.inside.iter();
    let wait = inside.find(|it| {
        it.task == task && matches!(it.why, Inside::Lock(_)) && it.to == [first] && it.from != first
    })?;
    let (name, at) = (thread(progress, wait.from), at(progress, wait.from));
    Some(format!("{name} waits {at}, {}", words(progress, wait)))
}

fn wait_of(progress: &Progress, thread: TraceName) -> Option<&InsideWait> {
    progress.waiting.inside.iter().find(|it| it.from == thread)
}

/// A thread that waits for no other.
fn end(progress: &Progress, task: u32, thread: TraceName, at: &str) -> String {
    let name = self::thread(progress, thread);
    let stack = progress.threads.get(&thread);
    if stack.is_none_or(Vec::is_empty) {
        return format!("{name} is over");
    }
    let in_mpi = stack
        .into_iter()
        .flatten()
        .any(|it| is_named_so(&it.function));
    let wait = progress.waiting.waits.iter().find(|it| it.from == task);
    match wait.filter(|_| in_mpi) {
        Some(wait) => format!("{name} waits {at}, {}", reason(progress, wait)),
        None => format!("{name} is {at}"),
    }
}

/// `thread 1.2 left out meet() at step.c:12 in step() (call 8), unlike those that wait there`: who does not come to a task's barrier.
pub(crate) fn truant(progress: &Progress, task: u32) -> Option<String> {
    let truant = progress.truants.get(&task)?;
    let what = truant.departure.sentence(&truant.site);
    let who = thread(progress, truant.thread);
    Some(format!("{who} {what}, unlike those that wait there"))
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

/// `thread 2 took it in pthread_mutex_lock at pool.c:11 in push() and never gave it back`; first of those that are over.
pub(crate) fn kept_locks(progress: &Progress) -> Vec<String> {
    let over = progress.kept.iter().filter(|it| it.is_over);
    let others = progress.kept.iter().filter(|it| !it.is_over);
    let told = over.chain(others).take(MOST).map(|kept| {
        // What the program's own line calls, whatever a header of the system does there.
        let is_own = |it: &Call| {
            it.called_at
                .as_ref()
                .is_some_and(|it| !it.is_of_the_system())
        };
        let depth = kept.stack.iter().rposition(is_own).map_or(0, |at| at + 1);
        let calls = if depth == 0 {
            &kept.stack[..]
        } else {
            &kept.stack[..depth]
        };
        let mut stack: Vec<Place> = calls.iter().map(Place::from).collect();
        if let Some(last) = stack.last_mut() {
            last.imported = true;
        }
        let (who, site) = (thread(progress, kept.thread), placed(stack));
        let end = if kept.is_over {
            " and never gave it back"
        } else {
            ""
        };
        format!("{who} took it {site}{end}")
    });
    told.collect()
}

/// Where a thread is.
pub(crate) fn at(progress: &Progress, thread: TraceName) -> String {
    placed(progress.threads.get(&thread).cloned().unwrap_or_default())
}

impl From<&Call> for Place {
    fn from(call: &Call) -> Self {
        Self {
            function: call.function.clone(),
            imported: call.imported,
            called_at: call.called_at.clone(),
        }
    }
}

/// Where a stack of calls ends.
fn placed(stack: Vec<Place>) -> String {
    place(&Group {
        tasks: Vec::new(),
        stack: stack.into(),
        leaf: None,
        loops: Vec::new(),
        turns: Vec::new(),
        activity: Activity::Computation,
    })
}

/// `thread 1.2`; without MPI by its number.
pub(crate) fn thread(progress: &Progress, thread: TraceName) -> String {
    let task = progress.tasks.values().find(|it| it.trace == thread);
    match task.filter(|_| !progress.is_mpi) {
        Some(task) => who(progress, &[task.number]),
        None => format!("thread {thread}"),
    }
}

/// The numbers of threads that are tasks.
fn numbers(progress: &Progress, threads: &[TraceName]) -> Option<Vec<u32>> {
    if progress.is_mpi {
        return None;
    }
    let number = |it: &TraceName| progress.tasks.values().find(|task| task.trace == *it);
    threads.iter().map(|it| Some(number(it)?.number)).collect()
}

/// ` within malloc`: the function of a library that a signal interrupted.
fn interrupted(progress: &Progress, thread: TraceName) -> String {
    let task = progress.tasks.values().find(|it| it.trace == thread);
    let stack = match (task, progress.threads.get(&thread)) {
        (Some(task), _) => &task.stack[..],
        (None, Some(stack)) => stack,
        (None, None) => &[],
    };
    let mut pairs = stack.windows(2).rev();
    let pair = pairs.find(|it| it[0].imported && !it[1].imported);
    pair.map_or(String::new(), |it| format!(" within {}", it[0].function))
}

/// Threads of the same process that will come to nothing any more, if they are few.
fn over(progress: &Progress, thread: TraceName) -> Vec<String> {
    let over = progress.threads.iter().filter(|(other, stack)| {
        let is_main = matches!(other.thread, ThreadName::Main(_));
        other.process == thread.process && is_main && stack.is_empty()
    });
    let names: Vec<String> = over.map(|it| self::thread(progress, *it.0)).collect();
    match names.len() <= MOST {
        true => names,
        false => Vec::new(),
    }
}

/// Why a thread waits for others of its process.
fn words(progress: &Progress, wait: &InsideWait) -> String {
    let names: Vec<String> = wait.to.iter().map(|it| thread(progress, *it)).collect();
    match (wait.why, names.as_slice()) {
        (Inside::Lock(_), _) if wait.to == [wait.from] => {
            "for a lock that it holds itself".to_owned()
        }
        (Inside::Lock(_), []) => {
            "for a lock that no thread of its process holds: fork copied it while it was held"
                .to_owned()
        }
        (Inside::Lock(_), [one]) => format!("for a lock that {one} holds"),
        (Inside::Lock(_), many) => format!("for a lock that {} hold", many.join(", ")),
        (Inside::Behind(_), many) => {
            format!(
                "for a lock behind {}, which waits to write",
                many.join(", ")
            )
        }
        (Inside::Semaphore, _) => "until another thread posts the semaphore".to_owned(),
        (Inside::Again, _) => format!(
            "for a lock of the library that it holds itself: a signal handler ran{}",
            interrupted(progress, wait.from)
        ),
        (Inside::Signal, [one]) => format!("until {one} signals"),
        (Inside::Signal, _) => "until another thread signals".to_owned(),
        (Inside::Barrier, _) => match over(progress, wait.from).as_slice() {
            [] => "for another thread to come".to_owned(),
            [one] => format!("for another thread to come; {one} is over"),
            many => format!("for another thread to come; {} are over", many.join(", ")),
        },
        (Inside::End, []) => {
            "for a thread that is not in its process: fork did not copy it".to_owned()
        }
        (Inside::End, [one]) => format!("for {one} to end"),
        (Inside::Team, []) => {
            let parent = progress.forked.get(&wait.from.process);
            let of = parent.map_or(String::new(), |it| format!(" of process {it}"));
            format!("for the OpenMP threads{of}: fork did not copy them")
        }
        (Inside::End, _) => "for another thread to end".to_owned(),
        (Inside::Team, many) => match numbers(progress, &wait.to) {
            Some(numbers) => format!("for {} to come", who(progress, &numbers)),
            None => format!("for {} to come", many.join(", ")),
        },
    }
}
