//! What came before what, by everything but locks: a vector clock for each goroutine.

use crate::execution::{Action, Execution, GoroutineId, ObjectId, What};
use crate::replay::Replay;
use std::collections::VecDeque;
use std::rc::Rc;

/// Above this product of goroutines and events, only a goroutine's own steps are ordered.
const TOO_MUCH: usize = 400_000_000;

/// For each goroutine, the last of its events that is known to be over, plus one.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock(Rc<Vec<u32>>);

impl Clock {
    pub fn has(&self, goroutine: GoroutineId, event: usize) -> bool {
        self.0
            .get(goroutine.0 as usize)
            .is_some_and(|it| *it as usize > event)
    }

    fn set(&mut self, goroutine: GoroutineId, event: usize) {
        let clock = Rc::make_mut(&mut self.0);
        let at = goroutine.0 as usize;
        if clock.len() <= at {
            clock.resize(at + 1, 0);
        }
        clock[at] = event as u32 + 1;
    }

    fn join(&mut self, other: &Self) {
        if Rc::ptr_eq(&self.0, &other.0) || other.0.is_empty() {
            return;
        }
        let clock = Rc::make_mut(&mut self.0);
        if clock.len() < other.0.len() {
            clock.resize(other.0.len(), 0);
        }
        for (own, other) in clock.iter_mut().zip(other.0.iter()) {
            *own = (*own).max(*other);
        }
    }
}

/// What hangs on an object.
#[derive(Debug, Clone, Default)]
struct Passed {
    sent: VecDeque<Clock>,
    received: VecDeque<Clock>,
    /// Of a close, of all `Done`, of the first `Once`.
    over: Clock,
}

pub(super) struct Order {
    clocks: Vec<Clock>,
    passed: Vec<Passed>,
    is_off: bool,
}

impl Order {
    pub fn new(execution: &Execution) -> Self {
        let (goroutines, events) = (execution.goroutines.len(), execution.events.len());
        Self {
            clocks: vec![Clock::default(); goroutines],
            passed: vec![Passed::default(); execution.objects.len()],
            is_off: goroutines.saturating_mul(events) > TOO_MUCH,
        }
    }

    pub fn clock(&self, goroutine: GoroutineId) -> Clock {
        self.clocks
            .get(goroutine.0 as usize)
            .cloned()
            .unwrap_or_default()
    }

    /// Takes in an event; `replay` is the state before it.
    pub fn step(&mut self, replay: &Replay<'_>, index: usize) {
        let event = &replay.execution.events[index];
        let Some(id) = event.goroutine else {
            return;
        };
        if self.is_off || id.0 as usize >= self.clocks.len() {
            return;
        }
        match &event.what {
            What::Create(child) => self.tell(id, *child, index),
            What::Ready(other) => {
                // Who gets a lock after whom is what another schedule changes.
                let unlocks = replay
                    .open(id)
                    .is_some_and(|it| matches!(it.action, Action::Unlock | Action::RUnlock));
                if !unlocks {
                    self.tell(id, *other, index);
                }
            }
            What::Request { action, object, .. } => self.request(id, *action, *object, index),
            What::Complete { action, case, ok } => {
                let open = replay.opened(id);
                let Some(open) = open.iter().rev().find(|it| it.action == *action) else {
                    return;
                };
                let (action, object) = match case.and_then(|it| open.cases.get(it as usize)) {
                    Some(case) => (case.action, case.channel),
                    None => (*action, open.object),
                };
                let from_select = open.action == Action::Select;
                self.complete(replay, id, (action, object, *ok), from_select, index);
            }
            _ => {}
        }
    }

    fn tell(&mut self, from: GoroutineId, to: GoroutineId, index: usize) {
        let mut clock = self.clock(from);
        clock.set(from, index);
        if let Some(to) = self.clocks.get_mut(to.0 as usize) {
            to.join(&clock);
        }
    }

    fn passed(&mut self, object: Option<ObjectId>) -> Option<&mut Passed> {
        self.passed.get_mut(object?.0 as usize)
    }

    fn request(&mut self, id: GoroutineId, action: Action, object: Option<ObjectId>, index: usize) {
        let mut clock = self.clock(id);
        clock.set(id, index);
        let Some(passed) = self.passed(object) else {
            return;
        };
        match action {
            Action::Send => passed.sent.push_back(clock),
            Action::Receive => passed.received.push_back(clock),
            Action::Close | Action::Done => passed.over.join(&clock),
            _ => {}
        }
    }

    fn complete(
        &mut self,
        replay: &Replay<'_>,
        id: GoroutineId,
        (action, object, ok): (Action, Option<ObjectId>, bool),
        from_select: bool,
        index: usize,
    ) {
        let mut own = self.clock(id);
        own.set(id, index);
        let Some(object) = object else {
            return;
        };
        let is_closed = replay.closed(object).is_some();
        let mut heard = None;
        let Some(passed) = self.passed(Some(object)) else {
            return;
        };
        match action {
            Action::Send => {
                if from_select {
                    passed.sent.push_back(own);
                }
                heard = passed.received.pop_front();
            }
            Action::Receive => {
                if from_select {
                    passed.received.push_back(own);
                }
                heard = passed.sent.pop_front();
                if heard.is_none() && (is_closed || !ok) {
                    heard = Some(passed.over.clone());
                }
            }
            Action::Wait => heard = Some(passed.over.clone()),
            Action::Once => {
                passed.over.join(&own);
                heard = Some(passed.over.clone());
            }
            _ => {}
        }
        if let Some(heard) = heard
            && let Some(clock) = self.clocks.get_mut(id.0 as usize)
        {
            clock.join(&heard);
        }
    }
}
