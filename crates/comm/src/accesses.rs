//! What a task does to windows: each access, in which epoch, and when it is over at its target.
//!
//! Epochs between fences are numbered: fences are collective. Of passive epochs the *phase* is known: how many collective
//! operations of the whole world came before. What may bring news of others (a message, a smaller collective operation, a value
//! that was got) is *heard*.
//!
//! *Not seen*: loads and stores, datatypes whose layout is not known, of what order `MPI_Rget` is. *Costs*: of a call O(locks that
//! the task holds), amortised; memory for the first [`MOST`] accesses of a task.

use crate::communicators::Resolved;
use crate::layout::{Layout, Layouts};
use crate::message::CommunicatorId;
use crate::routines::Routine;
use lockstep_api::mpi::constants::is_exclusive;
use lockstep_api::mpi::predefined::NO_OP;
use lockstep_api::mpi::{Access, Does, Epoch as Step, Form};
use lockstep_trace::TraceName;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Accesses that are kept of a task.
pub const MOST: usize = 1 << 15;

/// Between what it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// After so many fences.
    Fence(usize),
    /// From one phase to another.
    Passive(usize, usize),
    /// Of so many `MPI_Win_start`.
    Started(usize),
    /// It excludes all others.
    Alone,
    /// It is over nobody knows when.
    Apart,
}

/// An access to a part of a task's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The window.
    pub window: CommunicatorId,
    /// Whose part of it.
    pub target: u32,
    /// Where it begins, in units of the target's.
    pub displacement: i64,
    /// The bytes from there on.
    pub layout: Layout,
    /// What it does there.
    pub kind: Access,
    /// The operation of `MPI_Accumulate`, but for `MPI_NO_OP`.
    pub reduction: Option<Arc<str>>,
    /// Between what it happens.
    pub epoch: Epoch,
    /// How many accesses of the task came before it was over at the target; the largest number if it is not.
    pub over: usize,
    /// The last phase before it in which the task may have heard of others.
    pub heard: Option<usize>,
    /// Its function.
    pub name: Arc<str>,
    /// Its trace, and the number of its event.
    pub call: (TraceName, u64),
}

/// A task's accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accesses {
    /// All that are kept, in order.
    pub all: Vec<Done>,
    /// Those that are not over: of a window, by whether they bring something back, and whose part it is.
    open: FxHashMap<(CommunicatorId, bool), FxHashMap<u32, Vec<usize>>>,
    fences: FxHashMap<CommunicatorId, usize>,
    /// Locks that are held: whose part (`None` is everybody's), and whether nobody else may have it.
    locks: Vec<(CommunicatorId, Option<u32>, bool)>,
    /// Bytes of a unit of displacement in the task's own part.
    pub units: FxHashMap<CommunicatorId, i64>,
    /// Bytes of it.
    pub sizes: FxHashMap<CommunicatorId, i64>,
    /// Windows in an epoch of `MPI_Win_start`, how many such epochs of each there were, and how often it was posted.
    started: Vec<CommunicatorId>,
    starts: FxHashMap<CommunicatorId, usize>,
    /// How often each was posted.
    pub posts: FxHashMap<CommunicatorId, usize>,
    phase: usize,
    /// The last phase in which the task may have heard of others, and how many calls may have brought that.
    heard: Option<usize>,
    times_heard: u64,
    /// For each part that was locked, how many accesses came before. Who locks its own part reads what others put there.
    pub locked: FxHashMap<u32, usize>,
}

/// An access in an epoch of `MPI_Win_start`.
pub struct InStarted<'a> {
    /// The window.
    pub window: CommunicatorId,
    /// Of the how many-th such epoch of the window, from 0.
    pub start: usize,
    /// Whose part of it.
    pub target: u32,
    /// Its function.
    pub name: &'a Arc<str>,
    /// Its trace, and the number of its event.
    pub call: (TraceName, u64),
}

/// Whether an access brings something back: it is over at the target when that is here.
fn fetches(access: Access) -> bool {
    !matches!(access, Access::Put | Access::Accumulate)
}

impl Accesses {
    /// The task made a window; of its own part the unit of displacements, and the bytes. Of memory that others load and
    /// store by themselves (`is_shared`), it may hear at any time.
    pub fn made(
        &mut self,
        window: CommunicatorId,
        (unit, size): (Option<i64>, Option<i64>),
        is_shared: bool,
    ) {
        self.units.extend(unit.map(|it| (window, it)));
        self.sizes.extend(size.map(|it| (window, it)));
        if is_shared {
            self.heard = Some(usize::MAX);
        }
    }

    /// So many operations of the whole world begin.
    pub fn meet(&mut self, times: usize) {
        self.phase += times;
    }

    /// A call that may bring what others did.
    pub fn hear(&mut self) {
        self.heard = self.heard.max(Some(self.phase));
        self.times_heard += 1;
    }

    /// How many operations of the whole world there were, and how many calls that may bring what others did.
    pub fn mark(&self) -> (usize, u64) {
        (self.phase, self.times_heard)
    }

    /// How many accesses are kept, and how many of these are not over.
    pub fn kept(&self) -> (usize, usize) {
        let open = self.open.values().flat_map(|parts| parts.values());
        (self.all.len(), open.map(Vec::len).sum())
    }

    /// A call on a window begins.
    pub fn call(
        &mut self,
        (routine, trace): (&Routine, TraceName),
        event: &Resolved,
        (window, layouts): (CommunicatorId, &Layouts),
    ) {
        match routine.meaning.does {
            Does::Epoch(step) => self.step(step, event, window),
            Does::Access(kind) => {
                if let Some(done) = self.access((routine, trace), event, (window, kind), layouts) {
                    let (number, target) = (self.all.len(), done.target);
                    let is_shared = matches!(done.epoch, Epoch::Passive(..));
                    let parts = self.open.entry((window, fetches(kind))).or_default();
                    parts.entry(target).or_default().push(number);
                    self.all.push(done);
                    // What that brings is asked when the accesses of all are known.
                    if is_shared && kind == Access::Get {
                        self.times_heard += 1;
                        return;
                    }
                }
                if fetches(kind) {
                    self.hear();
                }
            }
            _ => {}
        }
    }

    /// A step of an epoch.
    fn step(&mut self, step: Step, event: &Resolved, window: CommunicatorId) {
        let whose = event.peer("rank").and_then(|(_, peer)| peer.world);
        match step {
            Step::Fence => {
                *self.fences.entry(window).or_default() += 1;
                for fetches in [true, false] {
                    self.open.remove(&(window, fetches));
                }
            }
            Step::Start => {
                self.started.push(window);
                *self.starts.entry(window).or_default() += 1;
                self.hear();
            }
            Step::Complete => {
                self.started.retain(|it| *it != window);
                self.over(window, None, false);
                self.hear();
            }
            Step::Post => {
                *self.posts.entry(window).or_default() += 1;
                self.hear();
            }
            Step::Wait | Step::Test | Step::Sync | Step::SharedQuery => self.hear(),
            Step::LockAll => self.locks.push((window, None, false)),
            Step::Lock => {
                let alone = event.number("lock_type").is_some_and(is_exclusive);
                if let Some(rank) = whose {
                    self.locks.push((window, Some(rank), alone));
                    self.locked.entry(rank).or_insert(self.all.len());
                }
            }
            Step::Unlock => {
                self.locks.retain(|it| (it.0, it.1) != (window, whose));
                self.over(window, whose, false);
            }
            Step::UnlockAll => {
                self.locks.retain(|it| (it.0, it.1) != (window, None));
                self.over(window, None, false);
            }
            Step::Flush { all, local } => self.over(window, whose.filter(|_| !all), local),
        }
    }

    /// An access; `None` where something is not known.
    fn access(
        &self,
        (routine, trace): (&Routine, TraceName),
        event: &Resolved,
        (window, kind): (CommunicatorId, Access),
        layouts: &Layouts,
    ) -> Option<Done> {
        let target = event.peer("target_rank")?.1.world?;
        if self.all.len() >= MOST {
            return None;
        }
        // Its request says when it is over, and requests of windows are not followed.
        let is_over_unseen = routine.meaning.form == Form::Nonblocking && fetches(kind);
        let held = |it: &&(CommunicatorId, Option<u32>, bool)| {
            it.0 == window && it.1.is_none_or(|rank| rank == target)
        };
        let epoch = match self.locks.iter().find(held) {
            _ if is_over_unseen => Epoch::Apart,
            Some((_, _, true)) => Epoch::Alone,
            Some(_) => Epoch::Passive(self.phase, usize::MAX),
            None if self.started.contains(&window) => Epoch::Started(*self.starts.get(&window)?),
            None => Epoch::Fence(*self.fences.get(&window)?),
        };
        let datatype = event.handle("target_datatype").or(event.handle("datatype"));
        let count = event.number("target_count").unwrap_or(1);
        let layout = layouts.of(datatype?)?.times(count)?;
        let reduction = event.handle("op").and_then(|it| it.name.as_deref());
        let reduction = reduction.filter(|it| kind == Access::Accumulate && *it != NO_OP);
        layout.span().is_some().then_some(Done {
            window,
            target,
            displacement: event.number("target_disp")?,
            layout,
            kind,
            reduction: reduction.map(Arc::from),
            epoch,
            over: usize::MAX,
            heard: self.heard,
            name: routine.name.clone(),
            call: (trace, event.annotated.index),
        })
    }

    /// What it did to a part of a window, or to all, is done there; or only what brings something back.
    fn over(&mut self, window: CommunicatorId, target: Option<u32>, only_fetches: bool) {
        let (count, phase) = (self.all.len(), self.phase);
        for fetches in [true, false] {
            if only_fetches && !fetches {
                continue;
            }
            let Some(parts) = self.open.get_mut(&(window, fetches)) else {
                continue;
            };
            let over: Vec<usize> = match target {
                Some(target) => parts.remove(&target).unwrap_or_default(),
                None => std::mem::take(parts).into_values().flatten().collect(),
            };
            for number in over {
                let Some(it) = self.all.get_mut(number) else {
                    continue;
                };
                it.over = count;
                if let Epoch::Passive(_, to) = &mut it.epoch {
                    *to = phase;
                }
            }
        }
    }

    /// The accesses in epochs of `MPI_Win_start`.
    pub fn in_started(&self) -> impl Iterator<Item = InStarted<'_>> {
        self.all.iter().filter_map(|it| match it.epoch {
            Epoch::Started(start) => Some(InStarted {
                window: it.window,
                start: start.checked_sub(1)?,
                target: it.target,
                name: &it.name,
                call: it.call,
            }),
            Epoch::Fence(_) | Epoch::Passive(..) | Epoch::Alone | Epoch::Apart => None,
        })
    }

    /// Gives windows other numbers; of what was said to its end.
    pub fn renumber(&mut self, mut here: impl FnMut(&mut CommunicatorId)) {
        self.all.iter_mut().for_each(|it| here(&mut it.window));
        let units = self.units.drain().map(|(mut window, unit)| {
            here(&mut window);
            (window, unit)
        });
        self.units = units.collect();
        let sizes = self.sizes.drain().map(|(mut window, size)| {
            here(&mut window);
            (window, size)
        });
        self.sizes = sizes.collect();
        let posts = self.posts.drain().map(|(mut window, times)| {
            here(&mut window);
            (window, times)
        });
        self.posts = posts.collect();
    }

    /// Adds those of another thread of the task.
    pub fn append(&mut self, mut other: Self) {
        if *self == Self::default() {
            std::mem::swap(self, &mut other);
        } else if other != Self::default() {
            // How the threads' calls are in order is not known.
            self.all.clear();
        }
        self.units.extend(other.units);
        self.sizes.extend(other.sizes);
    }

    /// Whether there are none, neither its own nor any that others could make.
    pub fn are_none(&self) -> bool {
        self.all.is_empty() && self.units.is_empty() && self.sizes.is_empty()
    }
}
