//! Where viewers show events that were not measured: at the time that was read before them or behind them.
//!
//! ```text
//!            10                                       30        times that were read
//!  events:   | return  call f  return  call g  call h |
//!  shown at  | 10      10      10      30      30     |
//! ```
//! What was open before the gap ends at its beginning, and what is open behind it begins at its end: so a call is shown as
//! long as it was there for certain, and no longer. A call that began and ended in the gap has no width.

use crate::kept::Kept;
use crate::spans::Moment;
use lockstep_trace::{Annotated, Event};
use std::collections::VecDeque;

/// Events of a gap that are kept back; of a longer one the first are shown at its beginning.
const MOST: usize = 1 << 16;

/// An event of the gap.
struct Waiting {
    moment: Moment,
    event: Annotated,
    /// Its call began and ended in the gap.
    is_within: bool,
}

/// Events with the time at which they are shown.
pub(crate) struct Placed<'a> {
    events: Kept<'a>,
    folds: bool,
    gap: Vec<Waiting>,
    /// Calls that began in the gap and are open: their places in it, and whether they have handed over.
    open: Vec<(usize, bool)>,
    next: Option<(Moment, Annotated)>,
    ready: VecDeque<(Moment, Annotated)>,
    left_out: u64,
    /// The event before the gap was a hand-over.
    is_handed_over: bool,
}

impl<'a> Placed<'a> {
    pub fn new(events: Kept<'a>, folds: bool) -> Self {
        Self {
            events,
            folds,
            gap: Vec::new(),
            open: Vec::new(),
            next: None,
            ready: VecDeque::new(),
            left_out: 0,
            is_handed_over: false,
        }
    }

    /// Calls that were folded so far.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn wait(&mut self, moment: Moment, event: Annotated) {
        let here = self.gap.len();
        let mut is_within = false;
        match event.event {
            Event::Call(_) => self.open.push((here, false)),
            Event::Tail => {
                if let Some(top) = self.open.last_mut() {
                    top.1 = true;
                }
            }
            Event::Return => {
                let mut next = self.open.pop();
                is_within = next.is_some();
                while let Some((place, _)) = next {
                    self.close(place);
                    next = self.open.pop_if(|(_, handed_over)| *handed_over);
                }
            }
        }
        self.gap.push(Waiting {
            moment,
            event,
            is_within,
        });
    }

    /// The call at this place of the gap has ended in it.
    fn close(&mut self, place: usize) {
        if let Some(call) = self.gap.get_mut(place) {
            call.is_within = true;
        }
    }

    fn flush(&mut self) {
        let switch = self.open.first().map_or(self.gap.len(), |it| it.0);
        let gap = std::mem::take(&mut self.gap);
        // A return may end a call, and one before the gap that handed over to it.
        let has_tail = gap.iter().any(|it| it.event.event == Event::Tail);
        let folds = self.folds && !has_tail && !std::mem::take(&mut self.is_handed_over);
        self.is_handed_over = gap.last().is_some_and(|it| it.event.event == Event::Tail);
        for (at, waiting) in gap.into_iter().enumerate() {
            let Waiting {
                mut moment,
                event,
                is_within,
            } = waiting;
            if folds && is_within && event.arguments.is_none() {
                self.left_out += u64::from(matches!(event.event, Event::Call(_)));
                continue;
            }
            if at >= switch {
                moment.shown = moment.latest.unwrap_or(moment.earliest);
            }
            self.ready.push_back((moment, event));
        }
        self.open.clear();
    }
}

impl Iterator for Placed<'_> {
    type Item = (Moment, Annotated);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Some(found);
            }
            let next = self.next.take().or_else(|| self.events.next());
            let Some((moment, event)) = next else {
                if self.gap.is_empty() {
                    return None;
                }
                self.flush();
                continue;
            };
            let gap = self.gap.first().map(|first| first.moment);
            let is_measured = moment.measured().is_some();
            let goes_on = gap.is_none_or(|gap| gap.is_like(moment));
            if gap.is_some() && (is_measured || !goes_on) {
                self.next = Some((moment, event));
                self.flush();
            } else if is_measured {
                self.is_handed_over = event.event == Event::Tail;
                return Some((moment, event));
            } else if self.gap.len() == MOST {
                self.open.clear();
                self.next = Some((moment, event));
                self.flush();
            } else {
                self.wait(moment, event);
            }
        }
    }
}
