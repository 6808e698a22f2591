//! Who is meant: tasks by number, and threads.

use lockstep_progress::{Activity, Group, Progress};
use lockstep_trace::{TraceName, ranges};

/// `rank 5`, `ranks 0-3,7`; without MPI `thread 2`. Where processes were forked, `process 1`, or `thread 0.2` of one that has several.
#[must_use]
pub fn who(progress: &Progress, tasks: &[u32]) -> String {
    if progress.is_mpi || progress.forked.is_empty() {
        return numbered(progress.is_mpi, tasks);
    }
    let all = || progress.tasks.values().map(|it| it.trace);
    let (mut processes, mut threads) = (Vec::new(), Vec::new());
    for trace in tasks
        .iter()
        .filter_map(|it| Some(progress.tasks.get(it)?.trace))
    {
        match all().filter(|it| it.process == trace.process).count() {
            1 => processes.push(trace.process.to_string()),
            _ => threads.push(trace.to_string()),
        }
    }
    let listed = |one: &str, many: &str, names: &[String]| match names {
        [] => None,
        [name] => Some(format!("{one} {name}")),
        names => Some(format!("{many} {}", names.join(","))),
    };
    let processes = listed("process", "processes", &processes);
    let threads = listed("thread", "threads", &threads);
    let both: Vec<String> = processes.into_iter().chain(threads).collect();
    both.join(" and ")
}

pub(crate) fn numbered(are_ranks: bool, tasks: &[u32]) -> String {
    let kind = if are_ranks { "rank" } else { "thread" };
    match tasks {
        [task] => format!("{kind} {task}"),
        many => format!("{kind}s {}", ranges(many)),
    }
}

/// `thread 1.2`; without MPI by its number.
pub(crate) fn thread(progress: &Progress, thread: TraceName) -> String {
    let task = progress.tasks.values().find(|it| it.trace == thread);
    match task.filter(|_| !progress.is_mpi) {
        Some(task) => who(progress, &[task.number]),
        None => format!("thread {thread}"),
    }
}

/// `thread 1.1, thread 1.2`.
pub(crate) fn threads(progress: &Progress, threads: &[TraceName]) -> String {
    let names = threads.iter().map(|it| thread(progress, *it));
    names.collect::<Vec<_>>().join(", ")
}

/// `waits` of one, `wait` of several.
pub(crate) fn wait(tasks: &[u32]) -> &'static str {
    if tasks.len() == 1 { "waits" } else { "wait" }
}

/// What a group does, in a word or two.
#[must_use]
pub fn word(progress: &Progress, group: &Group) -> &'static str {
    // Their first threads wait for others of theirs.
    let waits = |task: &u32| {
        let first = progress.tasks.get(task).map(|it| it.trace);
        let mut inside = progress.waiting.inside.iter();
        inside.any(|it| Some(it.from) == first)
    };
    match group.activity {
        Activity::Computation if group.tasks.iter().all(waits) => "waits",
        // A thread that came back from the function that it began with, or waits for work in a pool.
        Activity::Computation if !progress.is_mpi && group.stack.is_empty() => "over or idle",
        Activity::Computation => "computes",
        Activity::Communication => "in MPI",
        Activity::Ended => "ended",
        Activity::Finished => "finished",
    }
}

/// `ranks 0-3 are in LAMMPS_NS::Input::file(), ...`: of a run in which all are inside a library of which nothing is recorded.
#[must_use]
pub fn unseen(progress: &Progress) -> Option<String> {
    let (tasks, call) = progress.unseen()?;
    let verb = if tasks.len() == 1 { "is" } else { "are" };
    Some(format!(
        "{} {verb} in {call}, a library's function inside which nothing is recorded (--images adds libraries)",
        who(progress, &tasks),
    ))
}
