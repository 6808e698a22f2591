//! Where a thread took a lock that it kept: it is over, and others wait for the lock.
//!
//! *Guarantees*: nothing of a thread that still runs: where that is says more. *Costs*: a pass over the events of such a
//! thread. *Not for*: which of several locks of a kind it is; the last that was not given back is told.

use crate::inside::Inside;
use crate::loose_words::called_at;
use crate::waits::Waiting;
use lockstep_trace::threads::{Does, Lock, meaning};
use lockstep_trace::{Event, FunctionId, Run, SourceLine, Thread, TraceName};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A lock that was not given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The function that took it.
    pub function: String,
    /// Where that was called: ` at pool.c:11`, or ` in push()`.
    pub site: String,
    /// The same as lines.
    pub lines: Vec<SourceLine>,
}

/// By thread, of those that are over and that others wait for.
pub(crate) fn kept(run: &Run, waiting: &Waiting) -> BTreeMap<TraceName, Kept> {
    let mut found = BTreeMap::new();
    for wait in &waiting.inside {
        let (Inside::Lock(lock), [holder]) = (wait.why, wait.to.as_slice()) else {
            continue;
        };
        let thread = run.trace(*holder).filter(|it| it.open.is_empty());
        if let (Some(thread), false) = (thread, found.contains_key(holder)) {
            found.extend(last_kept(run, thread, lock).map(|it| (*holder, it)));
        }
    }
    found
}

/// The last lock of a kind that a thread took and did not give back.
fn last_kept(run: &Run, thread: &Thread, lock: Lock) -> Option<Kept> {
    let functions = (0..).map(FunctionId).zip(&run.functions);
    let steps = functions.filter(|it| it.1.imported).filter_map(|(id, it)| {
        match meaning(&it.linkage).does {
            Does::Take(of) if of == lock => Some((id, true)),
            Does::Give(of) if of == lock => Some((id, false)),
            _ => None,
        }
    });
    let steps: FxHashMap<FunctionId, bool> = steps.collect();
    let mut taken: Vec<(u64, FunctionId)> = Vec::new();
    for (event, at) in thread.events().zip(0..) {
        let Event::Call(function) = event else {
            continue;
        };
        match steps.get(&function) {
            Some(true) => taken.push((at, function)),
            Some(false) => drop(taken.pop()),
            None => {}
        }
    }
    let (event, function) = taken.pop()?;
    let site = run.sites(thread, &[event]).pop()?;
    Some(Kept {
        function: run.function(function).name.clone(),
        site: site.as_ref().map_or(String::new(), called_at),
        lines: site.map_or_else(Vec::new, |it| it.lines),
    })
}
