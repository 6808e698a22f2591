//! The threads of a process, as far as they wait for each other: for locks, signals, ends, and for the
//! others of a team of OpenMP.
//!
//! Which lock a thread waits for is not recorded; how many of a kind it took and did not give back is.
//! So whoever holds a lock of the kind may be the one that is waited for. Where only one thread does,
//! it is.
//!
//! *Guarantees*: a thread that could be the holder, or the one that signals, is never left out, as far as
//! the calls of the program show: what a library locks inside is not seen. *Costs*: a pass over the events
//! of the threads of programs that call such functions, none for others.

use crate::deeds::{Bearing, Deeds, bearing, bearings};
pub use lockstep_trace::threads::Lock;
use lockstep_trace::threads::{self, Does, Meaning, Meeting, Patience, meaning, outlined};
use lockstep_trace::{Event, FunctionId, ProcessName, Run, Thread, ThreadName, TraceName};
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
    /// Locks of each kind that it took and did not give back.
    held: [u32; Lock::KINDS],
    /// By kind, whether it tried to lock: whether it got what it tried to is not known.
    tried: [bool; Lock::KINDS],
    /// Whether it is in a parallel region of OpenMP.
    pub in_team: bool,
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
            held: [0; Lock::KINDS],
            tried: [false; Lock::KINDS],
            in_team: false,
            deeds: Deeds {
                is_own: true,
                ..Deeds::default()
            },
        }
    }

    /// The same, with a lock.
    #[must_use]
    pub fn holding(mut self, lock: Lock) -> Self {
        self.held[lock as usize] += 1;
        self
    }

    /// The same, in a team.
    #[must_use]
    pub fn in_team(mut self) -> Self {
        self.in_team = true;
        self
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> ProcessName {
        self.trace.process
    }

    /// Whether it may hold a lock of this kind.
    #[must_use]
    pub fn may_hold(&self, lock: Lock) -> bool {
        self.tried[lock as usize] || self.held[lock as usize] > 0
    }

    /// Whether it may hold any.
    pub fn holds_anything(&self) -> bool {
        self.tried.contains(&true) || self.held.iter().any(|it| *it > 0)
    }

    /// Whether it waits for another thread of its process.
    #[must_use]
    pub fn waits_inside(&self) -> bool {
        matches!(
            self.doing,
            Doing::Lock(_) | Doing::Signal | Doing::Barrier | Doing::Join | Doing::Team
        )
    }
}

/// What a thread waits for that is in a call of this; [`Doing::Runs`] if it need not be for another thread of its process.
fn doing_in(it: Meaning) -> Doing {
    match it.does {
        _ if it.patience != Patience::Endless => Doing::Runs,
        Does::Take(lock) => Doing::Lock(lock),
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

/// What the events of a thread so far tell.
#[derive(Debug, Clone)]
pub struct Reading {
    held: [u32; Lock::KINDS],
    tried: [bool; Lock::KINDS],
    depth: u64,
    outermost: u64,
    only_regions: bool,
    deeds: Deeds,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            held: [0; Lock::KINDS],
            tried: [false; Lock::KINDS],
            depth: 0,
            outermost: 0,
            only_regions: true,
            deeds: Deeds::default(),
        }
    }
}

impl Reading {
    fn take_in(&mut self, it: Meaning) {
        match it.does {
            Does::Take(lock) if it.patience == Patience::Endless => self.held[lock as usize] += 1,
            Does::Take(lock) => self.tried[lock as usize] = true,
            Does::Give(lock) => {
                let held = &mut self.held[lock as usize];
                *held = held.saturating_sub(1);
            }
            _ => {}
        }
    }
}

/// Functions of a run that mean something to other threads.
pub struct Functions {
    meanings: FxHashMap<FunctionId, Meaning>,
    regions: FxHashSet<FunctionId>,
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
        let has_teams = meanings.values().any(|it| doing_in(*it) == Doing::Team);
        let creates = |linkage: &str| meaning(linkage).does == Does::Create;
        Self {
            is_pooled: has_teams && !ids().any(|(_, function)| creates(&function.linkage)),
            regions: ids()
                .filter(|(_, function)| outlined(&function.linkage).is_some())
                .map(|(id, _)| id)
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
                    if reading.depth == 0 {
                        reading.outermost += 1;
                        reading.only_regions &= self.regions.contains(&function);
                    }
                    reading.depth += 1;
                    reading.deeds.take_in(bearing(&self.bearings, function));
                    if let Some(it) = self.meanings.get(&function) {
                        reading.take_in(*it);
                    }
                }
                Event::Return | Event::Tail => reading.depth = reading.depth.saturating_sub(1),
            }
        }
    }

    /// How a thread stands of which all events were taken in.
    pub fn strand(&self, reading: &Reading, thread: &Thread) -> Strand {
        let mut strand = Strand::new(thread.name, Doing::Runs);
        strand.deeds = reading.deeds;
        // What was dropped may have been anything.
        strand.deeds.is_own |= thread.dropped > 0 || self.need_not_read(thread);
        if self.is_empty() {
            return strand;
        }
        (strand.held, strand.tried) = (reading.held, reading.tried);
        let (outermost, only_regions) = (reading.outermost, reading.only_regions);
        // What was dropped may have locked.
        if thread.dropped > 0 {
            strand.tried = [true; Lock::KINDS];
        }
        let open = || thread.open.iter().filter(|frame| !frame.handed_over);
        strand.in_team = open().any(|frame| self.regions.contains(&frame.function));
        let innermost = open().next_back().map(|frame| frame.function);
        let is_first = thread.name.thread == ThreadName::Main(0);
        let is_over = |calls: u64, only_regions: bool| self.is_pooled || calls == 1 || only_regions;
        let meaning = innermost.and_then(|function| self.meanings.get(&function));
        if let Some(lock) = meaning.and_then(|it| without(*it)) {
            let held = &mut strand.held[lock as usize];
            *held = held.saturating_sub(1);
        }
        strand.doing = match meaning {
            Some(it) => doing_in(*it),
            // A thread is over when the function that it began with is; one of a pool waits.
            None if innermost.is_none() && !is_first && is_over(outermost, only_regions) => {
                Doing::Idle
            }
            None => Doing::Runs,
        };
        strand
    }
}
