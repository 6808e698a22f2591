//! Who waits for whom among the threads of a process: the part of the wait-for graph that no message
//! shows.
//!
//! ```text
//!  rank 1 ── any of ──► thread 0 ── lock ──► thread 1 ── MPI_Recv ──► rank 0
//!                       thread 2 ── lock ──►
//! ```

use lockstep_comm::{Conversation, Doing, Lock, Strand};
use lockstep_trace::{ProcessName, TraceName};
use lockstep_waitfor::Need;
use std::collections::BTreeMap;

/// Why a thread waits for others of its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Inside {
    /// For a lock that one of them holds.
    Lock(Lock),
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
    /// For whom.
    pub to: Vec<TraceName>,
    /// Why.
    pub why: Inside,
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
        for (&task, conversation) in tasks {
            // A task of one thread that waits for no other is a node itself.
            let waits_inside = |it: &Strand| it.waits_inside();
            let [only] = conversation.strands.as_slice() else {
                for strand in &conversation.strands {
                    places.entry(task).or_default().push(list.len());
                    list.push((task, strand));
                }
                continue;
            };
            if waits_inside(only) || only.holds_anything() || only.in_team {
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

    /// Whom a thread waits for, by their places in the list; empty where nobody knows.
    fn targets(&self, at: usize) -> (Inside, Vec<usize>) {
        let (_, strand) = self.list[at];
        let others = |wanted: &dyn Fn(&Strand) -> bool| -> Vec<usize> {
            let all = self.together.get(&strand.process()).into_iter().flatten();
            all.copied()
                .filter(|other| *other != at && wanted(self.list[*other].1))
                .collect()
        };
        let is_there = |it: &Strand| it.doing.counts();
        match strand.doing {
            Doing::Lock(lock) => {
                let holders = others(&|it| it.may_hold(lock));
                match holders.is_empty() && strand.may_hold(lock) {
                    true => (Inside::Lock(lock), vec![at]),
                    false => (Inside::Lock(lock), holders),
                }
            }
            Doing::Signal => (Inside::Signal, others(&is_there)),
            Doing::Barrier => (Inside::Barrier, others(&is_there)),
            Doing::Join => (Inside::End, others(&is_there)),
            Doing::Team => {
                let is_coming = |it: &Strand| it.in_team && it.doing != Doing::Team;
                (Inside::Team, others(&is_coming))
            }
            Doing::Runs | Doing::Operation(_) | Doing::Idle | Doing::Apart => {
                (Inside::End, Vec::new())
            }
        }
    }

    /// What a thread needs that is in no operation.
    pub fn node(&self, at: usize) -> Need {
        if !self.list[at].1.doing.counts() {
            return Need::NEVER;
        }
        match self.targets(at) {
            (_, targets) if targets.is_empty() => Need::NOW,
            (why, targets) => {
                let on = targets.into_iter().map(|it| self.tasks + it).collect();
                Need::of(why == Inside::Team, on)
            }
        }
    }

    /// All that is known of who waits for whom.
    pub fn waits(&self) -> Vec<InsideWait> {
        let waiting = (0..self.list.len()).filter(|at| self.list[*at].1.waits_inside());
        waiting
            .filter_map(|at| {
                let (why, targets) = self.targets(at);
                let (task, strand) = self.list[at];
                let to: Vec<TraceName> = targets.iter().map(|it| self.list[*it].1.trace).collect();
                (!to.is_empty()).then_some(InsideWait {
                    task,
                    from: strand.trace,
                    to,
                    why,
                })
            })
            .collect()
    }
}
