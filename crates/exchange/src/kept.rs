//! The events of the calls that a [`View`] has.

use crate::spans::{Moment, Stamped};
use crate::view::{Edge, View};
use lockstep_trace::{Annotated, Event, FunctionId};
use std::collections::VecDeque;

type Timed = (Moment, Annotated);

/// Leaves out what the view does not have; a return stays as long as one of the calls that it ends is kept.
pub(crate) struct Kept<'a> {
    events: Stamped<'a>,
    view: &'a View,
    has_begun: bool,
    has_ended: bool,
    /// Whether each open call is kept, and has handed over.
    stack: Vec<(bool, bool)>,
    /// How many of them are kept.
    open: u64,
    /// The call before hands over to the next one, if that is kept.
    tail: Option<Timed>,
    ready: VecDeque<Timed>,
}

impl<'a> Kept<'a> {
    pub fn new(events: Stamped<'a>, view: &'a View) -> Self {
        Self {
            events,
            view,
            has_begun: view.from.is_none(),
            has_ended: false,
            stack: Vec::new(),
            open: 0,
            tail: None,
            ready: VecDeque::new(),
        }
    }

    /// Whether the call that comes begins in the window.
    fn is_in(&mut self, moment: Moment, function: FunctionId) -> bool {
        let is_at = |edge: &Option<Edge>| match edge {
            Some(Edge::Call(functions)) => functions.contains(&function),
            Some(Edge::Time(time)) => moment.latest.is_none_or(|it| it >= *time),
            None => false,
        };
        if !self.has_begun {
            self.has_begun = is_at(&self.view.from);
            return self.has_begun;
        }
        self.has_ended |= match &self.view.to {
            // A call that may have been in time is shown.
            Some(Edge::Time(time)) => moment.earliest >= *time,
            to => is_at(to),
        };
        !self.has_ended
    }

    fn call(&mut self, timed: Timed, function: FunctionId) {
        let is_shallow = self
            .view
            .depth
            .is_none_or(|most| (self.stack.len() as u64) < most);
        let is_kept = self.is_in(timed.0, function) && is_shallow;
        let tail = self.tail.take();
        if is_kept {
            self.ready.extend(tail);
            self.ready.push_back(timed);
            self.open += 1;
        }
        self.stack.push((is_kept, false));
    }

    fn end(&mut self, timed: Timed) {
        let mut any = false;
        let mut next = self.stack.pop();
        while let Some((is_kept, _)) = next {
            any |= is_kept;
            self.open -= u64::from(is_kept);
            next = self.stack.pop_if(|(_, handed_over)| *handed_over);
        }
        if any {
            self.ready.push_back(timed);
        }
    }
}

impl Iterator for Kept<'_> {
    type Item = Timed;

    fn next(&mut self) -> Option<Timed> {
        if !self.view.is_part() {
            return self.events.next();
        }
        loop {
            if let Some(timed) = self.ready.pop_front() {
                return Some(timed);
            }
            if self.has_ended && self.open == 0 {
                return None;
            }
            let timed = self.events.next()?;
            match timed.1.event {
                Event::Call(function) => self.call(timed, function),
                Event::Return => self.end(timed),
                Event::Tail => {
                    if let Some(top) = self.stack.last_mut() {
                        top.1 = true;
                        self.tail = Some(timed).filter(|_| top.0);
                    }
                }
            }
        }
    }
}
