//! What the runtime makes of steps: who goes on, who is parked, who lets whom in.
//!
//! A goroutine comes to a step that takes a turn and stops there; a choice of the search lets one of them go. All
//! other steps follow by themselves. Waiting is first come, first served, and a lock is handed over, as it is where
//! usages take turns. Where something comes out otherwise than it did when it was recorded, the goroutine goes on as
//! it (or another) did behind the same line when it came out so; else it leaves by what is usually deferred.

mod objects;

use super::program::{Came, Op, Programs, Step};
use crate::execution::{Action, Execution, GoroutineId, ObjectId, ObjectKind, SiteId};
use crate::script;

/// What ends a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Crash {
    SendToClosed,
    CloseOfClosed,
    NegativeCount,
    UnlockOfUnlocked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Unborn,
    Ready,
    Parked,
    Over,
}

/// Where a goroutine stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Who {
    pub program: u32,
    pub step: u32,
    pub phase: Phase,
    /// Where it goes on behind the body of a `Once` that is another's.
    returns: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Object {
    Channel {
        buffered: u64,
        closed: bool,
    },
    Lock {
        writer: Option<u32>,
        readers: Vec<u32>,
    },
    Group {
        count: i64,
    },
    Cond {
        waiting: Vec<u32>,
        told: Vec<u32>,
    },
    Once {
        begun: bool,
        over: bool,
    },
}

/// All that later steps hang on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Core {
    pub who: Vec<Who>,
    objects: Vec<Object>,
    /// In the order in which they were parked.
    parked: Vec<u32>,
    posted: Vec<bool>,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub core: Core,
    /// Requests that each goroutine has made.
    pub requests: Vec<u32>,
    /// How much of this is a guess.
    pub guesses: u32,
}

/// A turn that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Turn {
    pub who: GoroutineId,
    /// The how many-th request of its own, or behind which.
    pub request: u32,
    /// Whether it goes on behind that request: [`Op::GoOn`], or the clock let it.
    pub behind: bool,
    /// What it is about.
    pub object: Option<ObjectId>,
    pub site: Option<SiteId>,
    /// The case that a `select` is to take, as the runtime counts them.
    pub case: Option<u8>,
}

/// What may happen next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub who: usize,
    pub case: Option<u32>,
    /// Whether the clock or the outside ends its wait.
    pub fires: bool,
}

pub(super) struct Machine<'a> {
    pub execution: &'a Execution,
    pub programs: &'a Programs,
    /// Objects of which something was not seen: what is done with them comes out as it was recorded.
    pub unseen: Vec<bool>,
    /// Objects that one goroutine alone uses: in which order hangs on nobody.
    pub local: Vec<bool>,
}

impl Machine<'_> {
    pub fn start(&self) -> State {
        let who = self.programs.all.iter().enumerate().map(|(at, program)| {
            let phase = if program.is_made {
                Phase::Unborn
            } else if program.steps.is_empty() {
                Phase::Over
            } else {
                Phase::Ready
            };
            Who {
                program: at as u32,
                step: 0,
                phase,
                returns: Vec::new(),
            }
        });
        let object = |kind: &ObjectKind| match kind {
            ObjectKind::Channel { .. } | ObjectKind::Timer => Object::Channel {
                buffered: 0,
                closed: false,
            },
            ObjectKind::Mutex | ObjectKind::RwMutex => Object::Lock {
                writer: None,
                readers: Vec::new(),
            },
            ObjectKind::WaitGroup => Object::Group { count: 0 },
            ObjectKind::Cond => Object::Cond {
                waiting: Vec::new(),
                told: Vec::new(),
            },
            ObjectKind::Once => Object::Once {
                begun: false,
                over: false,
            },
        };
        State {
            requests: vec![0; self.programs.all.len()],
            core: Core {
                who: who.collect(),
                objects: self
                    .execution
                    .objects
                    .iter()
                    .map(|it| object(&it.kind))
                    .collect(),
                parked: Vec::new(),
                posted: vec![false; self.programs.tokens],
            },
            guesses: 0,
        }
    }

    /// The step that a goroutine stands at.
    pub fn step(&self, state: &State, who: usize) -> Option<&Step> {
        let it = state.core.who.get(who)?;
        let program = self.programs.all.get(it.program as usize)?;
        program.steps.get(it.step as usize)
    }

    fn capacity(&self, channel: ObjectId) -> u64 {
        match self.execution.objects.get(channel.0 as usize) {
            Some(it) => match it.kind {
                ObjectKind::Channel { capacity } => capacity,
                _ => 0,
            },
            None => 0,
        }
    }

    /// Whether the clock or something that was not seen ends waits for it.
    pub fn is_outside(&self, object: ObjectId) -> bool {
        let timer = self.execution.objects.get(object.0 as usize);
        timer.is_none_or(|it| it.kind == ObjectKind::Timer)
            || self.unseen.get(object.0 as usize).copied().unwrap_or(true)
    }

    fn is_local(&self, op: &Op) -> bool {
        let local = |it: &ObjectId| self.local.get(it.0 as usize).copied().unwrap_or(false);
        match op {
            Op::Select { cases, .. } => {
                !cases.is_empty()
                    && cases
                        .iter()
                        .all(|it| it.channel.as_ref().is_some_and(local))
            }
            op => op.object().as_ref().is_some_and(local),
        }
    }

    /// What may happen next, once all that follows by itself has happened.
    pub fn choices(&self, state: &State) -> Vec<Choice> {
        let mut choices = Vec::new();
        for (who, it) in state.core.who.iter().enumerate() {
            let Some(step) = self.step(state, who) else {
                continue;
            };
            match (it.phase, &step.op) {
                (Phase::Ready, Op::Select { cases, .. }) => {
                    let mut ready: Vec<u32> = (0..cases.len() as u32)
                        .filter(|case| self.is_ready(state, who, cases[*case as usize]))
                        .collect();
                    // As it was recorded, first.
                    ready.sort_by_key(|case| step.came != Some(Came::Took(Some(*case))));
                    if ready.is_empty() {
                        choices.push(Choice {
                            who,
                            case: None,
                            fires: false,
                        });
                    }
                    choices.extend(ready.into_iter().map(|case| Choice {
                        who,
                        case: Some(case),
                        fires: false,
                    }));
                }
                (Phase::Ready, _) => choices.push(Choice {
                    who,
                    case: None,
                    fires: false,
                }),
                (Phase::Parked, Op::Outside) if step.came.is_some() => {
                    choices.push(Choice {
                        who,
                        case: None,
                        fires: true,
                    });
                }
                (Phase::Parked, Op::Receive(Some(it))) if self.is_timer(*it) => {
                    choices.push(Choice {
                        who,
                        case: None,
                        fires: true,
                    });
                }
                (Phase::Parked, Op::Select { cases, .. }) => {
                    for (case, it) in (0..).zip(cases) {
                        let seen = step.came == Some(Came::Took(Some(case)));
                        let fires = it
                            .channel
                            .is_some_and(|it| self.is_timer(it) || seen && self.is_outside(it));
                        if fires {
                            choices.push(Choice {
                                who,
                                case: Some(case),
                                fires,
                            });
                        }
                    }
                }
                _ => {}
            }
        }
        choices
    }

    fn is_timer(&self, object: ObjectId) -> bool {
        let it = self.execution.objects.get(object.0 as usize);
        it.is_some_and(|it| it.kind == ObjectKind::Timer)
    }

    /// Makes a choice, and all that follows by itself.
    pub fn go(
        &self,
        state: &mut State,
        choice: Choice,
        trail: &mut Vec<Turn>,
    ) -> Result<(), (usize, Crash)> {
        if choice.fires {
            trail.push(Turn {
                who: GoroutineId(choice.who as u32),
                request: state.requests[choice.who],
                behind: true,
                object: None,
                site: self.step(state, choice.who).and_then(|it| it.site),
                case: None,
            });
            let came = match self.step(state, choice.who).map(|it| &it.op) {
                Some(Op::Select { .. }) => Came::Took(choice.case),
                Some(Op::Receive(_)) => Came::Is(true),
                _ => Came::Over,
            };
            self.complete(state, choice.who, came)?;
        } else {
            self.execute(state, choice.who, choice.case, trail)?;
        }
        self.settle(state, trail)
    }

    /// Whatever needs no turn.
    pub fn settle(&self, state: &mut State, trail: &mut Vec<Turn>) -> Result<(), (usize, Crash)> {
        const MOST: usize = 20_000;
        for _ in 0..MOST {
            let ready = (0..state.core.who.len()).find(|who| {
                state.core.who[*who].phase == Phase::Ready
                    && self
                        .step(state, *who)
                        .is_none_or(|it| !it.takes_turn || self.is_local(&it.op))
            });
            match ready {
                Some(who) => self.execute(state, who, None, trail)?,
                None => break,
            }
        }
        Ok(())
    }

    fn execute(
        &self,
        state: &mut State,
        who: usize,
        case: Option<u32>,
        trail: &mut Vec<Turn>,
    ) -> Result<(), (usize, Crash)> {
        let Some(step) = self.step(state, who) else {
            state.core.who[who].phase = Phase::Over;
            return Ok(());
        };
        state.requests[who] += u32::from(step.is_request);
        if step.takes_turn {
            let (object, case) = match &step.op {
                Op::Select { cases, .. } => {
                    let taken = case.and_then(|it| cases.get(it as usize));
                    let object = taken.or(cases.first()).and_then(|it| it.channel);
                    (object, case.and_then(|it| script::index(cases, it)))
                }
                op => (op.object(), None),
            };
            trail.push(Turn {
                who: GoroutineId(who as u32),
                request: state.requests[who],
                behind: step.op == Op::GoOn,
                object,
                site: step.site,
                case,
            });
        }
        let crash = |it: Crash| Err((who, it));
        match &step.op {
            Op::Send(None) | Op::Receive(None) => self.park(state, who),
            Op::Send(Some(it)) | Op::Receive(Some(it)) if self.is_outside(*it) => {
                match step.came {
                    // A timer lets nobody go on before its time.
                    Some(came) if !self.is_timer(*it) => self.complete(state, who, came)?,
                    _ => self.park(state, who),
                }
            }
            Op::Send(Some(channel)) => match self.send(state, who, *channel) {
                Ok(true) => self.complete(state, who, Came::Over)?,
                Ok(false) => self.park(state, who),
                Err(it) => return crash(it),
            },
            Op::Receive(Some(channel)) => match self.receive(state, who, *channel)? {
                Some(ok) => self.complete(state, who, Came::Is(ok))?,
                None => self.park(state, who),
            },
            Op::Close(channel) => {
                let channel = *channel;
                if self.is_outside(channel) {
                    return self.complete(state, who, Came::Over);
                }
                let Object::Channel { closed, .. } = &mut state.core.objects[channel.0 as usize]
                else {
                    return Ok(());
                };
                if std::mem::replace(closed, true) {
                    return crash(Crash::CloseOfClosed);
                }
                self.complete(state, who, Came::Over)?;
                while let Some((other, case)) = self.partner(state, who, channel, Action::Receive) {
                    let came = case.map_or(Came::Is(false), |it| Came::Took(Some(it)));
                    self.complete(state, other, came)?;
                }
                if let Some((other, _)) = self.partner(state, who, channel, Action::Send) {
                    return Err((other, Crash::SendToClosed));
                }
            }
            Op::Select { cases, default } => {
                let chosen = case
                    .or(match step.came {
                        Some(Came::Took(it)) => it,
                        _ => None,
                    })
                    .filter(|it| {
                        let case = cases.get(*it as usize);
                        case.is_some_and(|it| self.is_ready(state, who, *it))
                    })
                    .or_else(|| {
                        (0..cases.len() as u32)
                            .find(|it| self.is_ready(state, who, cases[*it as usize]))
                    });
                match chosen {
                    Some(case) => self.take(state, who, case, cases[case as usize])?,
                    None if *default => self.complete(state, who, Came::Took(None))?,
                    None => self.park(state, who),
                }
            }
            Op::Lock(it) => {
                let Object::Lock { writer, readers } = &mut state.core.objects[it.0 as usize]
                else {
                    return Ok(());
                };
                if writer.is_none() && readers.is_empty() {
                    *writer = Some(who as u32);
                    self.complete(state, who, Came::Over)?;
                } else {
                    self.park(state, who);
                }
            }
            Op::RLock(it) => {
                let it = *it;
                if self.may_read(state, it) {
                    self.reads(state, who, it);
                    self.complete(state, who, Came::Over)?;
                } else {
                    self.park(state, who);
                }
            }
            Op::TryLock(it) => {
                let it = *it;
                let Object::Lock { writer, readers } = &mut state.core.objects[it.0 as usize]
                else {
                    return Ok(());
                };
                let free = writer.is_none() && readers.is_empty();
                if free {
                    *writer = Some(who as u32);
                }
                self.complete(state, who, Came::Is(free))?;
            }
            Op::TryRLock(it) => {
                let it = *it;
                let free = self.may_read(state, it);
                if free {
                    self.reads(state, who, it);
                }
                self.complete(state, who, Came::Is(free))?;
            }
            Op::Unlock(it) => {
                let it = *it;
                if !self.give_back(state, it, who, false)? {
                    return crash(Crash::UnlockOfUnlocked);
                }
                self.complete(state, who, Came::Over)?;
            }
            Op::RUnlock(it) => {
                let it = *it;
                if !self.give_back(state, it, who, true)? {
                    return crash(Crash::UnlockOfUnlocked);
                }
                self.complete(state, who, Came::Over)?;
            }
            Op::Add(it, amount) => {
                let (it, amount) = (*it, *amount);
                let Object::Group { count } = &mut state.core.objects[it.0 as usize] else {
                    return Ok(());
                };
                *count = count.saturating_add(amount);
                let now = *count;
                if now < 0 {
                    return crash(Crash::NegativeCount);
                }
                self.complete(state, who, Came::Over)?;
                if now == 0 {
                    self.wake(state, |op| *op == Op::Wait(it), usize::MAX, Came::Over)?;
                }
            }
            Op::Wait(it) => match state.core.objects[it.0 as usize] {
                Object::Group { count: 0 } => self.complete(state, who, Came::Over)?,
                _ => self.park(state, who),
            },
            Op::CondAdd(it) => {
                if let Object::Cond { waiting, .. } = &mut state.core.objects[it.0 as usize] {
                    waiting.push(who as u32);
                }
                self.complete(state, who, Came::Over)?;
            }
            Op::CondPark(it) => {
                let told = match &mut state.core.objects[it.0 as usize] {
                    Object::Cond { told, .. } => {
                        let at = told.iter().position(|it| *it as usize == who);
                        at.map(|it| told.remove(it))
                    }
                    _ => None,
                };
                match told {
                    Some(_) => self.complete(state, who, Came::Over)?,
                    None => self.park(state, who),
                }
            }
            Op::Signal(it) | Op::Broadcast(it) => {
                let it = *it;
                let all = matches!(step.op, Op::Broadcast(_));
                self.complete(state, who, Came::Over)?;
                self.signal(state, it, all)?;
            }
            Op::OnceBegin(it) => self.once(state, who, *it)?,
            Op::OnceEnd(it) => {
                let it = *it;
                if let Object::Once { over, .. } = &mut state.core.objects[it.0 as usize] {
                    *over = true;
                }
                match state.core.who[who].returns.pop() {
                    Some((program, step)) => {
                        let at = &mut state.core.who[who];
                        (at.program, at.step) = (program, step);
                    }
                    None => self.forward(state, who),
                }
                self.wake(state, |op| *op == Op::OnceBegin(it), usize::MAX, Came::Over)?;
            }
            Op::Go(child) => {
                if let Some(made) = state.core.who.get_mut(child.0 as usize)
                    && made.phase == Phase::Unborn
                {
                    made.phase = Phase::Ready;
                }
                self.forward(state, who);
            }
            Op::Outside => match step.came {
                Some(came) if !step.takes_turn => self.complete(state, who, came)?,
                _ => self.park(state, who),
            },
            Op::Pend(token) => {
                if state.core.posted[*token as usize] {
                    self.complete(state, who, Came::Over)?;
                } else {
                    self.park(state, who);
                }
            }
            Op::Post(token) => {
                let token = *token;
                state.core.posted[token as usize] = true;
                self.forward(state, who);
                self.wake(state, |op| *op == Op::Pend(token), 1, Came::Over)?;
            }
            Op::GoOn | Op::Nothing => self.forward(state, who),
        }
        Ok(())
    }

    fn park(&self, state: &mut State, who: usize) {
        state.core.who[who].phase = Phase::Parked;
        state.core.parked.push(who as u32);
    }

    fn forward(&self, state: &mut State, who: usize) {
        let it = &mut state.core.who[who];
        it.step += 1;
        it.phase = Phase::Ready;
        let length = self.programs.all[it.program as usize].steps.len();
        if it.step as usize >= length && it.returns.is_empty() {
            it.phase = Phase::Over;
        }
    }

    /// The step is over, and this came of it.
    fn complete(&self, state: &mut State, who: usize, came: Came) -> Result<(), (usize, Crash)> {
        state.core.parked.retain(|it| *it as usize != who);
        let Some(step) = self.step(state, who) else {
            return Ok(());
        };
        if step.came == Some(came) {
            self.forward(state, who);
            return Ok(());
        }
        self.otherwise(state, who, came)
    }

    /// It came out otherwise than it did when it was recorded.
    fn otherwise(&self, state: &mut State, who: usize, came: Came) -> Result<(), (usize, Crash)> {
        let at = &state.core.who[who];
        let (program, index) = (at.program as usize, at.step as usize);
        let step = &self.programs.all[program].steps[index];
        let same = |it: &Step| {
            it.site.is_some()
                && it.site == step.site
                && it.came == Some(came)
                && std::mem::discriminant(&it.op) == std::mem::discriminant(&step.op)
        };
        let own = &self.programs.all[program].steps;
        let behind = (index + 1..own.len()).find(|it| same(&own[*it]));
        let before = || (0..index).rev().find(|it| same(&own[*it]));
        let elsewhere = || {
            let mut all = self.programs.all.iter().enumerate();
            all.find_map(|(at, it)| Some((at, it.steps.iter().position(same)?)))
        };
        let found = behind
            .or_else(before)
            .map(|it| (program, it))
            .or_else(elsewhere);
        let it = &mut state.core.who[who];
        if let Some((program, index)) = found {
            (it.program, it.step) = (program as u32, index as u32);
            state.guesses += 1;
            self.forward(state, who);
            return Ok(());
        }
        state.guesses += 2;
        let tail = self.programs.all[program].tail.max(index + 1);
        it.step = tail as u32 - 1;
        self.forward(state, who);
        // Locks that nothing there gives back are taken to be given back, too: else we would find what is not.
        let given: Vec<ObjectId> = own[tail.min(own.len())..]
            .iter()
            .filter_map(|it| match it.op {
                Op::Unlock(it) | Op::RUnlock(it) => Some(it),
                _ => None,
            })
            .collect();
        for at in 0..state.core.objects.len() {
            let object = ObjectId(at as u32);
            let held = match &state.core.objects[at] {
                Object::Lock { writer, readers } => {
                    let reads = readers.contains(&(who as u32));
                    (*writer == Some(who as u32) || reads).then_some(reads)
                }
                _ => None,
            };
            if let Some(reads) = held.filter(|_| !given.contains(&object)) {
                self.give_back(state, object, who, reads)?;
            }
        }
        Ok(())
    }
}
