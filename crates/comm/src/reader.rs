//! Reads the calls of MPI of a thread: in detail, and what it says again as turns, which cost one look-up a call.

use crate::communicators::{EventsOf, Resolver, Unresolved};
use crate::conversation::Conversation;
use crate::message::CommunicatorId;
use crate::observer::Observer;
use crate::routines::Routines;
use crate::said::{Marks, Over, Rest, Said};
use crate::turn::{BEGIN, Exchange, Tail, Then, Turn, Turns};
use crate::windows::Windows;
use lockstep_trace::{Event, FunctionId, Lap, RecordKey, TraceName};
use std::sync::Arc;

/// Reads a thread, as far as it goes.
#[derive(Debug)]
pub struct Reader<O> {
    said: Said<O>,
    /// What follows on that.
    tail: Tail,
    turns: Turns,
    /// Changes to handles that the turns know of, and how many were freed.
    changes: (u64, u64),
    /// Whether turns are looked for.
    learns: bool,
    lesson: Option<Lesson>,
    /// Calls of a turn that may be one that is known, and what they gave back; so far within it.
    within: Vec<(Unresolved, usize)>,
    place: u32,
    /// A call of which it is not seen yet what it gives back.
    held: Option<(Unresolved, usize)>,
    /// Calls of turns that were known again.
    again: u64,
}

/// What a thread said, the windows that it made, and what was observed.
pub type Told<O> = (Conversation, Windows, O);

/// Calls that may be a turn.
#[derive(Debug)]
struct Lesson {
    operation: usize,
    part: usize,
    before: Marks,
    exchanges: Vec<Exchange>,
    records: Vec<RecordKey>,
}

/// A thread that does nothing that others could notice: it asks for the same, or looks what a window holds.
struct Standstill<R> {
    calls: u32,
    /// Where a round of it began, how the thread stood there, and how often it had asked by each function.
    since: Option<(Lap, Rest<R>, Vec<u64>)>,
}

/// So many calls until it is looked at whether they go round.
const OFTEN: u32 = 512;

impl<R: PartialEq> Standstill<R> {
    const fn new() -> Self {
        Self {
            calls: 0,
            since: None,
        }
    }

    /// It made one more call; passes over what is sure to be the same.
    fn again<F: Fn(FunctionId) -> bool, O: Observer<Rest = R>>(
        &mut self,
        said: &mut Said<O>,
        events: &mut EventsOf<'_, F>,
    ) {
        self.calls += 1;
        if let Some((lap, rest, count)) = &self.since {
            if events.is_over(lap) {
                if *rest == said.rest(events.resolver()) {
                    let times = events.pass(lap).unwrap_or(0);
                    said.polls.repeat(count, times);
                }
                self.since = None;
            }
        } else if self.calls.is_multiple_of(OFTEN)
            && let Some(lap) = events.lap()
        {
            let rest = said.rest(events.resolver());
            self.since = Some((lap, rest, said.polls.count()));
        }
    }
}

/// Calls that a turn may have.
const LONGEST: usize = 64;

impl<O: Observer> Reader<O> {
    /// At the beginning of a thread. Ids of communicators from `windows` on are free; `learns` says whether turns that
    /// come again are known again.
    pub fn new(
        trace: TraceName,
        windows: u32,
        world: Option<CommunicatorId>,
        learns: bool,
    ) -> Self {
        Self {
            said: Said::new(trace, Windows::new(windows), world),
            tail: Tail::default(),
            turns: Turns::default(),
            changes: (0, 0),
            learns,
            lesson: None,
            within: Vec::new(),
            place: BEGIN,
            held: None,
            again: 0,
        }
    }

    /// Takes in more events of the thread, those of calls of MPI.
    pub fn read<F: Fn(FunctionId) -> bool>(
        &mut self,
        routines: &Routines,
        events: &mut EventsOf<'_, F>,
    ) {
        self.read_until(usize::MAX, routines, events);
    }

    /// The same, but no more once so many operations are kept; whether there may be more.
    pub fn read_until<F: Fn(FunctionId) -> bool>(
        &mut self,
        most: usize,
        routines: &Routines,
        events: &mut EventsOf<'_, F>,
    ) -> bool {
        let mut still = Standstill::new();
        let mut goes_on = true;
        while goes_on && self.operations() < most {
            let Some((event, depth)) = events.next_unresolved() else {
                goes_on = false;
                continue;
            };
            // A call may be one that came before: what it gave back tells.
            if let Some((call, around)) = self.held.take() {
                if depth < around {
                    if self.within.is_empty()
                        && self.said.polls.again(&call.annotated, &event.annotated)
                    {
                        still.again(&mut self.said, events);
                        continue;
                    }
                    let exchange = Exchange::new(&call, &event);
                    let then = self.known(exchange);
                    if let Some(Then::Nothing { .. }) = then
                        && self.within.is_empty()
                    {
                        still.again(&mut self.said, events);
                    } else if then.is_some() {
                        still = Standstill::new();
                    }
                    if let Some(then) = then {
                        self.go_on(then, (call, around), (event, depth));
                        continue;
                    }
                }
                self.in_detail(routines, events.resolver(), (call, around));
            }
            let is_call = matches!(event.annotated.event, Event::Call(_));
            if is_call && !self.said.is_in_a_call() {
                self.held = Some((event, depth));
            } else {
                self.in_detail(routines, events.resolver(), (event, depth));
                if !self.said.is_in_a_call() {
                    still.again(&mut self.said, events);
                }
            }
        }
        self.lesson = None;
        goes_on
    }

    /// What is kept in detail: all of it, where turns are not looked for.
    pub fn kept(&self) -> &Conversation {
        &self.said.conversation
    }

    /// What comes of a call, if that came before.
    fn known(&self, exchange: Exchange) -> Option<Then> {
        let is_late = self.said.conversation.finalized;
        // Who receives what a probe found does not wait, as another time it may.
        let has_found = self.said.has_found();
        let is_begun = !has_found && (self.place != BEGIN || !self.said.has_requests());
        let then = self.turns.then(self.place, exchange)?;
        (!is_late && (is_begun || matches!(then, Then::Nothing { .. }))).then_some(then)
    }

    /// Takes in a call that came before.
    fn go_on(&mut self, then: Then, call: (Unresolved, usize), given: (Unresolved, usize)) {
        match then {
            Then::Nothing { doubts, hears } => {
                if doubts {
                    self.said.polls.doubt();
                }
                if hears {
                    let accesses = self.said.conversation.accesses.get_or_insert_default();
                    accesses.hear();
                }
            }
            Then::Within(place) => {
                self.said.goes_on();
                self.lesson = None;
                self.said.polls.doubt();
                self.within.extend([call, given]);
                self.place = place;
            }
            Then::Over(turn) => {
                self.said.goes_on();
                self.lesson = None;
                self.said.polls.doubt();
                self.said.polls.forget();
                let accesses = self.said.conversation.accesses.get_or_insert_default();
                if let Some(turn) = self.tail.turn(turn) {
                    accesses.meet(turn.met);
                    if turn.hears {
                        accesses.hear();
                    }
                }
                self.again += self.within.len() as u64 / 2 + 1;
                let calls = self.within.iter().step_by(2);
                let calls = calls.map(|(call, _)| call.annotated.index);
                self.tail.events.extend(calls);
                self.tail.events.push_back(call.0.annotated.index);
                self.tail.turns.push_back(turn);
                self.within.clear();
                self.place = BEGIN;
            }
        }
    }

    /// Takes in an event, and before it what was thought to be a turn that is known.
    fn in_detail(
        &mut self,
        routines: &Routines,
        resolver: &mut Resolver<'_>,
        event: (Unresolved, usize),
    ) {
        self.place = BEGIN;
        for before in std::mem::take(&mut self.within) {
            self.say(routines, resolver, before);
        }
        self.say(routines, resolver, event);
    }

    fn say(
        &mut self,
        routines: &Routines,
        resolver: &mut Resolver<'_>,
        event: (Unresolved, usize),
    ) {
        if !self.tail.turns.is_empty() {
            self.tail.tell(&mut self.said.conversation);
            self.tail.turns.clear();
            self.tail.events.clear();
        }
        let is_idle = !self.said.is_in_a_call() && !self.said.has_requests();
        if self.learns && is_idle && self.lesson.is_none() {
            self.lesson = Some(Lesson {
                operation: self.said.conversation.operations.len(),
                part: self.said.conversation.parts.len(),
                before: self.said.marks(resolver),
                exchanges: Vec::new(),
                records: Vec::new(),
            });
        }
        let is_open = self.said.is_in_a_call();
        let over = self.said.event(routines, resolver, event);
        let is_nested = is_open && self.said.is_in_a_call();
        match over {
            Some(over) => self.learn(resolver, over),
            _ if is_nested => self.lesson = None,
            _ => {}
        }
        // What handles stand for is not what it was.
        let freed = self.said.changes().1;
        let changes = (resolver.mark().changes, freed);
        if changes != self.changes || self.turns.is_full() {
            self.changes = changes;
            self.turns = Turns::default();
            self.tail.known.clear();
            self.lesson = None;
        }
    }

    /// A call is over, and may be the last of a turn.
    fn learn(&mut self, resolver: &Resolver<'_>, over: Over) {
        let Over {
            before,
            given,
            is_plain,
            tells,
        } = over;
        let exchange = Exchange::new(&before.call, &given);
        let records = [before.call.annotated.key(), given.annotated.key()];
        let records = records.into_iter().flatten();
        let (said, now) = (&self.said.conversation, self.said.marks(resolver));
        if said.operations.len() == before.operations {
            let heard = before.marks.met.1;
            let met = (now.met.0, heard);
            if is_plain && before.marks == (Marks { met, ..now }) {
                let then = Then::Nothing {
                    doubts: !tells,
                    hears: now.met.1 != heard,
                };
                self.turns.learn_nothing(exchange, records.collect(), then);
            } else {
                self.lesson = None;
            }
            return;
        }
        let Some(lesson) = self.lesson.as_mut().filter(|_| is_plain) else {
            self.lesson = None;
            return;
        };
        lesson.exchanges.push(exchange);
        lesson.records.extend(records);
        if lesson.exchanges.len() > LONGEST {
            self.lesson = None;
            return;
        }
        if self.said.has_requests() {
            return;
        }
        let Some(lesson) = self.lesson.take() else {
            return;
        };
        let met = now.met.0 - lesson.before.met.0;
        let hears = now.met.1 != lesson.before.met.1;
        let turn = Turn::new(said, (lesson.operation, lesson.part), met, hears);
        let is_even = Marks {
            met: lesson.before.met,
            ..now
        } == lesson.before;
        if let Some(turn) = turn.filter(|it| is_even && it.steps.len() == lesson.exchanges.len()) {
            let number = self.tail.known.len() as u32;
            self.tail.known.push(Arc::new(turn));
            self.turns.learn(&lesson.exchanges, lesson.records, number);
        }
    }

    /// How many calls were known again, as those of a turn.
    pub fn known_again(&self) -> u64 {
        self.again
    }

    /// How many operations are kept.
    pub fn operations(&self) -> usize {
        self.said.conversation.operations.len() + self.tail.operations()
    }

    /// Whether so many operations can be left out.
    pub fn can_leave_out(&self, operations: usize) -> bool {
        operations <= self.operations()
    }

    /// Leaves out the first operations, which are settled: no more than can be.
    pub fn leave_out(&mut self, operations: usize) {
        let here = self.said.conversation.operations.len();
        if let Some(more) = operations.checked_sub(here) {
            match self.tail.turns_of(more) {
                Some(turns) => {
                    self.said.leave_out(here);
                    self.tail.leave_out(turns, &mut self.said.conversation);
                    return;
                }
                None => {
                    self.tail.tell(&mut self.said.conversation);
                    self.tail.turns.clear();
                    self.tail.events.clear();
                }
            }
        }
        self.said.leave_out(operations);
    }

    /// Whether it said nothing.
    pub fn is_silent(&self) -> bool {
        let said = &self.said.conversation;
        let is_begun = self.held.is_some() || !self.within.is_empty();
        said.operations.is_empty() && !said.is_cut && self.tail.turns.is_empty() && !is_begun
    }

    /// The turns that are not said in detail, and nothing is.
    pub fn turns(&self) -> Option<&Tail> {
        let said = &self.said.conversation;
        (said.operations.is_empty() && said.parts.is_empty()).then_some(&self.tail)
    }

    /// Leaves out the first of these.
    pub fn leave_out_turns(&mut self, turns: usize) {
        self.tail.leave_out(turns, &mut self.said.conversation);
    }

    /// What the thread did so far, and the windows that it made; `resolver` is as after what was read.
    pub fn told(&self, routines: &Routines, mut resolver: Resolver<'_>) -> Told<O> {
        let mut said = self.said.clone();
        self.tail.tell(&mut said.conversation);
        for event in self.within.iter().chain(&self.held) {
            said.event(routines, &mut resolver, event.clone());
        }
        said.into_told()
    }

    /// The same, once.
    pub fn into_told(mut self, routines: &Routines, resolver: &mut Resolver<'_>) -> Told<O> {
        self.tail.tell(&mut self.said.conversation);
        for event in self.within.into_iter().chain(self.held) {
            self.said.event(routines, resolver, event);
        }
        self.said.into_told()
    }
}
