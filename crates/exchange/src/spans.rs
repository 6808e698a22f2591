//! Traces as timelines: calls that begin and end at a time, in the nested view of `lockstep events`.
//!
//! ```text
//!  events with their bounds ── Kept (window, depth) ── Placed (where viewers show them) ── each_span
//! ```

use crate::kept::Kept;
use crate::placed::Placed;
use crate::view::View;
use lockstep_comm::{Messages, Talk};
use lockstep_trace::{Annotated, Argument, Event, FunctionId, Run, Thread, Timeline, When};
use std::io;
use std::time::Duration;

/// What the times in a timeline are.
#[derive(Debug)]
pub(crate) enum Clock {
    /// Nanoseconds since the run began on the trace's host.
    Recorded,
    /// Events of the same trace before it, and what was sent before it was received.
    Logical(Messages),
}

/// Whether times were recorded for all of `threads`.
pub(crate) fn have_times(threads: &[&Thread]) -> bool {
    !threads.is_empty() && threads.iter().all(|thread| thread.timeline().is_some())
}

/// The deepest chain of calls that handed over to each other and is shown nested; in a longer one the
/// innermost end where they hand over, so that a loop of tail calls needs no more memory.
const CHAIN: usize = 1 << 20;

impl Clock {
    /// Recorded times, where all of `threads` have them.
    pub fn of(run: &Run, threads: &[&Thread]) -> Self {
        if have_times(threads) {
            Self::Recorded
        } else {
            Self::Logical(Messages::new(&Talk::new(run, threads)))
        }
    }

    /// The same, where it was read before what they told each other.
    pub fn by(talk: &Talk, threads: &[&Thread]) -> Self {
        if have_times(threads) {
            Self::Recorded
        } else {
            Self::Logical(Messages::new(talk))
        }
    }

    /// What is needed to find a window of one trace.
    pub fn for_windows(thread: &Thread) -> Self {
        if have_times(&[thread]) {
            Self::Recorded
        } else {
            Self::Logical(Messages::default())
        }
    }

    /// Its name in files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Logical(_) => "logical",
        }
    }

    /// For people.
    pub fn sentence(&self) -> String {
        match self {
            Self::Recorded => {
                "times are nanoseconds: a call that was not measured stands at the time that was read before or behind \
                 it"
                    .to_owned()
            }
            Self::Logical(messages) => {
                let rule = match messages.matched {
                    0 => String::new(),
                    matched => {
                        format!(", and more where {matched} messages and collectives came later")
                    }
                };
                format!(
                    "no times were recorded for all of these traces: the time of an event is the number of events before it in its trace{rule}"
                )
            }
        }
    }
}

/// When an event was, in the clock's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// It was not before.
    pub earliest: u64,
    /// It was not after; `None` where no time was read behind it.
    pub latest: Option<u64>,
    /// Where a viewer shows it.
    pub shown: u64,
}

impl Moment {
    pub const fn known(time: u64) -> Self {
        Self {
            earliest: time,
            latest: Some(time),
            shown: time,
        }
    }

    /// The time, where it was measured.
    pub fn measured(self) -> Option<u64> {
        self.latest.filter(|latest| *latest == self.earliest)
    }

    /// Whether nothing was measured between the two.
    pub fn is_like(self, other: Self) -> bool {
        (self.earliest, self.latest) == (other.earliest, other.latest)
    }
}

/// Events with their times, which never run backwards.
pub(crate) struct Stamped<'a> {
    events: lockstep_trace::Arguments<'a>,
    timeline: Option<Timeline<'a>>,
    /// Of a logical clock: from which event on the time is by how much more.
    shifts: &'a [(u64, u64)],
    shift: u64,
    now: u64,
}

impl<'a> Stamped<'a> {
    pub fn new(thread: &'a Thread, clock: &'a Clock) -> Self {
        let first = thread.times.as_ref().and_then(lockstep_trace::Times::first);
        let (timeline, shifts, now) = match clock {
            Clock::Recorded => (thread.timeline(), &[][..], first.map_or(0, nanoseconds)),
            Clock::Logical(messages) => (None, messages.of(thread.name), 0),
        };
        Self {
            events: thread.arguments(),
            timeline,
            shifts,
            shift: 0,
            now,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Iterator for Stamped<'_> {
    type Item = (Moment, Annotated);

    fn next(&mut self) -> Option<Self::Item> {
        let event = self.events.next()?;
        let moment = match &mut self.timeline {
            Some(timeline) => {
                let when: When = timeline.at(event.symbols);
                self.now = self.now.max(nanoseconds(when.earliest()));
                Moment {
                    earliest: self.now,
                    latest: when.latest().map(|it| nanoseconds(it).max(self.now)),
                    shown: self.now,
                }
            }
            None => {
                while let Some(((at, shift), rest)) = self.shifts.split_first()
                    && *at <= event.index
                {
                    (self.shift, self.shifts) = (*shift, rest);
                }
                Moment::known(event.index.saturating_add(self.shift))
            }
        };
        Some((moment, event))
    }
}

/// A call begins or ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Span<'a> {
    /// It begins, with these arguments.
    Open(FunctionId, Option<&'a [Argument]>),
    /// It ends, and gives this back.
    Close(FunctionId, Option<&'a [Argument]>),
}

/// What is left at the end of a trace.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// Time of the last event.
    pub end: u64,
    /// Calls that never returned, outermost first.
    pub open: Vec<FunctionId>,
    /// Calls that are not shown, since nothing was measured while they ran.
    pub left_out: u64,
}

/// Gives every begin and end of a call that `view` has to `each`, in order, with its time and the event that it is of. A
/// return without a call (a stack inherited by `fork`) is left out. Memory: the open calls, and those between two times.
pub(crate) fn each_span(
    thread: &Thread,
    clock: &Clock,
    view: &View,
    mut each: impl FnMut(Moment, Span<'_>, &Annotated) -> io::Result<()>,
) -> io::Result<Rest> {
    let mut stack: Vec<(FunctionId, bool)> = Vec::new();
    let mut chain = 0;
    let mut rest = Rest::default();
    let kept = Kept::new(Stamped::new(thread, clock), view);
    let mut placed = Placed::new(kept, view.folds);
    for (time, event) in placed.by_ref() {
        rest.end = time.shown;
        let arguments = event.arguments.as_deref();
        match event.event {
            Event::Call(function) => {
                stack.push((function, false));
                each(time, Span::Open(function, arguments), &event)?;
            }
            Event::Return => {
                let Some((function, _)) = stack.pop() else {
                    continue;
                };
                each(time, Span::Close(function, arguments), &event)?;
                while let Some((function, _)) = stack.pop_if(|(_, handed_over)| *handed_over) {
                    chain -= 1;
                    each(time, Span::Close(function, None), &event)?;
                }
            }
            Event::Tail => {
                if chain < CHAIN {
                    if let Some(top) = stack.last_mut() {
                        top.1 = true;
                        chain += 1;
                    }
                } else if let Some((function, _)) = stack.pop() {
                    each(time, Span::Close(function, None), &event)?;
                }
            }
        }
    }
    rest.left_out = placed.left_out();
    rest.open = stack.into_iter().map(|(function, _)| function).collect();
    Ok(rest)
}
