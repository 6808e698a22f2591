//! What each goroutine did, as a program of steps that can be gone through again in another order.

use crate::execution::{Action, Case, Execution, GoroutineId, ObjectId, SiteId, WaitReason, What};
use std::collections::HashMap;

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Op {
    Send(Option<ObjectId>),
    Receive(Option<ObjectId>),
    Close(ObjectId),
    Select {
        cases: Vec<Case>,
        default: bool,
    },
    Lock(ObjectId),
    RLock(ObjectId),
    TryLock(ObjectId),
    TryRLock(ObjectId),
    Unlock(ObjectId),
    RUnlock(ObjectId),
    Add(ObjectId, i64),
    Wait(ObjectId),
    /// The first part of `Cond.Wait`: from here on a signal is for it.
    CondAdd(ObjectId),
    /// The second: until one came.
    CondPark(ObjectId),
    Signal(ObjectId),
    Broadcast(ObjectId),
    /// `Once.Do`; whose body this is, and where that ends, is in [`Programs::bodies`].
    OnceBegin(ObjectId),
    OnceEnd(ObjectId),
    Go(GoroutineId),
    /// What ends by the clock or the outside.
    Outside,
    /// Waits outside any usage until a [`Op::Post`] of the same number.
    Pend(u32),
    Post(u32),
    /// Its turn to go on behind a `go` statement, an unlock or a close: what it does to memory comes now.
    GoOn,
    /// Nothing to do: an unknown usage, or `WaitGroup.Add(0)`.
    Nothing,
}

impl Op {
    /// What it is done with, where that is one thing.
    pub fn object(&self) -> Option<ObjectId> {
        match self {
            Self::Send(it) | Self::Receive(it) => *it,
            Self::Close(it)
            | Self::Lock(it)
            | Self::RLock(it)
            | Self::TryLock(it)
            | Self::TryRLock(it)
            | Self::Unlock(it)
            | Self::RUnlock(it)
            | Self::Add(it, _)
            | Self::Wait(it)
            | Self::CondAdd(it)
            | Self::CondPark(it)
            | Self::Signal(it)
            | Self::Broadcast(it)
            | Self::OnceBegin(it)
            | Self::OnceEnd(it) => Some(*it),
            Self::Select { .. }
            | Self::Go(_)
            | Self::Outside
            | Self::Pend(_)
            | Self::Post(_)
            | Self::GoOn
            | Self::Nothing => None,
        }
    }
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    Over,
    /// A case of a `select`; `None` for its default.
    Took(Option<u32>),
    /// Of a receive: whether there was a value. Of a try: whether it locked.
    Is(bool),
}

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub op: Op,
    pub site: Option<SiteId>,
    /// Whether the goroutine waits for its turn before it.
    pub takes_turn: bool,
    /// Whether it counts among its goroutine's own requests.
    pub is_request: bool,
    /// What came of it; `None` where it was not over at the end.
    pub came: Option<Came>,
    /// Index of the event, for the recorded order.
    pub event: usize,
}

/// A goroutine's steps.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    pub steps: Vec<Step>,
    /// Whether somebody's step starts it; else it is there from the beginning.
    pub is_made: bool,
    /// From here on it only gives back, counts down and closes: what is usually deferred.
    pub tail: usize,
}

/// All programs, by goroutine.
#[derive(Debug, Clone, Default)]
pub(super) struct Programs {
    pub all: Vec<Program>,
    /// Of a `Once`: whose steps its body are, from the first to behind the last.
    pub bodies: HashMap<ObjectId, (usize, usize, usize)>,
    pub tokens: usize,
}

impl Programs {
    pub fn of(execution: &Execution) -> Self {
        let mut reading = Reading {
            execution,
            programs: Self {
                all: vec![Program::default(); execution.goroutines.len()],
                ..Self::default()
            },
            open: vec![Vec::new(); execution.goroutines.len()],
            pending: HashMap::new(),
        };
        for index in 0..execution.events.len() {
            reading.take(index);
        }
        let mut programs = reading.programs;
        for program in &mut programs.all {
            let gives = |it: &Step| {
                matches!(
                    it.op,
                    Op::Unlock(_)
                        | Op::RUnlock(_)
                        | Op::Close(_)
                        | Op::OnceEnd(_)
                        | Op::Post(_)
                        | Op::GoOn
                        | Op::Nothing
                ) || matches!(it.op, Op::Add(_, amount) if amount < 0)
            };
            let given = program.steps.iter().rev().take_while(|it| gives(it));
            program.tail = program.steps.len() - given.count();
        }
        programs
    }

    pub fn len(&self) -> usize {
        self.all.iter().map(|it| it.steps.len()).sum()
    }
}

struct Reading<'a> {
    execution: &'a Execution,
    programs: Programs,
    /// Usages that are not over: action and step.
    open: Vec<Vec<(Action, usize)>>,
    /// Goroutines that wait outside any usage: the number of the wait and its step.
    pending: HashMap<GoroutineId, (u32, usize)>,
}

impl Reading<'_> {
    fn push(&mut self, id: GoroutineId, op: Op, index: usize) -> usize {
        let event = &self.execution.events[index];
        let steps = &mut self.programs.all[id.0 as usize].steps;
        steps.push(Step {
            op,
            site: event.site,
            takes_turn: false,
            is_request: false,
            came: Some(Came::Over),
            event: index,
        });
        steps.len() - 1
    }

    fn is_known(&self, id: GoroutineId) -> bool {
        self.execution
            .goroutines
            .get(id.0 as usize)
            .is_some_and(|it| !it.is_system)
    }

    fn take(&mut self, index: usize) {
        let execution = self.execution;
        let event = &execution.events[index];
        if let What::Ready(other) = event.what {
            self.readied(event.goroutine, other, index);
        }
        let Some(id) = event.goroutine.filter(|it| self.is_known(*it)) else {
            return;
        };
        match &event.what {
            What::Create(child) => {
                if let Some(made) = self.programs.all.get_mut(child.0 as usize) {
                    made.is_made = true;
                    self.push(id, Op::Go(*child), index);
                }
            }
            What::Request {
                action: Action::Go, ..
            } => {}
            What::Request { action, .. } => {
                if *action == Action::Lock {
                    self.parks_in_cond(id, index);
                }
                let op = self.op(&event.what);
                let action = *action;
                let step = self.push(id, op, index);
                let gives = matches!(action, Action::Unlock | Action::RUnlock);
                let on_behalf = matches!(event.what, What::Request { on_behalf, .. } if on_behalf);
                let made = &mut self.programs.all[id.0 as usize].steps[step];
                made.came = None;
                made.is_request = true;
                made.takes_turn = !gives && !on_behalf;
                self.open[id.0 as usize].push((action, step));
            }
            What::GoesOn => {
                let step = self.push(id, Op::GoOn, index);
                let steps = &mut self.programs.all[id.0 as usize].steps;
                steps[step].takes_turn = true;
                steps[step].site = step.checked_sub(1).and_then(|it| steps[it].site);
            }
            What::Complete { action, case, ok } => self.complete(id, *action, *case, *ok, index),
            What::Park(WaitReason::Cond) => self.parks_in_cond(id, index),
            What::Park(_) if self.open[id.0 as usize].is_empty() => {
                let token = self.programs.tokens as u32;
                self.programs.tokens += 1;
                let step = self.push(id, Op::Pend(token), index);
                self.programs.all[id.0 as usize].steps[step].came = None;
                self.pending.insert(id, (token, step));
            }
            _ => {}
        }
    }

    fn op(&self, what: &What) -> Op {
        let What::Request {
            action,
            object,
            cases,
            default,
            amount,
            ..
        } = what
        else {
            return Op::Nothing;
        };
        match (action, *object) {
            (Action::Send, object) => Op::Send(object),
            (Action::Receive, object) => Op::Receive(object),
            (Action::Select, _) => Op::Select {
                cases: cases.clone(),
                default: *default,
            },
            (Action::Sleep, _) => Op::Outside,
            (_, None) => Op::Nothing,
            (Action::Close, Some(it)) => Op::Close(it),
            (Action::Lock, Some(it)) => Op::Lock(it),
            (Action::RLock, Some(it)) => Op::RLock(it),
            (Action::TryLock, Some(it)) => Op::TryLock(it),
            (Action::TryRLock, Some(it)) => Op::TryRLock(it),
            (Action::Unlock, Some(it)) => Op::Unlock(it),
            (Action::RUnlock, Some(it)) => Op::RUnlock(it),
            (Action::Add, Some(it)) => Op::Add(it, *amount),
            (Action::Done, Some(it)) => Op::Add(it, -1),
            (Action::Wait, Some(it)) => Op::Wait(it),
            (Action::CondWait, Some(it)) => Op::CondAdd(it),
            (Action::Signal, Some(it)) => Op::Signal(it),
            (Action::Broadcast, Some(it)) => Op::Broadcast(it),
            (Action::Once, Some(it)) => Op::OnceBegin(it),
            _ => Op::Nothing,
        }
    }

    /// The wait proper of a `Cond.Wait` stands between giving the lock back and taking it again.
    fn parks_in_cond(&mut self, id: GoroutineId, index: usize) {
        let Some(&(Action::CondWait, begun)) = self.open[id.0 as usize].last() else {
            return;
        };
        let steps = &self.programs.all[id.0 as usize].steps;
        let Op::CondAdd(cond) = steps[begun].op else {
            return;
        };
        if !steps[begun..].iter().any(|it| it.op == Op::CondPark(cond)) {
            let step = self.push(id, Op::CondPark(cond), index);
            self.programs.all[id.0 as usize].steps[step].came = None;
        }
        let steps = &mut self.programs.all[id.0 as usize].steps;
        let is_woken = matches!(self.execution.events[index].what, What::Request { .. });
        if is_woken && let Some(it) = steps.iter_mut().rfind(|it| it.op == Op::CondPark(cond)) {
            it.came = Some(Came::Over);
        }
        steps[begun].came = Some(Came::Over);
    }

    fn complete(
        &mut self,
        id: GoroutineId,
        action: Action,
        case: Option<u32>,
        ok: bool,
        index: usize,
    ) {
        let open = &mut self.open[id.0 as usize];
        let Some(at) = open.iter().rposition(|it| it.0 == action) else {
            return;
        };
        let (_, step) = open[at];
        open.truncate(at);
        let steps = &mut self.programs.all[id.0 as usize].steps;
        let last = steps.len() - 1;
        let Some(it) = steps.get_mut(step) else {
            return;
        };
        it.came = Some(match action {
            Action::Select => Came::Took(case),
            Action::Receive | Action::TryLock | Action::TryRLock => Came::Is(ok),
            _ => Came::Over,
        });
        if let Op::OnceBegin(once) = it.op
            && steps[step + 1..].iter().any(|it| it.op != Op::GoOn)
        {
            self.push(id, Op::OnceEnd(once), index);
            self.programs
                .bodies
                .entry(once)
                .or_insert((id.0 as usize, step + 1, last + 1));
        }
    }

    fn readied(&mut self, by: Option<GoroutineId>, other: GoroutineId, index: usize) {
        let Some((token, step)) = self.pending.remove(&other) else {
            return;
        };
        self.programs.all[other.0 as usize].steps[step].came = Some(Came::Over);
        match by.filter(|it| self.is_known(*it)) {
            Some(by) => {
                self.push(by, Op::Post(token), index);
            }
            None => self.programs.all[other.0 as usize].steps[step].op = Op::Outside,
        }
    }
}
