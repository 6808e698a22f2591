//! The threads of a process, as far as they wait for each other: for locks, signals, ends, and for the
//! others of a team of OpenMP.
//!
//! Which lock a thread wants, and which it holds, is recorded by their addresses ([`Holds`]). Where they are not (traces of
//! other tools), whoever holds a lock of the kind may be the one that is waited for.
//!
//! *Guarantees*: a thread that could be the holder, or the one that signals, is never left out, as far as
//! the calls of the program show: what a library locks inside is not seen. *Costs*: a pass over the events
//! of the threads of programs that call such functions, none for others.

use crate::deeds::{Bearing, Deeds, bearing, bearings};
pub use lockstep_trace::threads::Lock;
use lockstep_trace::threads::{self, Does, Inner, Meaning, Meeting, Patience, meaning, outlined};
use lockstep_trace::{
    Event, Frame, FunctionId, Hold, HoldState, Holds, ProcessName, Run, Thread, ThreadName,
    TraceName,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// Its own code, or nobody knows.
    #[default]
    Runs,
    /// An operation of its task, by index.
    Operation(usize),
    /// Waits for a lock.
    Lock(Lock),
    /// Waits for one of what a semaphore counts.
    Semaphore,
    /// Waits for a lock inside a library that it holds itself: a signal interrupted it there.
    Again,
    /// Waits until another signals.
    Signal,
    /// Waits at a barrier of its process.
    Barrier,
    /// Waits for the end of another.
    Join,
    /// Waits for the others of its team.
    Team,
    /// Nothing: it is over, or waits for work in a pool.
    Idle,
    /// What a library has it do: nobody can be waiting for it.
    Apart,
}

impl Doing {
    /// Whether others may wait for who does this.
    pub fn counts(self) -> bool {
        !matches!(self, Self::Idle | Self::Apart)
    }
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strand {
    /// Which.
    pub trace: TraceName,
    /// What it does.
    pub doing: Doing,
    /// What it holds and wants; `None` where that was not recorded.
    pub holds: Option<Holds>,
    /// Whether it is in a parallel region of OpenMP.
    pub in_team: bool,
    /// How many parallel regions it began; 0 if its trace lacks events.
    pub regions: u64,
    /// How many barriers of teams it came to; 0 if its trace lacks events.
    pub meetings: u64,
    /// Whether any other thread of its process that ran the program's own code would be known.
    pub in_full: bool,
    /// The process that its own was forked from.
    pub forked_from: Option<ProcessName>,
    /// What its calls tell about who runs it.
    pub deeds: Deeds,
}

impl Strand {
    /// A thread that does this, and holds nothing.
    #[must_use]
    pub fn new(trace: TraceName, doing: Doing) -> Self {
        Self {
            trace,
            doing,
            holds: None,
            in_team: false,
            regions: 0,
            meetings: 0,
            in_full: false,
            forked_from: None,
            deeds: Deeds {
                is_own: true,
                ..Deeds::default()
            },
        }
    }

    /// The same, with an object.
    #[must_use]
    pub fn with(mut self, hold: Hold) -> Self {
        let none = || Holds {
            all: Vec::new(),
            is_whole: true,
            are_kinds: false,
        };
        self.holds.get_or_insert_with(none).all.push(hold);
        self
    }

    /// The same, with the lock at this address.
    #[must_use]
    pub fn holding(self, address: u64) -> Self {
        self.with(Hold::new(address, HoldState::Held))
    }

    /// The same, in a call that is to take the lock at this address.
    #[must_use]
    pub fn wanting(self, address: u64) -> Self {
        self.with(Hold::new(address, HoldState::Wanted))
    }

    /// The same, in a team.
    #[must_use]
    pub fn in_team(mut self) -> Self {
        self.in_team = true;
        self
    }

    /// Whether it left a parallel region without a barrier at which another thread of the team is. All of a team come to the
    /// same barriers, so it began as many regions as the other one and came to fewer barriers.
    #[must_use]
    pub fn left_out(&self, other: &Self) -> bool {
        let is_over = self.doing == Doing::Idle && other.in_team;
        is_over && self.regions == other.regions && self.meetings < other.meetings
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> ProcessName {
        self.trace.process
    }

    /// What the call takes in which it is.
    #[must_use]
    pub fn wanted(&self) -> Option<&Hold> {
        self.holds.as_ref()?.wanted()
    }

    /// Its hold of what stands at an address.
    #[must_use]
    pub fn held(&self, address: u64) -> Option<&Hold> {
        self.holds.as_ref()?.held(address)
    }

    /// Whether it may hold something that is not known.
    #[must_use]
    pub fn may_hold_more(&self) -> bool {
        self.holds.as_ref().is_some_and(|it| !it.is_whole)
    }

    /// Whether it holds anything.
    #[must_use]
    pub fn holds_anything(&self) -> bool {
        let is_held = |it: &Holds| !it.all.is_empty() || !it.is_whole;
        self.holds.as_ref().is_some_and(is_held)
    }

    /// Whether it waits for another thread of its process.
    #[must_use]
    pub fn waits_inside(&self) -> bool {
        matches!(
            self.doing,
            Doing::Lock(_)
                | Doing::Semaphore
                | Doing::Again
                | Doing::Signal
                | Doing::Barrier
                | Doing::Join
                | Doing::Team
        )
    }
}

/// What a thread waits for that is in a call of this; [`Doing::Runs`] if it need not be for another thread of its process.
fn doing_in(it: Meaning) -> Doing {
    match it.does {
        _ if it.patience != Patience::Endless => Doing::Runs,
        Does::Take(lock) => Doing::Lock(lock),
        Does::Acquire => Doing::Semaphore,
        Does::Await(threads::Event::Condition | threads::Event::Value) => Doing::Signal,
        Does::Barrier(Meeting::Counted) => Doing::Barrier,
        Does::Join => Doing::Join,
        Does::Barrier(_) => Doing::Team,
        _ if it.ends_with_barrier() => Doing::Team,
        _ => Doing::Runs,
    }
}

/// Whether threads come together in the library function with this linkage name.
pub fn gathers(linkage: &str) -> bool {
    let doing = doing_in(threads::meaning(linkage));
    matches!(doing, Doing::Barrier | Doing::Team)
}

/// What a thread that is in a call of this does not hold meanwhile: the lock that it waits for, or gave back to be signalled.
fn without(it: Meaning) -> Option<Lock> {
    match it.does {
        Does::Take(lock) if it.patience == Patience::Endless => Some(lock),
        Does::Await(threads::Event::Condition) => Some(Lock::Mutex),
        _ => None,
    }
}

/// The place of a kind in a table.
fn kind(lock: Lock) -> usize {
    match lock {
        Lock::Read => Lock::ReadWrite as usize,
        other => other as usize,
    }
}

/// What the events of a thread so far tell.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Locks of each kind that it took and did not give back.
    held: [u32; Lock::KINDS],
    /// Whether it tried to lock: whether it got what it tried to is not known.
    tried: bool,
    depth: u64,
    /// The last event was a jump out of a function.
    jumped: bool,
    outermost: u64,
    only_regions: bool,
    /// The last outermost call comes when the thread is done.
    is_done: bool,
    regions: u64,
    meetings: u64,
    deeds: Deeds,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            held: [0; Lock::KINDS],
            tried: false,
            depth: 0,
            jumped: false,
            outermost: 0,
            only_regions: true,
            is_done: false,
            regions: 0,
            meetings: 0,
            deeds: Deeds::default(),
        }
    }
}

impl Reading {
    fn take_in(&mut self, it: Meaning) {
        let meets = matches!(it.does, Does::Barrier(Meeting::Team) | Does::WorkEnd);
        self.meetings += u64::from(meets);
        match it.does {
            Does::Take(lock) if it.patience == Patience::Endless => self.held[kind(lock)] += 1,
            Does::Take(_) => self.tried = true,
            Does::Give(lock) => {
                let held = &mut self.held[kind(lock)];
                *held = held.saturating_sub(1);
            }
            _ => {}
        }
    }

    /// What a thread holds that is in a call of this, by kinds.
    fn holds(&self, innermost: Option<Meaning>, is_cut: bool) -> Holds {
        let mut held = self.held;
        let address = |kind: usize| kind as u64 + 1;
        let mut all = Vec::new();
        if let Some(lock) = innermost.and_then(without) {
            let held = &mut held[kind(lock)];
            *held = held.saturating_sub(1);
            all.push(Hold::new(address(kind(lock)), HoldState::Wanted));
        }
        let held = (0..Lock::KINDS).filter(|kind| held[*kind] > 0);
        all.extend(held.map(|kind| Hold::new(address(kind), HoldState::Held)));
        Holds {
            all,
            // What was dropped may have locked.
            is_whole: !self.tried && !is_cut,
            are_kinds: true,
        }
    }
}

/// Functions of a run that mean something to other threads.
pub struct Functions {
    meanings: FxHashMap<FunctionId, Meaning>,
    regions: FxHashSet<FunctionId>,
    /// Functions of libraries that take a lock inside.
    inner: FxHashMap<FunctionId, Inner>,
    /// The program's own functions.
    own: FxHashSet<FunctionId>,
    /// Its own functions that come last in a thread.
    last: FxHashSet<FunctionId>,
    /// No function was left out of the recording.
    in_full: bool,
    /// Processes that were forked, and from which.
    forked: FxHashMap<ProcessName, ProcessName>,
    /// Threads come from OpenMP only.
    is_pooled: bool,
    /// By function.
    bearings: Vec<Bearing>,
}

impl Functions {
    /// O(functions).
    pub fn new(run: &Run) -> Self {
        let ids = || (0..).map(FunctionId).zip(&run.functions);
        let known = ids().filter(|(_, function)| function.imported);
        let meanings: FxHashMap<FunctionId, Meaning> = known
            .map(|(id, function)| (id, meaning(&function.linkage)))
            .filter(|(_, it)| {
                let changes = matches!(it.does, Does::Take(_) | Does::Give(_));
                changes || without(*it).is_some() || doing_in(*it) != Doing::Runs
            })
            .collect();
        let inner = ids().filter_map(|(id, function)| {
            let does = meaning(&function.linkage).does;
            match does {
                Does::Inner(inner) if function.imported => Some((id, inner)),
                _ => None,
            }
        });
        let own = || ids().filter(|(_, function)| !function.imported);
        // Names of C++ as they are in symbol tables are not read so far.
        let is_last = |name: &str| meaning(name).does == Does::AfterThread;
        let last = own().filter(|(_, function)| is_last(&function.name));
        let processes = run.processes.iter();
        let has_teams = meanings.values().any(|it| doing_in(*it) == Doing::Team);
        let creates = |linkage: &str| meaning(linkage).does == Does::Create;
        Self {
            is_pooled: has_teams && !ids().any(|(_, function)| creates(&function.linkage)),
            regions: ids()
                .filter(|(_, function)| outlined(&function.linkage).is_some())
                .map(|(id, _)| id)
                .collect(),
            inner: inner.collect(),
            last: last.map(|(id, _)| id).collect(),
            own: own().map(|(id, _)| id).collect(),
            in_full: run.processes.iter().all(|it| it.coverage.left_out == 0),
            forked: processes
                .filter_map(|it| Some((it.name, it.forked_from?)))
                .collect(),
            meanings,
            bearings: bearings(run),
        }
    }

    /// Whether no function means anything: then nothing need be read of a process's first thread.
    fn is_empty(&self) -> bool {
        self.meanings.is_empty()
    }

    /// Whether nothing need be read of a thread.
    pub fn need_not_read(&self, thread: &Thread) -> bool {
        self.is_empty() && thread.name.thread == ThreadName::Main(0)
    }

    /// How a thread stands.
    pub fn read(&self, thread: &Thread) -> Strand {
        let mut reading = Reading::default();
        if !self.need_not_read(thread) {
            self.read_on(&mut reading, thread.events());
        }
        self.strand(&reading, thread)
    }

    /// Takes in more events of a thread.
    pub fn read_on(&self, reading: &mut Reading, events: impl Iterator<Item = Event>) {
        for event in events {
            match event {
                Event::Call(function) => {
                    let is_region = self.regions.contains(&function);
                    reading.regions += u64::from(is_region);
                    // What a thread began with may end with a jump to what it calls last.
                    if reading.depth == 0 && !reading.jumped {
                        reading.outermost += 1;
                        reading.only_regions &= is_region;
                        reading.is_done = self.last.contains(&function);
                    }
                    reading.depth += 1;
                    reading.jumped = false;
                    reading.deeds.take_in(bearing(&self.bearings, function));
                    if let Some(it) = self.meanings.get(&function) {
                        reading.take_in(*it);
                    }
                }
                Event::Return | Event::Tail => {
                    reading.depth = reading.depth.saturating_sub(1);
                    reading.jumped = event == Event::Tail;
                }
            }
        }
    }

    /// How a thread stands of which all events were taken in.
    pub fn strand(&self, reading: &Reading, thread: &Thread) -> Strand {
        let mut strand = Strand::new(thread.name, Doing::Runs);
        strand.deeds = reading.deeds;
        if thread.dropped == 0 {
            (strand.regions, strand.meetings) = (reading.regions, reading.meetings);
        }
        strand.holds.clone_from(&thread.holds);
        strand.in_full = self.in_full;
        strand.forked_from = self.forked.get(&thread.name.process).copied();
        // What was dropped may have been anything.
        strand.deeds.is_own |= thread.dropped > 0 || self.need_not_read(thread);
        let open = thread.open.iter().filter(|frame| !frame.handed_over);
        let open: Vec<&Frame> = open.collect();
        if self.waits_for_itself(&open) {
            strand.doing = Doing::Again;
            return strand;
        }
        if self.is_empty() {
            return strand;
        }
        let (outermost, only_regions) = (reading.outermost, reading.only_regions);
        strand.in_team = open
            .iter()
            .any(|frame| self.regions.contains(&frame.function));
        let innermost = open.last().map(|frame| frame.function);
        let is_first = thread.name.thread == ThreadName::Main(0);
        let is_over = self.is_pooled || outermost == 1 || only_regions || reading.is_done;
        let meaning = innermost.and_then(|function| self.meanings.get(&function));
        let by_kind = || reading.holds(meaning.copied(), thread.dropped > 0);
        strand.holds = Some(strand.holds.unwrap_or_else(by_kind));
        strand.doing = match meaning {
            Some(it) => doing_in(*it),
            // A thread is over when the function that it began with is; one of a pool waits.
            None if innermost.is_none() && !is_first && is_over => Doing::Idle,
            None => Doing::Runs,
        };
        strand
    }

    /// Whether the innermost call is of a function that takes a lock inside, out of which the program's own code was called:
    /// no such function calls back, so a signal interrupted it.
    fn waits_for_itself(&self, open: &[&Frame]) -> bool {
        let lock = |frame: &Frame| self.inner.get(&frame.function);
        let Some(wanted) = open.last().and_then(|it| lock(it)) else {
            return false;
        };
        open.windows(2)
            .any(|pair| lock(pair[0]) == Some(wanted) && self.own.contains(&pair[1].function))
    }
}
