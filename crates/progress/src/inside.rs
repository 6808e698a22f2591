//! Who waits for whom among the threads of a process: the part of the wait-for graph that no message
//! shows.
//!
//! ```text
//!  rank 1 ── any of ──► thread 0 ── lock ──► thread 1 ── MPI_Recv ──► rank 0
//!                       thread 2 ── lock ──►
//! ```

use lockstep_comm::{Conversation, Doing, Lock, Strand};
use lockstep_trace::{Hold, ProcessName, TraceName};
use lockstep_waitfor::Need;
use std::collections::BTreeMap;

/// Why a thread waits for others of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inside {
    /// For a lock that these hold.
    Lock(Lock),
    /// For a lock that others only read by, behind these who want it for themselves.
    Behind(Lock),
    /// For one of them to give back what a semaphore counts.
    Semaphore,
    /// For itself: a signal interrupted it in a library's function, and its handler wants the lock that is held there.
    Again,
    /// For one of them to signal.
    Signal,
    /// For others to come to a barrier: who of them is to come is not known.
    Barrier,
    /// For one of them to end.
    End,
    /// For all of them to come to the end of what a team does together.
    Team,
}

/// A thread's waiting for others of its process: for one of them, or for all ([`Inside::Team`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideWait {
    /// The task of the thread.
    pub task: u32,
    /// Which waits.
    pub from: TraceName,
    /// For whom. Nobody if that can never come; but threads that left a team are named.
    pub to: Vec<TraceName>,
    /// Why.
    pub why: Inside,
    /// The address of the lock or semaphore.
    pub object: Option<u64>,
}

/// What a thread waits for, by places in the list of threads.
struct Aim {
    why: Inside,
    /// All of these have to do it; else one.
    all: bool,
    to: Vec<usize>,
    /// Nobody can.
    never: bool,
}

impl Aim {
    fn any(why: Inside, to: Vec<usize>) -> Self {
        Self {
            why,
            all: false,
            to,
            never: false,
        }
    }

    fn all(why: Inside, to: Vec<usize>) -> Self {
        Self {
            all: true,
            ..Self::any(why, to)
        }
    }

    fn never_if(never: bool, why: Inside) -> Self {
        Self {
            never,
            ..Self::any(why, Vec::new())
        }
    }
}

/// The threads of all tasks, each a node.
pub(crate) struct Threads<'a> {
    /// With the task of each.
    list: Vec<(u32, &'a Strand)>,
    tasks: usize,
    /// By task, which of the list.
    places: BTreeMap<u32, Vec<usize>>,
    /// By process, which of the list.
    together: BTreeMap<ProcessName, Vec<usize>>,
}

impl<'a> Threads<'a> {
    pub fn new(tasks: &'a BTreeMap<u32, Conversation>) -> Self {
        let mut list = Vec::new();
        let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut threads: BTreeMap<ProcessName, usize> = BTreeMap::new();
        for strand in tasks.values().flat_map(|it| &it.strands) {
            *threads.entry(strand.process()).or_default() += 1;
        }
        for (&task, conversation) in tasks {
            // A task of one thread that waits for no other is a node itself.
            let [only] = conversation.strands.as_slice() else {
                for strand in &conversation.strands {
                    places.entry(task).or_default().push(list.len());
                    list.push((task, strand));
                }
                continue;
            };
            let has_others = threads.get(&only.process()).is_some_and(|it| *it > 1);
            if has_others || only.waits_inside() || only.holds_anything() {
                places.entry(task).or_default().push(list.len());
                list.push((task, only));
            }
        }
        let mut together: BTreeMap<ProcessName, Vec<usize>> = BTreeMap::new();
        for (at, (_, strand)) in list.iter().enumerate() {
            together.entry(strand.process()).or_default().push(at);
        }
        Self {
            list,
            tasks: tasks.len(),
            places,
            together,
        }
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn list(&self) -> Vec<(u32, &'a Strand)> {
        self.list.clone()
    }

    /// The nodes of the threads of a task that do something; `None` where it is one node itself.
    pub fn of(&self, task: u32) -> Option<Vec<usize>> {
        let places = self.places.get(&task)?.iter();
        let busy = places.filter(|at| self.list[**at].1.doing.counts());
        Some(busy.map(|at| self.tasks + at).collect())
    }

    /// Those of its process, itself included.
    fn together(&self, at: usize) -> impl Iterator<Item = usize> {
        let all = self.together.get(&self.list[at].1.process());
        all.into_iter().flatten().copied()
    }

    /// What a thread waits for; for nobody where nobody knows.
    fn aim(&self, at: usize) -> Aim {
        let (_, strand) = self.list[at];
        let others = |wanted: &dyn Fn(&Strand) -> bool| -> Vec<usize> {
            self.together(at)
                .filter(|other| *other != at && wanted(self.list[*other].1))
                .collect()
        };
        let is_there = |it: &Strand| it.doing.counts();
        let is_left = || strand.forked_from.is_some() && others(&|_| true).is_empty();
        match strand.doing {
            Doing::Lock(lock) => match strand.wanted() {
                Some(wanted) => self.lock(at, lock, wanted),
                None => Aim::any(Inside::Lock(lock), Vec::new()),
            },
            Doing::Semaphore => {
                // Of one that nobody took, nobody knows who gives.
                let taken = |address| !others(&|it| it.held(address).is_some()).is_empty();
                let is_lock = strand.wanted().is_some_and(|it| taken(it.address));
                let to = if is_lock {
                    others(&is_there)
                } else {
                    Vec::new()
                };
                Aim::any(Inside::Semaphore, to)
            }
            Doing::Again => Aim::all(Inside::Again, vec![at]),
            Doing::Signal => Aim::any(Inside::Signal, others(&is_there)),
            Doing::Barrier => Aim::any(Inside::Barrier, others(&is_there)),
            Doing::Join if is_left() => Aim::never_if(true, Inside::End),
            Doing::Join => Aim::any(Inside::End, others(&is_there)),
            // Fork copies no thread of the pool.
            Doing::Team if is_left() => Aim::never_if(strand.in_full, Inside::Team),
            Doing::Team => {
                let is_coming = |it: &Strand| it.in_team && it.doing != Doing::Team;
                // In nested regions the numbers differ, and tell nothing.
                let is_apart = |it: &Strand| it.in_team && it.regions != strand.regions;
                let is_one_team = others(&is_apart).is_empty();
                let has_left = |it: &Strand| is_one_team && it.left_out(strand);
                let waits = |it: &Strand| it.in_team && it.doing == Doing::Team;
                Aim {
                    // If more threads left than wait, those who wait went another way.
                    never: others(&has_left).len() > others(&waits).len() + 1,
                    ..Aim::all(Inside::Team, others(&|it| is_coming(it) || has_left(it)))
                }
            }
            Doing::Runs | Doing::Operation(_) | Doing::Idle | Doing::Apart => {
                Aim::any(Inside::End, Vec::new())
            }
        }
    }

    /// Who holds the lock that a thread wants.
    fn lock(&self, at: usize, lock: Lock, wanted: &Hold) -> Aim {
        let address = wanted.address;
        let held_by = |it: &Strand| it.held(address).is_some();
        if self.list[at]
            .1
            .holds
            .as_ref()
            .is_some_and(|it| it.are_kinds)
        {
            let may = |it: &usize| held_by(self.list[*it].1) || self.list[*it].1.may_hold_more();
            let others = self.together(at).filter(|it| *it != at).filter(may);
            let others: Vec<usize> = others.collect();
            let is_own = others.is_empty() && held_by(self.list[at].1);
            return Aim::any(Inside::Lock(lock), if is_own { vec![at] } else { others });
        }
        let held = |it: &usize| self.list[*it].1.held(address);
        let holders: Vec<usize> = self.together(at).filter(|it| held(it).is_some()).collect();
        let is_shared = |it: &usize| held(it).is_some_and(|it| it.shared);
        let alone: Vec<usize> = holders
            .iter()
            .copied()
            .filter(|it| !is_shared(it))
            .collect();
        if wanted.shared && alone.is_empty() && !holders.is_empty() {
            let wants = |it: &Strand| {
                it.wanted()
                    .is_some_and(|it| it.address == address && !it.shared)
            };
            let writers = self.together(at).filter(|it| wants(self.list[*it].1));
            let writers: Vec<usize> = writers.collect();
            // The writer waits for it.
            if !writers.is_empty() && holders.contains(&at) {
                return Aim::all(Inside::Lock(lock), vec![at]);
            }
            return Aim::all(Inside::Behind(lock), writers);
        }
        if !holders.is_empty() {
            return Aim::all(Inside::Lock(lock), holders);
        }
        let unknown = |it: &usize| *it != at && self.list[*it].1.may_hold_more();
        let unknown: Vec<usize> = self.together(at).filter(unknown).collect();
        if !unknown.is_empty() {
            return Aim::any(Inside::Lock(lock), unknown);
        }
        // Memory that processes share has one address in those that were forked.
        let family = self.family(at);
        let elsewhere = (0..self.list.len())
            .filter(|it| wanted.has_address() && family == self.family(*it) && held(it).is_some());
        let elsewhere: Vec<usize> = elsewhere.collect();
        if !elsewhere.is_empty() {
            return Aim::all(Inside::Lock(lock), elsewhere);
        }
        let is_left = self.list[at].1.forked_from.is_some() && self.together(at).count() == 1;
        Aim::never_if(is_left, Inside::Lock(lock))
    }

    /// The process from which that of a thread was forked in the end.
    fn family(&self, at: usize) -> ProcessName {
        let mut process = self.list[at].1.process();
        // A parent is older, so this ends; what is damaged may say otherwise.
        for _ in 0..self.together.len() {
            let first = self.together.get(&process).and_then(|it| it.first());
            match first.and_then(|it| self.list[*it].1.forked_from) {
                Some(parent) => process = parent,
                None => break,
            }
        }
        process
    }

    /// What a thread needs that is in no operation.
    pub fn node(&self, at: usize) -> Need {
        if !self.list[at].1.doing.counts() {
            return Need::NEVER;
        }
        let aim = self.aim(at);
        if aim.never {
            return Need::NEVER;
        }
        if aim.to.is_empty() {
            return Need::NOW;
        }
        let on = aim.to.into_iter().map(|it| self.tasks + it).collect();
        Need::of(aim.all, on)
    }

    /// All that is known of who waits for whom.
    pub fn waits(&self) -> Vec<InsideWait> {
        let waiting = (0..self.list.len()).filter(|at| self.list[*at].1.waits_inside());
        waiting
            .filter_map(|at| {
                let aim = self.aim(at);
                let (task, strand) = self.list[at];
                let to: Vec<TraceName> = aim.to.iter().map(|it| self.list[*it].1.trace).collect();
                (aim.never || !to.is_empty()).then_some(InsideWait {
                    task,
                    from: strand.trace,
                    to,
                    why: aim.why,
                    object: strand.wanted().map(|it| it.address),
                })
            })
            .collect()
    }
}
