//! What is to be said of a run whose processes all came to their end, without a look at its events.
//!
//! Without MPI no thread waits for another process; where all processes ended well, none waits for another thread. That leaves
//! threads that did not come to a barrier: those are looked for ([`crate::team`]) only if the program has any.

use crate::clause::{Verdict, What};
use crate::ends::ended_well;
use crate::nonempty::NonEmpty;
use crate::progress::Progress;
use crate::task::{Activity, Group, Task};
use crate::verdict;
use lockstep_comm::gathers;
use lockstep_trace::{Outline, Outlined, ThreadName};
use std::collections::BTreeMap;

/// The progress of such a run, its tasks' places left out: the verdict is that of [`analyse`](crate::analyse). `None` of any other run.
#[must_use]
pub fn at_a_glance(outline: &Outline) -> Option<Progress> {
    let processes = &outline.processes;
    if outline.is_mpi || !processes.iter().all(|it| ended_well(&it.end)) {
        return None;
    }
    let has_several = |it: &Outlined| it.traces.len() > 1;
    if processes.iter().any(has_several) && outline.may_call(gathers) {
        return None;
    }
    let traces = processes.iter().flat_map(|process| {
        let traces = process.traces.iter();
        traces.map(move |trace| (process.end, *trace))
    });
    let main = traces.filter(|(_, trace)| matches!(trace.thread, ThreadName::Main(_)));
    let tasks = (0..).zip(main).map(|(number, (end, trace))| {
        let task = Task {
            number,
            trace,
            end,
            stack: [].into(),
            leaf: None,
            activity: Activity::Ended,
            polls: None,
            crashed: false,
            events: 0,
            is_launcher: false,
        };
        (number, task)
    });
    let tasks: BTreeMap<u32, Task> = tasks.collect();
    if tasks.is_empty() {
        return None;
    }
    let all = Group {
        tasks: tasks.keys().copied().collect(),
        stack: [].into(),
        leaf: None,
        loops: Vec::new(),
        turns: Vec::new(),
        activity: Activity::Ended,
    };
    let mut progress = Progress {
        groups: vec![all],
        ..Progress::of(false, tasks, Vec::new())
    };
    let all = What::Over(verdict::over(&progress));
    progress.verdict = Verdict::new(NonEmpty::one(all.into()));
    Some(progress)
}
