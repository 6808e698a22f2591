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

use crate::apart::{Bearing, Deeds, bearing, bearings};
use lockstep_trace::{Event, FunctionId, ProcessName, Run, Thread, ThreadName, TraceName, c_name};
use rustc_hash::{FxHashMap, FxHashSet};

/// A kind of lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lock {
    /// `pthread_mutex_t`, and what is made of it.
    Mutex,
    /// `pthread_rwlock_t`.
    ReadWrite,
    /// `pthread_spinlock_t`.
    Spin,
    /// The critical section without a name: there is one.
    Critical,
    /// A critical section with a name.
    NamedCritical,
    /// `omp_lock_t`.
    OpenMp,
}

const LOCKS: usize = 6;

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
    pub(crate) fn counts(self) -> bool {
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
    held: [u32; LOCKS],
    /// By kind, whether it tried to lock: whether it got what it tried to is not known.
    tried: [bool; LOCKS],
    /// Whether it is in a parallel region of OpenMP.
    pub in_team: bool,
    /// What its calls tell about who runs it.
    pub(crate) deeds: Deeds,
}

impl Strand {
    /// A thread that does this, and holds nothing.
    #[must_use]
    pub fn new(trace: TraceName, doing: Doing) -> Self {
        Self {
            trace,
            doing,
            held: [0; LOCKS],
            tried: [false; LOCKS],
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
    pub(crate) fn holds_anything(&self) -> bool {
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

/// What a function means to other threads.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    Take(Lock),
    Try(Lock),
    Give(Lock),
    /// Gives a mutex back, and takes it again.
    Signal,
    TimedSignal,
    Barrier,
    Join,
    Team,
}

fn meaning(name: &str) -> Option<Meaning> {
    use Lock::{Critical, Mutex, NamedCritical, OpenMp, ReadWrite, Spin};
    use Meaning::{Barrier, Give, Join, Signal, Take, Team, TimedSignal, Try};
    Some(match name {
        "pthread_mutex_lock" => Take(Mutex),
        "pthread_mutex_trylock" | "pthread_mutex_timedlock" | "pthread_mutex_clocklock" => {
            Try(Mutex)
        }
        "pthread_mutex_unlock" => Give(Mutex),
        "pthread_rwlock_rdlock" | "pthread_rwlock_wrlock" => Take(ReadWrite),
        "pthread_rwlock_tryrdlock"
        | "pthread_rwlock_trywrlock"
        | "pthread_rwlock_timedrdlock"
        | "pthread_rwlock_timedwrlock" => Try(ReadWrite),
        "pthread_rwlock_unlock" => Give(ReadWrite),
        "pthread_spin_lock" => Take(Spin),
        "pthread_spin_trylock" => Try(Spin),
        "pthread_spin_unlock" => Give(Spin),
        "GOMP_critical_start" => Take(Critical),
        "GOMP_critical_end" => Give(Critical),
        "GOMP_critical_name_start" | "__kmpc_critical" | "__kmpc_critical_with_hint" => {
            Take(NamedCritical)
        }
        "GOMP_critical_name_end" | "__kmpc_end_critical" => Give(NamedCritical),
        "omp_set_lock" | "omp_set_nest_lock" | "omp_set_lock_" | "omp_set_nest_lock_" => {
            Take(OpenMp)
        }
        "omp_test_lock" | "omp_test_nest_lock" | "omp_test_lock_" | "omp_test_nest_lock_" => {
            Try(OpenMp)
        }
        "omp_unset_lock" | "omp_unset_nest_lock" | "omp_unset_lock_" | "omp_unset_nest_lock_" => {
            Give(OpenMp)
        }
        "pthread_cond_wait" | "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE" => Signal,
        "pthread_cond_timedwait" | "pthread_cond_clockwait" => TimedSignal,
        "pthread_barrier_wait" => Barrier,
        "pthread_join" | "_ZNSt6thread4joinEv" => Join,
        "GOMP_barrier" | "GOMP_parallel" | "GOMP_parallel_end" | "GOMP_loop_end"
        | "GOMP_sections_end" | "__kmpc_barrier" | "__kmpc_fork_call" => Team,
        _ if name.starts_with("GOMP_parallel_") => Team,
        _ => return None,
    })
}

/// Whether threads come together in the library function with this linkage name.
pub(crate) fn gathers(linkage: &str) -> bool {
    let meaning = meaning(&c_name(linkage));
    matches!(meaning, Some(Meaning::Barrier | Meaning::Team))
}

/// The code of a parallel region, as compilers name it.
fn is_region(name: &str) -> bool {
    name.contains("._omp_fn.") || name.contains(".omp_outlined") || name.contains("omp_outlined.")
}

/// What the events of a thread so far tell.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    held: [u32; LOCKS],
    tried: [bool; LOCKS],
    depth: u64,
    outermost: u64,
    only_regions: bool,
    deeds: Deeds,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            held: [0; LOCKS],
            tried: [false; LOCKS],
            depth: 0,
            outermost: 0,
            only_regions: true,
            deeds: Deeds::default(),
        }
    }
}

/// Functions of a run that mean something to other threads.
pub(crate) struct Functions {
    meanings: FxHashMap<FunctionId, Meaning>,
    regions: FxHashSet<FunctionId>,
    /// Threads come from OpenMP only.
    is_pooled: bool,
    /// By function.
    bearings: Vec<Bearing>,
}

impl Functions {
    pub fn new(run: &Run) -> Self {
        let ids = || (0..).map(FunctionId).zip(&run.functions);
        let known = ids().filter(|(_, function)| function.imported);
        let meanings: FxHashMap<FunctionId, Meaning> = known
            .filter_map(|(id, function)| Some((id, meaning(&c_name(&function.linkage))?)))
            .collect();
        let has_teams = meanings.values().any(|it| matches!(it, Meaning::Team));
        let creates = |linkage: &str| {
            linkage == "pthread_create" || linkage.starts_with("_ZNSt6thread15_M_start_thread")
        };
        Self {
            is_pooled: has_teams && !ids().any(|(_, function)| creates(&function.linkage)),
            regions: ids()
                .filter(|(_, function)| is_region(&function.linkage))
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
                    match self.meanings.get(&function) {
                        Some(Meaning::Take(lock)) => reading.held[*lock as usize] += 1,
                        Some(Meaning::Try(lock)) => reading.tried[*lock as usize] = true,
                        Some(Meaning::Give(lock)) => {
                            let held = &mut reading.held[*lock as usize];
                            *held = held.saturating_sub(1);
                        }
                        _ => {}
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
            strand.tried = [true; LOCKS];
        }
        let open = || thread.open.iter().filter(|frame| !frame.handed_over);
        strand.in_team = open().any(|frame| self.regions.contains(&frame.function));
        let innermost = open().next_back().map(|frame| frame.function);
        let is_first = thread.name.thread == ThreadName::Main(0);
        let is_over = |calls: u64, only_regions: bool| self.is_pooled || calls == 1 || only_regions;
        strand.doing = match innermost.and_then(|function| self.meanings.get(&function)) {
            Some(Meaning::Take(lock)) => {
                let held = &mut strand.held[*lock as usize];
                *held = held.saturating_sub(1);
                Doing::Lock(*lock)
            }
            Some(Meaning::Signal) => {
                let held = &mut strand.held[Lock::Mutex as usize];
                *held = held.saturating_sub(1);
                Doing::Signal
            }
            Some(Meaning::TimedSignal) => {
                let held = &mut strand.held[Lock::Mutex as usize];
                *held = held.saturating_sub(1);
                Doing::Runs
            }
            Some(Meaning::Barrier) => Doing::Barrier,
            Some(Meaning::Join) => Doing::Join,
            Some(Meaning::Team) => Doing::Team,
            // A thread is over when the function that it began with is; one of a pool waits.
            None if innermost.is_none() && !is_first && is_over(outermost, only_regions) => {
                Doing::Idle
            }
            _ => Doing::Runs,
        };
        strand
    }
}
