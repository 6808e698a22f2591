//! Where a thread took a lock that others wait for.
//!
//! *Costs*: a pass over the events of such a thread. *Not for*: locks that a library took inside.

use crate::inside::Inside;
use crate::task::Place;
use crate::waits::Waiting;
use lockstep_trace::{Frame, Run, SourceLine, TraceName};

/// A lock that others wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Who took it.
    pub thread: TraceName,
    /// Whether that is over, so that nobody gives it back.
    pub is_over: bool,
    /// The calls that were open when it was taken, outermost first.
    pub stack: Vec<Place>,
}

impl Kept {
    /// The function that took it.
    pub fn function(&self) -> Option<String> {
        Some(self.stack.last()?.function.clone())
    }

    /// The line in the program's own text from which it was taken.
    pub fn lines(&self) -> Vec<SourceLine> {
        let lines = self
            .stack
            .iter()
            .rev()
            .filter_map(|it| it.called_at.as_ref());
        let line = lines.filter(|it| !it.is_of_the_system()).take(1);
        line.cloned().collect()
    }
}

/// The locks that are waited for, and where those who hold them took them, each once.
pub(crate) fn kept(run: &Run, waiting: &Waiting) -> Vec<Kept> {
    let mut found: Vec<(TraceName, u64)> = Vec::new();
    for wait in &waiting.inside {
        let (Inside::Lock(_) | Inside::Semaphore, Some(address)) = (wait.why, wait.object) else {
            continue;
        };
        let is_near = |it: &TraceName| it.process == wait.from.process || wait.to.contains(it);
        let threads = run.processes.iter().flat_map(|it| &it.threads);
        let holders = threads.filter(|it| {
            let holds = it.holds.as_ref().and_then(|it| it.held(address));
            is_near(&it.name) && holds.is_some()
        });
        found.extend(holders.map(|it| (it.name, address)));
    }
    found.sort_unstable();
    found.dedup();
    let kept = found.into_iter().filter_map(|(name, address)| {
        let thread = run.trace(name)?;
        let hold = thread.holds.as_ref()?.held(address)?;
        let frames = run.taken(thread, hold)?;
        let call = |frame: Frame| {
            let function = run.function(frame.function);
            Place {
                function: function.name.clone(),
                imported: function.imported,
                called_at: frame.called_at,
            }
        };
        let real = frames.into_iter().filter(|frame| !frame.handed_over);
        Some(Kept {
            thread: name,
            is_over: thread.open.is_empty(),
            stack: real.map(call).collect(),
        })
    });
    kept.collect()
}
