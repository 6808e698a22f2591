//! What goroutines do with objects: who lets whom in, in a channel, a lock, a group, a condition, a `Once`.

use super::super::program::{Came, Op};
use super::{Crash, Machine, Object, Phase, State};
use crate::execution::{Action, Case, ObjectId};

impl Machine<'_> {
    /// Completes up to `most` of those that wait at such a step.
    pub(super) fn wake(
        &self,
        state: &mut State,
        at: impl Fn(&Op) -> bool,
        most: usize,
        came: Came,
    ) -> Result<(), (usize, Crash)> {
        let waiting: Vec<usize> = state
            .core
            .parked
            .iter()
            .map(|it| *it as usize)
            .filter(|it| self.step(state, *it).is_some_and(|it| at(&it.op)))
            .take(most)
            .collect();
        for who in waiting {
            self.complete(state, who, came)?;
        }
        Ok(())
    }

    /// Who waits to do that at a channel, the first, and with which case.
    pub(super) fn partner(
        &self,
        state: &State,
        but: usize,
        channel: ObjectId,
        action: Action,
    ) -> Option<(usize, Option<u32>)> {
        let parked = state.core.parked.iter().map(|it| *it as usize);
        parked
            .filter(|it| *it != but)
            .find_map(|who| match &self.step(state, who)?.op {
                Op::Send(Some(it)) if action == Action::Send && *it == channel => Some((who, None)),
                Op::Receive(Some(it)) if action == Action::Receive && *it == channel => {
                    Some((who, None))
                }
                Op::Select { cases, .. } => {
                    let case = cases
                        .iter()
                        .position(|it| it.channel == Some(channel) && it.action == action)?;
                    Some((who, Some(case as u32)))
                }
                _ => None,
            })
    }

    pub(super) fn channel<'s>(
        &self,
        state: &'s mut State,
        channel: ObjectId,
    ) -> Option<(&'s mut u64, bool)> {
        match &mut state.core.objects[channel.0 as usize] {
            Object::Channel { buffered, closed } => Some((buffered, *closed)),
            _ => None,
        }
    }

    pub(super) fn send(
        &self,
        state: &mut State,
        who: usize,
        channel: ObjectId,
    ) -> Result<bool, Crash> {
        let Some((_, closed)) = self.channel(state, channel) else {
            return Ok(false);
        };
        if closed {
            return Err(Crash::SendToClosed);
        }
        if let Some((other, case)) = self.partner(state, who, channel, Action::Receive) {
            let came = case.map_or(Came::Is(true), |it| Came::Took(Some(it)));
            return self
                .complete(state, other, came)
                .map(|()| true)
                .map_err(|it| it.1);
        }
        let capacity = self.capacity(channel);
        match self.channel(state, channel) {
            Some((buffered, _)) if *buffered < capacity => {
                *buffered += 1;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    pub(super) fn receive(
        &self,
        state: &mut State,
        who: usize,
        channel: ObjectId,
    ) -> Result<Option<bool>, (usize, Crash)> {
        let sender = self.partner(state, who, channel, Action::Send);
        let Some((buffered, closed)) = self.channel(state, channel) else {
            return Ok(None);
        };
        let had = *buffered > 0;
        if had && sender.is_none() {
            *buffered -= 1;
        }
        if let Some((other, case)) = sender {
            // A full buffer gives one away and takes the waiting one in.
            let came = case.map_or(Came::Over, |it| Came::Took(Some(it)));
            self.complete(state, other, came)?;
            return Ok(Some(true));
        }
        Ok(match (had, closed) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        })
    }

    pub(super) fn is_ready(&self, state: &State, who: usize, case: Case) -> bool {
        let Some(channel) = case.channel else {
            return false;
        };
        if self.is_outside(channel) {
            let took = self
                .step(state, who)
                .and_then(|step| match (&step.op, step.came) {
                    (Op::Select { cases, .. }, Some(Came::Took(Some(it)))) => {
                        cases.get(it as usize)
                    }
                    _ => None,
                });
            return !self.is_timer(channel) && took == Some(&case);
        }
        let Object::Channel { buffered, closed } = state.core.objects[channel.0 as usize] else {
            return false;
        };
        match case.action {
            Action::Send => {
                closed
                    || buffered < self.capacity(channel)
                    || self.partner(state, who, channel, Action::Receive).is_some()
            }
            _ => {
                closed || buffered > 0 || self.partner(state, who, channel, Action::Send).is_some()
            }
        }
    }

    pub(super) fn take(
        &self,
        state: &mut State,
        who: usize,
        number: u32,
        case: Case,
    ) -> Result<(), (usize, Crash)> {
        if let Some(channel) = case.channel.filter(|it| !self.is_outside(*it)) {
            match case.action {
                Action::Send => {
                    self.send(state, who, channel).map_err(|it| (who, it))?;
                }
                _ => {
                    self.receive(state, who, channel)?;
                }
            }
        }
        self.complete(state, who, Came::Took(Some(number)))
    }

    pub(super) fn may_read(&self, state: &State, lock: ObjectId) -> bool {
        let free = matches!(
            state.core.objects[lock.0 as usize],
            Object::Lock { writer: None, .. }
        );
        let pending = state.core.parked.iter().any(|it| {
            let step = self.step(state, *it as usize);
            step.is_some_and(|it| it.op == Op::Lock(lock))
        });
        free && !pending
    }

    pub(super) fn reads(&self, state: &mut State, who: usize, lock: ObjectId) {
        if let Object::Lock { readers, .. } = &mut state.core.objects[lock.0 as usize] {
            readers.push(who as u32);
        }
    }

    /// Gives a lock back and lets in whoever waits; false where nobody had it.
    pub(super) fn give_back(
        &self,
        state: &mut State,
        lock: ObjectId,
        who: usize,
        reading: bool,
    ) -> Result<bool, (usize, Crash)> {
        let Object::Lock { writer, readers } = &mut state.core.objects[lock.0 as usize] else {
            return Ok(true);
        };
        if reading {
            let own = readers.iter().position(|it| *it as usize == who);
            let Some(at) = own.or_else(|| readers.len().checked_sub(1)) else {
                return Ok(false);
            };
            readers.remove(at);
            if !readers.is_empty() {
                return Ok(true);
            }
        } else {
            if writer.take().is_none() {
                return Ok(false);
            }
            let waiting: Vec<usize> = state
                .core
                .parked
                .iter()
                .map(|it| *it as usize)
                .filter(|it| {
                    self.step(state, *it)
                        .is_some_and(|it| it.op == Op::RLock(lock))
                })
                .collect();
            for reader in &waiting {
                self.reads(state, *reader, lock);
                self.complete(state, *reader, Came::Over)?;
            }
            if !waiting.is_empty() {
                return Ok(true);
            }
        }
        let next = state.core.parked.iter().map(|it| *it as usize).find(|it| {
            let step = self.step(state, *it);
            step.is_some_and(|it| it.op == Op::Lock(lock))
        });
        if let Some(next) = next {
            if let Object::Lock { writer, .. } = &mut state.core.objects[lock.0 as usize] {
                *writer = Some(next as u32);
            }
            self.complete(state, next, Came::Over)?;
        }
        Ok(true)
    }

    pub(super) fn signal(
        &self,
        state: &mut State,
        cond: ObjectId,
        all: bool,
    ) -> Result<(), (usize, Crash)> {
        let Object::Cond { waiting, told } = &mut state.core.objects[cond.0 as usize] else {
            return Ok(());
        };
        let count = if all {
            waiting.len()
        } else {
            waiting.len().min(1)
        };
        told.extend(waiting.drain(..count));
        loop {
            let next = state.core.parked.iter().copied().find(|it| {
                let at_it = self.step(state, *it as usize);
                let is_told = match &state.core.objects[cond.0 as usize] {
                    Object::Cond { told, .. } => told.contains(it),
                    _ => false,
                };
                is_told && at_it.is_some_and(|it| it.op == Op::CondPark(cond))
            });
            let Some(next) = next else {
                return Ok(());
            };
            if let Object::Cond { told, .. } = &mut state.core.objects[cond.0 as usize] {
                told.retain(|it| *it != next);
            }
            self.complete(state, next as usize, Came::Over)?;
        }
    }

    pub(super) fn once(
        &self,
        state: &mut State,
        who: usize,
        once: ObjectId,
    ) -> Result<(), (usize, Crash)> {
        let Object::Once { begun, over } = &mut state.core.objects[once.0 as usize] else {
            return Ok(());
        };
        let at = &state.core.who[who];
        let (program, step) = (at.program, at.step);
        let body = self.programs.bodies.get(&once).copied();
        let own = body.filter(|it| it.0 == program as usize && it.1 == step as usize + 1);
        match (*begun, *over, body) {
            (false, _, None) => {
                (*begun, *over) = (true, true);
                self.complete(state, who, Came::Over)
            }
            (false, _, Some((by, from, _))) => {
                *begun = true;
                let it = &mut state.core.who[who];
                if own.is_none() {
                    it.returns.push((program, step + 1));
                    (it.program, it.step) = (by as u32, from as u32);
                } else {
                    it.step += 1;
                }
                it.phase = Phase::Ready;
                Ok(())
            }
            (true, true, _) => {
                if let Some((_, _, end)) = own {
                    let it = &mut state.core.who[who];
                    it.step = end as u32;
                    self.forward(state, who);
                    return Ok(());
                }
                self.complete(state, who, Came::Over)
            }
            (true, false, _) => {
                self.park(state, who);
                Ok(())
            }
        }
    }
}
