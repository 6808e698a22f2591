//! Why tasks wait.

use crate::loose::function;
use crate::place::place;
use crate::who::{thread, threads, wait, who};
use lockstep_progress::clause::{Because, Reason, Stands, Within};
use lockstep_progress::{Activity, Expected, Progress, Wait, Wants, Why};
use lockstep_trace::TraceName;
use std::collections::BTreeMap;

/// What a task waits for: `for a message from rank 3 with tag 7`.
#[must_use]
pub fn reason(progress: &Progress, wait: &Wait) -> String {
    expected(progress, &Expected::of(progress, wait))
}

/// [`reasons`] in sentences: `ranks 0-1 wait for a message from rank 3 with tag 7`.
#[must_use]
pub fn waits(progress: &Progress) -> Vec<String> {
    let reasons = reasons(progress).into_iter();
    let told = reasons.map(|(tasks, why)| waiting(progress, &tasks, &why));
    told.collect()
}

pub(crate) fn waiting(progress: &Progress, tasks: &[u32], why: &str) -> String {
    format!("{} {} {why}", who(progress, tasks), wait(tasks))
}

/// What tasks wait for, those that wait for the same together.
#[must_use]
pub fn reasons(progress: &Progress) -> Vec<(Vec<u32>, String)> {
    let mut reasons: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (task, wants) in progress.wants() {
        let text = self::wants(progress, &wants);
        reasons.entry(text).or_default().push(task);
    }
    let reasons = reasons.into_iter();
    reasons.map(|(text, tasks)| (tasks, text)).collect()
}

/// `for a message from rank 3 with tag 7; thread 1.2 is in pause at a.c:9`.
pub(crate) fn why(progress: &Progress, reason: &Reason) -> String {
    let mut text = because(progress, &reason.why);
    for (thread, stands) in &reason.threads {
        text.push_str(&format!("; {}", self::stands(progress, *thread, stands)));
    }
    text
}

fn because(progress: &Progress, why: &Because) -> String {
    match why {
        Because::Outside(it) => wants(progress, it),
        Because::Inside(it) => within(progress, it),
    }
}

fn stands(progress: &Progress, of: TraceName, stands: &Stands) -> String {
    let name = thread(progress, of);
    match stands {
        Stands::Over => format!("{name} is over"),
        Stands::At(at) => format!("{name} is {}", place(at)),
        Stands::Waits(at, why) => format!("{name} waits {}, {}", place(at), because(progress, why)),
    }
}

pub(crate) fn wants(progress: &Progress, it: &Wants) -> String {
    match it {
        Wants::Each(all) => {
            let each = all.iter().map(|it| expected(progress, it));
            each.collect::<Vec<_>>().join(" and ")
        }
        Wants::First(first, more) => format!("{} (and {more} more)", expected(progress, first)),
        Wants::OrMessage(sent) => format!("{}, or for a message", expected(progress, sent)),
        Wants::Anybody(Some(tag)) => format!("for a message from anybody with tag {tag}"),
        Wants::Anybody(None) => "for a message from anybody".to_owned(),
        Wants::Together { of, why, any } => {
            let any = if *any { "any of " } else { "" };
            let of = format!("{any}{}", who(progress, of));
            needed(progress, &of, why, "", "")
        }
    }
}

fn expected(progress: &Progress, it: &Expected) -> String {
    let over = match progress.group_of(it.of).map(|it| it.activity) {
        Some(Activity::Finished) => ", which has finished",
        Some(Activity::Ended) => ", which has ended",
        _ => "",
    };
    let within = it.within.map_or(String::new(), |it| of(progress, it));
    needed(progress, &who(progress, &[it.of]), &it.why, &within, over)
}

/// What is needed of somebody, in a communicator, who may be over.
fn needed(progress: &Progress, whom: &str, why: &Why, within: &str, over: &str) -> String {
    match why {
        Why::Message(Some(tag)) => {
            format!("for a message from {whom} with tag {tag}{within}{over}")
        }
        Why::Message(None) => format!("for a message from {whom}{within}{over}"),
        Why::OtherTag(tag, sent) => {
            let sent: Vec<String> = sent.iter().map(ToString::to_string).collect();
            format!(
                "for a message from {whom} with tag {tag}{within}, which sent tag {}{over}",
                sent.join(", ")
            )
        }
        Why::Receiver(tag) => {
            format!("for {whom} to receive a message with tag {tag}{within}{over}")
        }
        Why::Collective(name, id) => {
            format!("for {whom} to call {name}{}{over}", of(progress, *id))
        }
        Why::Epoch(step) => format!("for {whom} to call {}{over}", function(*step)),
        Why::Unlock(window) => format!("for {whom} to unlock {}{over}", window_of(*window)),
    }
}

/// ` of #2 {0-3}`; nothing where it is the world's.
fn of(progress: &Progress, id: lockstep_progress::CommunicatorId) -> String {
    let name = progress.communicators.get(&id);
    name.map_or(String::new(), |name| format!(" of {name}"))
}

fn window_of(task: Option<u32>) -> String {
    match task {
        Some(task) => format!("the window of rank {task}"),
        None => "the window".to_owned(),
    }
}

/// Why a thread waits for others of its process.
fn within(progress: &Progress, wait: &Within) -> String {
    let (one, all) = (
        |it: &TraceName| thread(progress, *it),
        |it: &[TraceName]| threads(progress, it),
    );
    match wait {
        Within::OwnLock => "for a lock that it holds itself".to_owned(),
        Within::CopiedLock => {
            "for a lock that no thread of its process holds: fork copied it while it was held"
                .to_owned()
        }
        Within::Lock(holders) => {
            let hold = if holders.len() == 1 { "holds" } else { "hold" };
            format!("for a lock that {} {hold}", all(holders))
        }
        Within::Behind(writers) => {
            format!("for a lock behind {}, which waits to write", all(writers))
        }
        Within::Semaphore => "until another thread posts the semaphore".to_owned(),
        Within::Again(function) => {
            let within = function.as_ref();
            let within = within.map_or(String::new(), |it| format!(" within {it}"));
            format!("for a lock of the library that it holds itself: a signal handler ran{within}")
        }
        Within::Signal(Some(it)) => format!("until {} signals", one(it)),
        Within::Signal(None) => "until another thread signals".to_owned(),
        Within::Barrier(over) => match over.as_slice() {
            [] => "for another thread to come".to_owned(),
            [it] => format!("for another thread to come; {} is over", one(it)),
            many => format!("for another thread to come; {} are over", all(many)),
        },
        Within::GoneThread => {
            "for a thread that is not in its process: fork did not copy it".to_owned()
        }
        Within::End(Some(it)) => format!("for {} to end", one(it)),
        Within::End(None) => "for another thread to end".to_owned(),
        Within::GoneTeam(process) => {
            let of = process.map_or(String::new(), |it| format!(" of process {it}"));
            format!("for the OpenMP threads{of}: fork did not copy them")
        }
        Within::Team(team) => match numbers(progress, team) {
            Some(numbers) => format!("for {} to come", who(progress, &numbers)),
            None => format!("for {} to come", all(team)),
        },
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
