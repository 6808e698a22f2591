//! Traces as timelines: calls that begin and end at a time, in the nested view of `lockstep events`.

use lockstep_trace::{Annotated, Event, FunctionId, Thread, Timeline, When};
use std::io;

/// What the times in a timeline are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// Nanoseconds since the run began on the trace's host: read now and then, in proportion between.
    Recorded,
    /// Events of the same trace before it.
    Logical,
}

/// The deepest chain of calls that handed over to each other and is shown nested; in a longer one the
/// innermost end where they hand over, so that a loop of tail calls needs no more memory.
const CHAIN: usize = 1 << 20;

impl Clock {
    /// Recorded times, where all of `threads` have them.
    pub fn of(threads: &[&Thread]) -> Self {
        let has_times = |thread: &&Thread| thread.timeline().is_some();
        if !threads.is_empty() && threads.iter().all(has_times) {
            Self::Recorded
        } else {
            Self::Logical
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Logical => "logical",
        }
    }

    /// For people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Recorded => {
                "times are nanoseconds, read now and then while recording and in proportion between"
            }
            Self::Logical => {
                "no times were recorded for all of these traces: the time of an event is the number of events before it in its trace"
            }
        }
    }
}

/// Events with their times, which never run backwards.
pub(crate) struct Stamped<'a> {
    events: lockstep_trace::Arguments<'a>,
    timeline: Option<Timeline>,
    now: u64,
}

impl<'a> Stamped<'a> {
    pub fn new(thread: &'a Thread, clock: Clock) -> Self {
        let first = thread.times.as_ref().and_then(lockstep_trace::Times::first);
        let (timeline, now) = match clock {
            Clock::Recorded => (thread.timeline(), first.map_or(0, nanoseconds)),
            Clock::Logical => (None, 0),
        };
        Self {
            events: thread.arguments(),
            timeline,
            now,
        }
    }
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Iterator for Stamped<'_> {
    type Item = (u64, Annotated);

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.events.next()?;
        self.now = match &mut self.timeline {
            Some(timeline) => match timeline.at(event.symbols) {
                When::Known(time) | When::About(time) | When::After(time) => {
                    self.now.max(nanoseconds(time))
                }
            },
            None => event.index,
        };
        Some((self.now, event))
    }
}

/// A call begins or ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span {
    /// It begins.
    Open(FunctionId),
    /// It ends.
    Close(FunctionId),
}

/// What is left at the end of a trace.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Time of the last event.
    pub end: u64,
    /// Calls that never returned, outermost first.
    pub open: Vec<FunctionId>,
}

/// Gives every begin and end of a call to `each`, in order. A return without a call (a stack inherited
/// by `fork`) is left out. Memory: the open calls.
pub(crate) fn each_span(
    thread: &Thread,
    clock: Clock,
    mut each: impl FnMut(u64, Span) -> io::Result<()>,
) -> io::Result<Rest> {
    let mut stack: Vec<(FunctionId, bool)> = Vec::new();
    let mut chain = 0;
    let mut rest = Rest::default();
    for (time, Annotated { event, .. }) in Stamped::new(thread, clock) {
        rest.end = time;
        match event {
            Event::Call(function) => {
                stack.push((function, false));
                each(time, Span::Open(function))?;
            }
            Event::Return => {
                let Some((function, _)) = stack.pop() else {
                    continue;
                };
                each(time, Span::Close(function))?;
                while let Some((function, _)) = stack.pop_if(|(_, handed_over)| *handed_over) {
                    chain -= 1;
                    each(time, Span::Close(function))?;
                }
            }
            Event::Tail => {
                if chain < CHAIN {
                    if let Some(top) = stack.last_mut() {
                        top.1 = true;
                        chain += 1;
                    }
                } else if let Some((function, _)) = stack.pop() {
                    each(time, Span::Close(function))?;
                }
            }
        }
    }
    rest.open = stack.into_iter().map(|(function, _)| function).collect();
    Ok(rest)
}
