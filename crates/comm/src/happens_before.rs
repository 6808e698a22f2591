//! Logical time from messages: what was received was sent before, in whatever trace.
//!
//! Each event is one later than the one before it in its trace; where something arrives, at least one later than
//! where it was sent (Lamport's clock). Messages belong together by sender, receiver, communicator and tag, first sent first
//! received; collective operations by their number on their communicator. What cannot be matched (arguments or traces are
//! missing, a receive from anybody whose status was ignored) waits for nothing.
//!
//! [`Matching`](crate::Matching) matches messages, too, for another question: what a *rank* still waits for at the end, where
//! its threads are one, and guesses about receives from anybody are allowed. Here each *trace* has a clock of its own, every
//! completion has an event, and nothing may be guessed.

use crate::conversation::Conversation;
use crate::message::{Collective as Share, PartKind, Peer};
use crate::reader::Reader;
use crate::routines::Routines;
use lockstep_api::mpi::{Does, Shape};
use lockstep_trace::{CommunicatorId, Communicators, Run, Thread, TraceName};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// Calls that are matched at most; 64 bytes each.
const MOST: usize = 1 << 22;

/// Where a message goes: from, to, communicator, tag.
type Channel = (u32, u32, u32, CommunicatorId, i64);

/// Who is in each communicator that is known whole.
type Members = FxHashMap<CommunicatorId, Vec<u32>>;

fn members(communicators: &Communicators) -> Members {
    let all = communicators.all().iter().filter_map(|it| {
        let [side] = it.sides.as_slice() else {
            return None;
        };
        let ranks = side.ranks.iter().copied().collect::<Option<Vec<u32>>>()?;
        Some((it.id, ranks))
    });
    all.collect()
}

/// What a call has to do with other traces.
#[derive(Debug, Clone, Copy)]
enum Step {
    Send(Channel),
    Receive(Channel),
    /// A collective begins: its communicator, and whether others wait for this trace.
    Enter(CommunicatorId, bool),
    /// It ends: its number, and whether this trace waits for others.
    Leave(CommunicatorId, u64, bool),
}

/// The messages of a run, read once: logical times, and who can know of what.
#[derive(Debug)]
pub struct Order {
    names: Vec<TraceName>,
    steps: Vec<Vec<(u64, Step)>>,
    shifts: Vec<Vec<(u64, u64)>>,
}

/// Later than any event of a run.
const MARK: u64 = 1 << 60;

impl Order {
    /// Of all visible traces; `None` where no message was matched (no recorded arguments), or there are too many.
    #[must_use]
    pub fn new(run: &Run) -> Option<Self> {
        let threads: Vec<&Thread> = run.traces().collect();
        // Looking for messages costs a pass over all events.
        if !threads.iter().any(|thread| thread.has_arguments()) {
            return None;
        }
        let names: Vec<TraceName> = threads.iter().map(|thread| thread.name).collect();
        let steps = Messages::steps(run, &threads)?;
        let places: Vec<(u32, u32)> = names.iter().map(place).collect();
        let mut found = Matching::new(&steps, &places);
        found.run();
        let matched = found.matched;
        let shifts = found.clocks.into_iter().map(|clock| clock.shifts).collect();
        (matched > 0).then_some(Self {
            names,
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
        let places: Vec<(u32, u32)> = self.names.iter().map(place).collect();
        let mut found = Matching::new(&self.steps, &places);
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

fn place(name: &TraceName) -> (u32, u32) {
    (name.process.job, name.process.rank)
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
    /// What each trace has to do with the others; `None` where that is too much.
    fn steps(run: &Run, threads: &[&Thread]) -> Option<Vec<Vec<(u64, Step)>>> {
        let communicators = run.communicators();
        let members = members(&communicators);
        let routines = Routines::new(run);
        let is_wanted = |id| routines.get(id).is_some();
        let first = communicators.all().len() as u32;
        let mut steps = Vec::new();
        let mut left = MOST;
        for thread in threads {
            let mut reader: Reader<()> = Reader::new(thread.name, first, None, false);
            let mut events = communicators.events_of(thread, is_wanted);
            reader.read(&routines, &mut events);
            let (said, ..) = reader.into_told(&routines, events.resolver());
            let own = steps_of(&said, &members, thread.name);
            left = left.checked_sub(own.len())?;
            steps.push(own);
        }
        Some(steps)
    }

    /// Matches the messages between these traces of a run.
    pub fn new(run: &Run, threads: &[&Thread]) -> Self {
        let Some(steps) = Self::steps(run, threads) else {
            return Self::default();
        };
        let places: Vec<(u32, u32)> = threads.iter().map(|it| place(&it.name)).collect();
        let mut found = Matching::new(&steps, &places);
        found.run();
        let Matching {
            clocks, matched, ..
        } = found;
        Self {
            shifts: threads
                .iter()
                .zip(clocks)
                .map(|(thread, clock)| (thread.name, clock.shifts))
                .collect(),
            matched,
        }
    }

    /// For the events of this trace.
    pub fn of(&self, name: TraceName) -> &[(u64, u64)] {
        self.shifts.get(&name).map_or(&[], Vec::as_slice)
    }
}

/// What a trace has to do with the others, in the order of its events.
fn steps_of(said: &Conversation, members: &Members, name: TraceName) -> Vec<(u64, Step)> {
    let (job, me) = (name.process.job, name.process.rank);
    let mut steps = Vec::new();
    let mut numbers: FxHashMap<CommunicatorId, u64> = FxHashMap::default();
    for part in &said.parts {
        let Some(begun) = said.operations.get(part.operation).map(|it| it.event) else {
            continue;
        };
        match &part.kind {
            PartKind::Send {
                to: Peer::Task(to),
                tag,
                communicator,
                ..
            } => {
                let channel = (job, me, *to, *communicator, *tag);
                steps.push((begun, Step::Send(channel)));
            }
            PartKind::Receive {
                from: Peer::Task(from),
                tag: Some(tag),
                communicator,
                ..
            } => {
                let channel = (job, *from, me, *communicator, *tag);
                let at = part.completed_at;
                steps.extend(at.map(|at| (at, Step::Receive(channel))));
            }
            PartKind::Collective(share) => {
                let ways = ways(share, members, me);
                let Some((communicator, (gives, takes))) = share.communicator.zip(ways) else {
                    continue;
                };
                let number = numbers.entry(communicator).or_default();
                steps.push((begun, Step::Enter(communicator, gives)));
                let leave = Step::Leave(communicator, *number, takes);
                steps.extend(part.completed_at.map(|at| (at, leave)));
                *number += 1;
            }
            _ => {}
        }
    }
    steps.sort_by_key(|it| it.0);
    steps
}

/// Whether others wait for a task in a collective operation, and whether it waits for others; `None` where that is not known.
fn ways(share: &Share, members: &Members, me: u32) -> Option<(bool, bool)> {
    let Does::Collective(shape, _) = share.meaning.does else {
        return None;
    };
    let root = || {
        let all = members.get(&share.communicator?)?;
        all.get(usize::try_from(share.root?).ok()?).copied()
    };
    let is_root = root() == Some(me);
    Some(match shape {
        Shape::All => (true, true),
        Shape::FromRoot => (is_root, !is_root),
        Shape::ToRoot => (!is_root, is_root),
        Shape::Prefix | Shape::Neighbours => return None,
    })
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
    sent: FxHashMap<Channel, VecDeque<u64>>,
    receivers: FxHashMap<Channel, usize>,
    collectives: FxHashMap<(CommunicatorId, u64), Collective>,
    entered: FxHashMap<(usize, CommunicatorId), u64>,
    /// How many of the traces ever enter collectives of this communicator.
    members: FxHashMap<CommunicatorId, usize>,
    /// Traces by job and rank.
    processes: FxHashMap<(u32, u32), Vec<usize>>,
    ready: VecDeque<usize>,
    matched: u64,
    /// A trace whose clock is put far ahead, and the event.
    mark: Option<(usize, u64)>,
}

impl<'a> Matching<'a> {
    fn new(steps: &'a [Vec<(u64, Step)>], places: &[(u32, u32)]) -> Self {
        let mut processes: FxHashMap<(u32, u32), Vec<usize>> = FxHashMap::default();
        for (trace, place) in places.iter().enumerate() {
            processes.entry(*place).or_default().push(trace);
        }
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
            processes,
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

    /// Where all wait, something that somebody waits for was not seen: these go on without it. First receives from traces
    /// that are over or not there, then any one receive, then whoever has not yet been in a collective with all the others.
    fn unseen(&self) -> Vec<usize> {
        let step = |trace: usize| self.steps[trace].get(self.clocks[trace].next);
        let is_over = |trace: &usize| step(*trace).is_none();
        let mut receives = Vec::new();
        let mut lost = Vec::new();
        let mut others = Vec::new();
        for trace in 0..self.steps.len() {
            match step(trace) {
                Some((_, Step::Receive((job, from, ..)))) => {
                    receives.push(trace);
                    let senders = self.processes.get(&(*job, *from));
                    if senders.is_none_or(|senders| senders.iter().all(is_over)) {
                        lost.push(trace);
                    }
                }
                Some(_) => others.push(trace),
                None => {}
            }
        }
        match (lost.is_empty(), receives.first()) {
            (false, _) => lost,
            (true, Some(first)) => vec![*first],
            (true, None) => others,
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
            Step::Send(channel) => {
                let queue = self.sent.entry(channel).or_default();
                queue.push_back(clock.time(at));
                self.ready.extend(self.receivers.remove(&channel));
            }
            Step::Receive(channel) => {
                match self.sent.get_mut(&channel).and_then(VecDeque::pop_front) {
                    Some(time) => {
                        clock.after(at, time);
                        self.matched += 1;
                    }
                    None if anyway => drop(self.receivers.remove(&channel)),
                    None => {
                        self.receivers.insert(channel, trace);
                        return false;
                    }
                }
            }
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    const C: CommunicatorId = CommunicatorId(0);

    #[test]
    fn who_has_heard_of_an_event() {
        // 1 sends to 0 before and after its event 10; 0 tells 2; 3 hears of nothing.
        let order = Order {
            names: (0..4).map(|rank| TraceName::new(rank, 0)).collect(),
            steps: vec![
                vec![
                    (2, Step::Receive(channel(1, 0))),
                    (4, Step::Send(channel(0, 3))),
                    (6, Step::Receive(channel(1, 0))),
                    (8, Step::Send(channel(0, 2))),
                ],
                vec![
                    (5, Step::Send(channel(1, 0))),
                    (12, Step::Send(channel(1, 0))),
                ],
                vec![(3, Step::Receive(channel(0, 2)))],
                vec![(3, Step::Receive(channel(0, 3)))],
            ],
            shifts: vec![Vec::new(); 4],
        };
        let heard = order.heard_of(TraceName::new(1, 0), 10);
        let expected = [(TraceName::new(0, 0), 6), (TraceName::new(2, 0), 3)];
        assert_eq!(heard, expected.into());
        assert_eq!(order.heard_of(TraceName::new(3, 0), 0), BTreeMap::new());
    }

    fn channel(from: u32, to: u32) -> Channel {
        (0, from, to, C, 7)
    }

    fn shifts(steps: &[Vec<(u64, Step)>]) -> (Vec<Vec<(u64, u64)>>, u64) {
        let places: Vec<(u32, u32)> = (0..steps.len() as u32).map(|rank| (0, rank)).collect();
        let mut matching = Matching::new(steps, &places);
        matching.run();
        let shifts = matching.clocks.into_iter().map(|clock| clock.shifts);
        (shifts.collect(), matching.matched)
    }

    #[test]
    fn what_is_received_was_sent_before() {
        let steps = [
            vec![
                (1, Step::Receive(channel(1, 0))),
                (4, Step::Send(channel(0, 2))),
            ],
            vec![(100, Step::Send(channel(1, 0)))],
            vec![
                (50, Step::Receive(channel(0, 2))),
                (500, Step::Receive(channel(0, 2))),
            ],
        ];
        // Received at 101 instead of 1, so sent at 104, received at 105; the last was never sent.
        let expected = vec![vec![(1, 100)], vec![], vec![(50, 55)]];
        assert_eq!(shifts(&steps), (expected, 2));
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_entered() {
        let both = |at| {
            vec![
                (at, Step::Enter(C, true)),
                (at + 1, Step::Leave(C, 0, true)),
            ]
        };
        let steps = [both(3), both(10), both(5)];
        let expected = vec![vec![(4, 7)], vec![], vec![(6, 5)]];
        assert_eq!(shifts(&steps), (expected, 3));
        // One that has not come: the others wait for nothing.
        let steps = [
            both(3),
            vec![(7, Step::Receive(channel(9, 1))), (8, Step::Enter(C, true))],
        ];
        assert_eq!(shifts(&steps).0[0], [(4, 5)]);
    }
}
