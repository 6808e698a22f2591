//! Logical time from messages: what was received was sent before, in whatever trace.
//!
//! Each event is one later than the one before it in its trace; where something arrives, at least one later than
//! where it was sent (Lamport's clock). Which messages belong together says [`Talk`]; collective operations do by their number on
//! their communicator. What cannot be matched (arguments or traces are missing, a receive from anybody whose status was ignored)
//! waits for nothing.

use crate::communicators::CommunicatorId;
use crate::talk::{Contact, Talk, What};
use lockstep_trace::{Run, Thread, TraceName};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

/// What a call has to do with other traces.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The message with this number is sent.
    Send(NonZeroU32),
    Receive(NonZeroU32),
    /// A collective begins: its communicator, and whether others wait for this trace.
    Enter(CommunicatorId, bool),
    /// It ends: its number, and whether this trace waits for others.
    Leave(CommunicatorId, u64, bool),
}

/// What each trace has to do with the others, in the order of its events.
type Steps = Vec<Vec<(u64, Step)>>;

/// The messages of a run, read once: logical times, and who can know of what.
#[derive(Debug)]
pub struct Order {
    names: Vec<TraceName>,
    steps: Steps,
    shifts: Vec<Vec<(u64, u64)>>,
}

/// Later than any event of a run.
const MARK: u64 = 1 << 60;

impl Order {
    /// Of all visible traces; `None` where no message was matched (no recorded arguments), or there are too many.
    #[must_use]
    pub fn new(run: &Run) -> Option<Self> {
        let threads: Vec<&Thread> = run.traces().collect();
        let talk = Talk::new(run, &threads);
        let steps = steps(&talk);
        let mut found = Matching::new(&steps);
        found.run();
        let matched = found.matched;
        let shifts = found.clocks.into_iter().map(|clock| clock.shifts).collect();
        (matched > 0).then_some(Self {
            names: talk.names().to_vec(),
            steps,
            shifts,
        })
    }

    /// The logical time of an event: its number, where the trace is not known.
    #[must_use]
    pub fn time(&self, trace: TraceName, event: u64) -> u64 {
        let shift = self.place(trace).and_then(|place| {
            let shifts = &self.shifts[place];
            let before = shifts.partition_point(|(from, _)| *from <= event);
            Some(shifts.get(before.checked_sub(1)?)?.1)
        });
        event.saturating_add(shift.unwrap_or(0))
    }

    /// For each other trace its first event that can know of this one. O(messages).
    ///
    /// The clock of the trace is put far ahead at the event: whose clock is far ahead has heard of it.
    #[must_use]
    pub fn heard_of(&self, trace: TraceName, event: u64) -> BTreeMap<TraceName, u64> {
        let Some(own) = self.place(trace) else {
            return BTreeMap::new();
        };
        let mut found = Matching::new(&self.steps);
        found.mark = Some((own, event));
        found.run();
        let clocks = self.names.iter().zip(&found.clocks).enumerate();
        clocks
            .filter(|(place, _)| *place != own)
            .filter_map(|(_, (name, clock))| {
                let (first, _) = clock.shifts.iter().find(|(_, shift)| *shift >= MARK / 2)?;
                Some((*name, *first))
            })
            .collect()
    }

    fn place(&self, trace: TraceName) -> Option<usize> {
        self.names.iter().position(|name| *name == trace)
    }
}

/// How far traces are behind the count of their own events.
#[derive(Debug, Default)]
pub struct Messages {
    /// By trace: from which event on it is by how much.
    shifts: FxHashMap<TraceName, Vec<(u64, u64)>>,
    /// Messages and collectives that were matched.
    pub matched: u64,
}

impl Messages {
    /// Of what these traces told each other.
    #[must_use]
    pub fn new(talk: &Talk) -> Self {
        let steps = steps(talk);
        let mut found = Matching::new(&steps);
        found.run();
        let shifts = found.clocks.into_iter().map(|clock| clock.shifts);
        Self {
            shifts: talk.names().iter().copied().zip(shifts).collect(),
            matched: found.matched,
        }
    }

    /// For the events of this trace.
    pub fn of(&self, name: TraceName) -> &[(u64, u64)] {
        self.shifts.get(&name).map_or(&[], Vec::as_slice)
    }
}

fn steps(talk: &Talk) -> Steps {
    let places = 0..talk.names().len();
    places.map(|place| steps_of(talk.at(place))).collect()
}

/// What a trace has to do with the others, in the order of its events.
fn steps_of(contacts: &[Contact]) -> Vec<(u64, Step)> {
    let mut steps = Vec::new();
    let mut numbers: FxHashMap<CommunicatorId, u64> = FxHashMap::default();
    for Contact {
        begun, over, what, ..
    } in contacts
    {
        match what {
            What::Send(message) => {
                steps.extend(message.number.map(|it| (*begun, Step::Send(it))));
            }
            What::Receive(message) => {
                let both = message.number.zip(*over);
                steps.extend(both.map(|(it, over)| (over.get(), Step::Receive(it))));
            }
            What::Share(share) => {
                let Some((gives, takes)) = share.ways else {
                    continue;
                };
                let number = numbers.entry(share.communicator).or_default();
                steps.push((*begun, Step::Enter(share.communicator, gives)));
                let leave = Step::Leave(share.communicator, *number, takes);
                steps.extend(over.map(|over| (over.get(), leave)));
                *number += 1;
            }
        }
    }
    steps.sort_by_key(|it| it.0);
    steps
}

/// A trace's clock while messages are matched.
#[derive(Debug, Default)]
struct Clock {
    /// The next step.
    next: usize,
    shift: u64,
    shifts: Vec<(u64, u64)>,
}

impl Clock {
    fn time(&self, at: u64) -> u64 {
        at.saturating_add(self.shift)
    }

    /// The event `at` is later than `time`.
    fn after(&mut self, at: u64, time: u64) {
        let behind = time.saturating_add(1).saturating_sub(self.time(at));
        if behind > 0 {
            self.shift += behind;
            self.shifts.push((at, self.shift));
        }
    }
}

/// A collective: how many have entered, the latest who gives, and who waits.
#[derive(Debug, Default)]
struct Collective {
    entered: usize,
    latest: Option<u64>,
    waiting: Vec<usize>,
}

struct Matching<'a> {
    steps: &'a [Vec<(u64, Step)>],
    clocks: Vec<Clock>,
    /// When messages were sent, and which trace waits for one, by their numbers.
    sent: FxHashMap<NonZeroU32, u64>,
    receivers: FxHashMap<NonZeroU32, usize>,
    collectives: FxHashMap<(CommunicatorId, u64), Collective>,
    entered: FxHashMap<(usize, CommunicatorId), u64>,
    /// How many of the traces ever enter collectives of this communicator.
    members: FxHashMap<CommunicatorId, usize>,
    ready: VecDeque<usize>,
    matched: u64,
    /// A trace whose clock is put far ahead, and the event.
    mark: Option<(usize, u64)>,
}

impl<'a> Matching<'a> {
    fn new(steps: &'a [Vec<(u64, Step)>]) -> Self {
        let mut members: FxHashMap<CommunicatorId, usize> = FxHashMap::default();
        for steps in steps {
            let mut own: Vec<CommunicatorId> = steps
                .iter()
                .filter_map(|(_, step)| match step {
                    Step::Enter(communicator, _) => Some(*communicator),
                    _ => None,
                })
                .collect();
            own.sort_unstable();
            own.dedup();
            for communicator in own {
                *members.entry(communicator).or_default() += 1;
            }
        }
        Self {
            steps,
            clocks: steps.iter().map(|_| Clock::default()).collect(),
            sent: FxHashMap::default(),
            receivers: FxHashMap::default(),
            collectives: FxHashMap::default(),
            entered: FxHashMap::default(),
            members,
            ready: (0..steps.len()).collect(),
            matched: 0,
            mark: None,
        }
    }

    /// Goes on with every trace until it waits.
    fn run(&mut self) {
        loop {
            while let Some(trace) = self.ready.pop_front() {
                while self.step(trace, false) {}
            }
            let forced = self.unseen();
            if forced.is_empty() {
                return;
            }
            for trace in forced {
                self.step(trace, true);
                self.ready.push_back(trace);
            }
        }
    }

    /// Where all wait, something that somebody waits for was not seen: these go on without it. First any one receive, then
    /// whoever has not yet been in a collective with all the others.
    fn unseen(&self) -> Vec<usize> {
        let step = |trace: &usize| self.steps[*trace].get(self.clocks[*trace].next);
        let all = 0..self.steps.len();
        let receives = |trace: &usize| matches!(step(trace), Some((_, Step::Receive(_))));
        match all.clone().find(receives) {
            Some(first) => vec![first],
            None => all.filter(|trace| step(trace).is_some()).collect(),
        }
    }

    /// One step of a trace; false where it is over or waits (unless `anyway`).
    fn step(&mut self, trace: usize, anyway: bool) -> bool {
        let clock = &mut self.clocks[trace];
        let Some((at, step)) = self.steps[trace].get(clock.next).copied() else {
            return false;
        };
        if self
            .mark
            .is_some_and(|(marked, event)| marked == trace && event <= at)
        {
            self.mark = None;
            clock.shift = clock.shift.saturating_add(MARK);
            clock.shifts.push((at, clock.shift));
        }
        match step {
            Step::Send(message) => {
                self.sent.insert(message, clock.time(at));
                self.ready.extend(self.receivers.remove(&message));
            }
            Step::Receive(message) => match self.sent.remove(&message) {
                Some(time) => {
                    clock.after(at, time);
                    self.matched += 1;
                }
                None if anyway => drop(self.receivers.remove(&message)),
                None => {
                    self.receivers.insert(message, trace);
                    return false;
                }
            },
            Step::Enter(communicator, gives) => {
                let number = self.entered.entry((trace, communicator)).or_default();
                let all = self.collectives.entry((communicator, *number)).or_default();
                *number += 1;
                all.entered += 1;
                if gives {
                    all.latest = all.latest.max(Some(clock.time(at)));
                }
                if self.members.get(&communicator) == Some(&all.entered) {
                    self.ready.extend(all.waiting.drain(..));
                }
            }
            Step::Leave(communicator, number, takes) => {
                let all = self.collectives.entry((communicator, number)).or_default();
                let is_whole = self.members.get(&communicator) == Some(&all.entered);
                if takes {
                    if !is_whole && !anyway {
                        all.waiting.push(trace);
                        return false;
                    }
                    if let Some(latest) = all.latest.filter(|_| is_whole) {
                        clock.after(at, latest);
                        self.matched += 1;
                    }
                }
            }
        }
        self.clocks[trace].next += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::made::{receive, send, share, talk};

    fn order(all: Vec<Vec<Contact>>) -> Order {
        let talk = talk(all);
        Order {
            names: talk.names().to_vec(),
            steps: steps(&talk),
            shifts: vec![Vec::new(); talk.names().len()],
        }
    }

    #[test]
    fn who_has_heard_of_an_event() {
        // 1 sends to 0 before and after its event 10; 0 tells 2; 3 hears of nothing.
        let order = order(vec![
            vec![receive(1, 2, 1), send(4, 3), receive(5, 6, 1), send(8, 2)],
            vec![send(5, 0), send(12, 0)],
            vec![receive(2, 3, 0)],
            vec![receive(2, 3, 0)],
        ]);
        let heard = order.heard_of(TraceName::new(1, 0), 10);
        let expected = [(TraceName::new(0, 0), 6), (TraceName::new(2, 0), 3)];
        assert_eq!(heard, expected.into());
        assert_eq!(order.heard_of(TraceName::new(3, 0), 0), BTreeMap::new());
    }

    fn shifts(all: Vec<Vec<Contact>>) -> (Vec<Vec<(u64, u64)>>, u64) {
        let talk = talk(all);
        let messages = Messages::new(&talk);
        let shifts = talk.names().iter().map(|it| messages.of(*it).to_vec());
        (shifts.collect(), messages.matched)
    }

    #[test]
    fn what_is_received_was_sent_before() {
        let all = vec![
            vec![receive(0, 1, 1), send(4, 2)],
            vec![send(100, 0)],
            vec![receive(49, 50, 0), receive(499, 500, 0)],
        ];
        // Received at 101 instead of 1, so sent at 104, received at 105; the last was never sent.
        let expected = vec![vec![(1, 100)], vec![], vec![(50, 55)]];
        assert_eq!(shifts(all), (expected, 2));
    }

    #[test]
    fn the_first_receive_that_was_begun_takes_the_first_message() {
        // It waits for the second one first.
        let all = vec![
            vec![receive(0, 30, 1), receive(1, 20, 1)],
            vec![send(100, 0), send(200, 0)],
        ];
        assert_eq!(shifts(all).0[0], [(20, 181)]);
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_entered() {
        let both = |at| vec![share(at, at + 1)];
        let expected = vec![vec![(4, 7)], vec![], vec![(6, 5)]];
        assert_eq!(shifts(vec![both(3), both(10), both(5)]), (expected, 3));
        // One that has not come out of it.
        let inside = Contact {
            over: None,
            ..share(8, 9)
        };
        let all = vec![both(3), vec![receive(6, 7, 9), inside]];
        assert_eq!(shifts(all).0[0], [(4, 5)]);
    }
}
