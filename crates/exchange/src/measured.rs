//! How long calls took, of those whose begin and end were measured.

use crate::spans::{Clock, Span, each_span, have_times};
use crate::view::View;
use lockstep_trace::{FunctionId, Thread};
use rustc_hash::FxHashMap;
use std::io;

/// Sums over calls of a function, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measured {
    /// Calls whose begin and end were measured.
    pub calls: u64,
    /// How long they took. Of a call within a call of the same function nothing is added.
    pub total: u64,
    /// How many of them made no call that was not measured.
    pub alone: u64,
    /// How long these took without what they called.
    pub own: u64,
}

struct Frame {
    function: FunctionId,
    since: Option<u64>,
    within: u64,
    /// All that it called was measured.
    is_whole: bool,
}

/// Sums by function over the calls of `threads`; empty where not all of them have times. Memory: the open calls.
///
/// # Errors
/// None that a caller can do anything about.
pub fn measured(threads: &[&Thread]) -> io::Result<FxHashMap<FunctionId, Measured>> {
    let mut sums: FxHashMap<FunctionId, Measured> = FxHashMap::default();
    if !have_times(threads) {
        return Ok(sums);
    }
    for thread in threads {
        let mut stack: Vec<Frame> = Vec::new();
        let mut open: FxHashMap<FunctionId, u64> = FxHashMap::default();
        let view = View::default();
        each_span(thread, &Clock::Recorded, &view, |moment, span, _| {
            match span {
                Span::Open(function, _) => {
                    *open.entry(function).or_default() += 1;
                    stack.push(Frame {
                        function,
                        since: moment.measured(),
                        within: 0,
                        is_whole: true,
                    });
                }
                Span::Close(..) => {
                    let Some(frame) = stack.pop() else {
                        return Ok(());
                    };
                    let depth = open.entry(frame.function).or_default();
                    *depth = depth.saturating_sub(1);
                    let took = frame.since.zip(moment.measured());
                    let took = took.map(|(since, end)| end.saturating_sub(since));
                    if let Some(caller) = stack.last_mut() {
                        caller.is_whole &= took.is_some();
                        caller.within += took.unwrap_or(0);
                    }
                    let Some(took) = took else { return Ok(()) };
                    let sum = sums.entry(frame.function).or_default();
                    sum.calls += 1;
                    sum.total += if *depth == 0 { took } else { 0 };
                    if frame.is_whole {
                        sum.alone += 1;
                        sum.own += took.saturating_sub(frame.within);
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(sums)
}
