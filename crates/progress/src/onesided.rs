//! Accesses to windows that nothing orders: two that overlap, one of them a put, in one epoch.
//!
//! Their result is undefined (MPI 4.1, 12.7), and it shows one day or never. Epochs between fences are numbered: fences are
//! collective. Of passive epochs the *phase* is known, how many collective operations of the whole world came
//! before: what one task did up to phase 3 and another from phase 4 on is in order. Locks that exclude each other
//! order, too. What else may order, a message, a smaller communicator, a flag in a window, does so by what the later of
//! the two tasks *hears* before its access:
//!
//! ```text
//!  rank 0   Barrier   Put             Barrier        one phase, and rank 2 heard of nobody in it
//!  rank 2   Barrier        Put        Barrier        before its put: nothing orders the two
//!
//!  rank 0   Barrier   Put  Send       Barrier
//!  rank 2   Barrier        Recv  Put  Barrier        it did: they may be in order, and nothing is told
//! ```
//! What was got under a shared lock may bring news where the owner of the window stores it; where others put it at the same time
//! it is undefined, and orders nothing.
//!
//! Epochs of `MPI_Win_start` are those between one `MPI_Win_post` of the target and the next. The groups are not known,
//! but who accessed a target in as many epochs as that posted was let in by every post, in order:
//!
//! ```text
//!  rank 0   Start Put Complete                         Start Put Complete      2 epochs with accesses to rank 1
//!  rank 1   Post               Wait                    Post               Wait      and 2 posts
//! ```
//! Accumulations with one operation are in order element by element; with two, their result is undefined, too. Accesses beyond
//! the end of a part of a window are told by its size.
//!
//! *Guarantees*: what is told overlaps, whatever order the messages of the program take. *Not seen*: loads and
//! stores, datatypes whose layout is not known, of what order `MPI_Rget` is; calls that are not recorded, which may
//! order. *Costs*: of a call O(locks that the task holds), amortised; memory for the first [`MOST`] accesses of a task; O(n log n) to
//! look for two that overlap, and at most [`MOST_PAIRS`] pairs are.

use crate::layout::{Layout, Layouts};
use crate::message::CommunicatorId;
use crate::routines::Routine;
use lockstep_api::mpi::constants::is_exclusive;
use lockstep_api::mpi::predefined::NO_OP;
use lockstep_api::mpi::{Access, Does, Epoch as Step, Form};
use lockstep_trace::{Resolved, TraceName};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Accesses that are kept of a task.
const MOST: usize = 1 << 15;
/// Pairs that are looked at.
const MOST_PAIRS: usize = 1 << 22;

/// Between what it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Epoch {
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
struct Done {
    window: CommunicatorId,
    target: u32,
    /// Where it begins, in units of the target's.
    displacement: i64,
    /// The bytes from there on.
    layout: Layout,
    kind: Access,
    /// The operation of `MPI_Accumulate`, but for `MPI_NO_OP`.
    reduction: Option<Arc<str>>,
    epoch: Epoch,
    /// How many accesses of the task came before it was over at the target; the largest number if it is not.
    over: usize,
    /// The last phase before it in which the task may have heard of others.
    heard: Option<usize>,
    name: Arc<str>,
    call: (TraceName, u64),
}

/// A task's accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accesses {
    all: Vec<Done>,
    /// Those that are not over: of a window, by whether they bring something back, and whose part it is.
    open: FxHashMap<(CommunicatorId, bool), FxHashMap<u32, Vec<usize>>>,
    fences: FxHashMap<CommunicatorId, usize>,
    /// Locks that are held: whose part (`None` is everybody's), and whether nobody else may have it.
    locks: Vec<(CommunicatorId, Option<u32>, bool)>,
    /// Bytes of a unit of displacement in the task's own part.
    units: FxHashMap<CommunicatorId, i64>,
    /// Bytes of it.
    sizes: FxHashMap<CommunicatorId, i64>,
    /// Windows in an epoch of `MPI_Win_start`, how many such epochs of each there were, and how often it was posted.
    started: Vec<CommunicatorId>,
    starts: FxHashMap<CommunicatorId, usize>,
    posts: FxHashMap<CommunicatorId, usize>,
    phase: usize,
    /// The last phase in which the task may have heard of others, and how many calls may have brought that.
    heard: Option<usize>,
    times_heard: u64,
    /// For each part that was locked, how many accesses came before. Who locks its own part reads what others put there.
    locked: FxHashMap<u32, usize>,
}

/// Two accesses that nothing orders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Who made the first, its function, trace and event.
    pub task: u32,
    pub name: Arc<str>,
    pub call: (TraceName, u64),
    /// Who made the other, and its function.
    pub other: u32,
    pub other_name: Arc<str>,
    /// Whose part of the window.
    pub target: u32,
}

/// An access to what a window does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outside {
    /// Who made it, its function, trace and event.
    pub task: u32,
    pub name: Arc<str>,
    pub call: (TraceName, u64),
    /// Whose part of the window, the bytes that it has, and those that were accessed.
    pub target: u32,
    pub size: i64,
    pub bytes: Range<i64>,
}

/// An access in an epoch of `MPI_Win_start`.
pub(crate) struct InStarted<'a> {
    pub window: CommunicatorId,
    /// Of the how many-th such epoch of the window, from 0.
    pub start: usize,
    pub target: u32,
    pub name: &'a Arc<str>,
    pub call: (TraceName, u64),
}

/// Whether it is in order with others of its kind, element by element.
fn accumulates(access: Access) -> bool {
    !matches!(access, Access::Get | Access::Put)
}

/// Whether an access brings something back: it is over at the target when that is here.
fn fetches(access: Access) -> bool {
    !matches!(access, Access::Put | Access::Accumulate)
}

impl Accesses {
    /// The task made a window; of its own part the unit of displacements, and the bytes. Of memory that others load and
    /// store by themselves (`is_shared`), it may hear at any time.
    pub(crate) fn made(
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
    pub(crate) fn meet(&mut self, times: usize) {
        self.phase += times;
    }

    /// A call that may bring what others did.
    pub(crate) fn hear(&mut self) {
        self.heard = self.heard.max(Some(self.phase));
        self.times_heard += 1;
    }

    /// How many operations of the whole world there were, and how many calls that may bring what others did.
    pub(crate) fn mark(&self) -> (usize, u64) {
        (self.phase, self.times_heard)
    }

    /// How many accesses are kept, and how many of these are not over.
    pub(crate) fn kept(&self) -> (usize, usize) {
        let open = self.open.values().flat_map(|parts| parts.values());
        (self.all.len(), open.map(Vec::len).sum())
    }

    /// A call on a window begins.
    pub(crate) fn call(
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
    pub(crate) fn in_started(&self) -> impl Iterator<Item = InStarted<'_>> {
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
    pub(crate) fn renumber(&mut self, mut here: impl FnMut(&mut CommunicatorId)) {
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
    pub(crate) fn append(&mut self, mut other: Self) {
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
    pub(crate) fn are_none(&self) -> bool {
        self.all.is_empty() && self.units.is_empty() && self.sizes.is_empty()
    }

    /// For each epoch of `MPI_Win_start` in which the task accessed this part of a window, by which `MPI_Win_post` of
    /// the target it was let in; `None` where that is not known.
    fn exposures(
        &self,
        window: CommunicatorId,
        target: u32,
        posts: Option<usize>,
    ) -> Option<BTreeMap<usize, usize>> {
        let parts = self
            .all
            .iter()
            .filter(|it| (it.window, it.target) == (window, target));
        let starts: BTreeSet<usize> = parts
            .filter_map(|it| match it.epoch {
                Epoch::Started(start) => Some(start),
                Epoch::Fence(_) | Epoch::Passive(..) | Epoch::Alone | Epoch::Apart => None,
            })
            .collect();
        let is_known = posts == Some(starts.len());
        is_known.then(|| starts.into_iter().zip(0..).collect())
    }
}

/// An access of a task.
struct Made<'a> {
    task: u32,
    /// The how many-th it is.
    index: usize,
    /// Where it begins, and the bytes of the window from the first to behind the last.
    from: i64,
    bytes: Range<i64>,
    /// The last phase before it in which the task may have heard of others.
    heard: Option<usize>,
    /// In an epoch of `MPI_Win_start`, by which post of the target it was let in, where that is known.
    exposure: Option<usize>,
    access: &'a Done,
}

impl<'a> Made<'a> {
    /// `None` where the target's unit of displacement is not known, or no memory is as large as that.
    fn new(
        tasks: &BTreeMap<u32, &'a Accesses>,
        task: u32,
        index: usize,
        access: &'a Done,
    ) -> Option<Self> {
        let unit = tasks.get(&access.target)?.units.get(&access.window)?;
        let from = access.displacement.checked_mul(*unit)?;
        let reads_its_own = tasks.get(&task)?.locked.get(&task);
        let reads_its_own = reads_its_own.is_some_and(|before| *before <= index);
        let span = access.layout.span()?;
        Some(Self {
            task,
            index,
            from,
            bytes: from.checked_add(span.start)?..from.checked_add(span.end)?,
            heard: if reads_its_own {
                Some(usize::MAX)
            } else {
                access.heard
            },
            exposure: None,
            access,
        })
    }

    /// Whether both are in passive epochs of which no phase ends before the other begins.
    fn is_beside(&self, other: &Self) -> bool {
        match (self.access.epoch, other.access.epoch) {
            (Epoch::Passive(from, to), Epoch::Passive(other_from, other_to)) => {
                from <= other_to && other_from <= to
            }
            _ => false,
        }
    }

    /// Whether it may have been made because of what others did from a phase on.
    fn may_follow(&self, since: usize) -> bool {
        self.heard.is_some_and(|heard| heard >= since)
    }

    /// Whether a byte is in both.
    fn meets(&self, other: &Self) -> bool {
        if self.access.layout.is_one_piece() && other.access.layout.is_one_piece() {
            return self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end;
        }
        let footprint = |it: &Self| it.access.layout.footprint(u64::try_from(it.from).ok()?);
        let both = footprint(self).zip(footprint(other));
        both.is_some_and(|(one, two)| one.meets(&two))
    }

    /// Its function, and of two accumulations the operation.
    fn name(&self, other: &Self) -> Arc<str> {
        match (&self.access.reduction, &other.access.reduction) {
            (Some(one), Some(_)) => format!("{}({one})", self.access.name).into(),
            _ => self.access.name.clone(),
        }
    }
}

/// Of the accesses to a part of a window, by which posts they were let in.
fn tell_exposures(
    tasks: &BTreeMap<u32, &Accesses>,
    (window, target): (CommunicatorId, u32),
    part: &mut [Made<'_>],
) {
    if !part
        .iter()
        .any(|it| matches!(it.access.epoch, Epoch::Started(_)))
    {
        return;
    }
    let posts = tasks.get(&target).and_then(|it| it.posts.get(&window));
    let of_task = |task: &u32| tasks[task].exposures(window, target, posts.copied());
    let who: BTreeSet<u32> = part.iter().map(|it| it.task).collect();
    let exposures: BTreeMap<u32, _> = who.iter().map(|it| (*it, of_task(it))).collect();
    for it in part {
        if let (Epoch::Started(start), Some(known)) = (it.access.epoch, &exposures[&it.task]) {
            it.exposure = known.get(&start).copied();
        }
    }
}

/// The writes to a part, by where they begin, and the pieces of it that they cover: which bytes, by which of these.
struct Written<'a> {
    writes: Vec<&'a Made<'a>>,
    pieces: Vec<(Range<i64>, Range<usize>)>,
}

impl<'a> Written<'a> {
    fn new(part: &'a [Made<'a>]) -> Self {
        let writes = part.iter().filter(|it| it.access.kind != Access::Get);
        let mut writes: Vec<&Made<'_>> = writes.collect();
        writes.sort_by_key(|it| it.bytes.start);
        let mut pieces: Vec<(Range<i64>, Range<usize>)> = Vec::new();
        for (at, it) in writes.iter().enumerate() {
            match pieces.last_mut() {
                Some((bytes, which)) if it.bytes.start < bytes.end => {
                    bytes.end = bytes.end.max(it.bytes.end);
                    which.end = at + 1;
                }
                _ => pieces.push((it.bytes.clone(), at..at + 1)),
            }
        }
        Self { writes, pieces }
    }

    /// Whether another task writes where this access is, at the same time; `left` is how many pairs may still be looked at.
    fn by_another(&self, it: &Made<'_>, left: &mut usize) -> bool {
        let first = self
            .pieces
            .partition_point(|piece| piece.0.end <= it.bytes.start);
        let pieces = self.pieces[first..].iter();
        let pieces = pieces.take_while(|piece| piece.0.start < it.bytes.end);
        let mut writes = pieces.flat_map(|piece| &self.writes[piece.1.clone()]);
        writes.any(|write| {
            *left = left.saturating_sub(1);
            *left > 0 && write.task != it.task && write.is_beside(it) && write.meets(it)
        })
    }
}

/// What each task got where nobody else writes may be what made it go on: its later accesses heard of others. O(accesses log
/// accesses), and [`MOST_PAIRS`] pairs.
fn tell_news(
    tasks: &BTreeMap<u32, &Accesses>,
    parts: &mut BTreeMap<(CommunicatorId, u32), Vec<Made<'_>>>,
) {
    let mut undefined: BTreeSet<(u32, usize)> = BTreeSet::new();
    let mut left = MOST_PAIRS;
    for part in parts.values() {
        let written = Written::new(part);
        let gets = part.iter().filter(|it| it.access.kind == Access::Get);
        let beside = gets.filter(|it| written.by_another(it, &mut left));
        undefined.extend(beside.map(|it| (it.task, it.index)));
    }
    let news = |task: &u32| -> Vec<(usize, usize)> {
        let all = tasks[task].all.iter().enumerate();
        let known = all.filter(|it| !undefined.contains(&(*task, it.0)));
        let got = known.filter_map(|(index, it)| match (it.kind, it.epoch) {
            (Access::Get, Epoch::Passive(phase, _)) => Some((index, phase)),
            _ => None,
        });
        got.collect()
    };
    let news: BTreeMap<u32, Vec<(usize, usize)>> =
        tasks.keys().map(|task| (*task, news(task))).collect();
    for it in parts.values_mut().flatten() {
        let all = &news[&it.task];
        let before = all.partition_point(|news| news.0 < it.index);
        let last = before.checked_sub(1).and_then(|last| all.get(last));
        it.heard = it.heard.max(last.map(|it| it.1));
    }
}

/// For each pair of tasks and target the first conflict.
pub(crate) fn conflicts<'a>(tasks: impl Iterator<Item = (u32, &'a Accesses)>) -> Vec<Conflict> {
    let tasks: BTreeMap<u32, &Accesses> = tasks.collect();
    let mut parts: BTreeMap<(CommunicatorId, u32), Vec<Made<'_>>> = BTreeMap::new();
    for (&task, accesses) in &tasks {
        for (index, it) in accesses.all.iter().enumerate() {
            let part = parts.entry((it.window, it.target)).or_default();
            part.extend(Made::new(&tasks, task, index, it));
        }
    }
    for ((window, target), part) in &mut parts {
        tell_exposures(&tasks, (*window, *target), part);
    }
    tell_news(&tasks, &mut parts);
    let mut found: BTreeMap<(u32, u32, u32), Conflict> = BTreeMap::new();
    let mut left = MOST_PAIRS;
    for ((_, target), mut accesses) in parts {
        accesses.sort_by_key(|it| (it.bytes.start, it.bytes.end, it.task, it.index));
        for (place, first) in accesses.iter().enumerate() {
            let behind = accesses.iter().skip(place + 1);
            for second in behind.take_while(|it| it.bytes.start < first.bytes.end) {
                if left == 0 {
                    return found.into_values().collect();
                }
                left -= 1;
                if !conflict(first, second) || !first.meets(second) {
                    continue;
                }
                let (a, b) = match (first.task, first.index) <= (second.task, second.index) {
                    true => (first, second),
                    false => (second, first),
                };
                found
                    .entry((a.task, b.task, target))
                    .or_insert_with(|| Conflict {
                        task: a.task,
                        name: a.name(b),
                        call: a.access.call,
                        other: b.task,
                        other_name: b.name(a),
                        target,
                    });
            }
        }
    }
    found.into_values().collect()
}

/// For each pair of task and target the first access beyond the target's part of a window. O(accesses).
pub(crate) fn outside<'a>(tasks: impl Iterator<Item = (u32, &'a Accesses)>) -> Vec<Outside> {
    let tasks: BTreeMap<u32, &Accesses> = tasks.collect();
    let mut found: BTreeMap<(u32, u32), Outside> = BTreeMap::new();
    for (&task, accesses) in &tasks {
        for (index, it) in accesses.all.iter().enumerate() {
            let size = tasks.get(&it.target);
            let size = size.and_then(|target| target.sizes.get(&it.window));
            let made = Made::new(&tasks, task, index, it);
            if let (Some(&size), Some(Made { bytes, .. })) = (size, made)
                && (bytes.start < 0 || bytes.end > size)
            {
                found.entry((task, it.target)).or_insert_with(|| Outside {
                    task,
                    name: it.name.clone(),
                    call: it.call,
                    target: it.target,
                    size,
                    bytes,
                });
            }
        }
    }
    found.into_values().collect()
}

/// Whether two that overlap are not in order.
fn conflict(a: &Made<'_>, b: &Made<'_>) -> bool {
    let is_own = a.task == b.task;
    let reductions = a.access.reduction.as_ref().zip(b.access.reduction.as_ref());
    let are_alike = is_own || reductions.is_none_or(|(one, two)| one == two);
    let are_in_order = match (a.access.kind, b.access.kind) {
        (Access::Get, Access::Get) => true,
        (one, two) => accumulates(one) && accumulates(two),
    };
    if are_in_order && are_alike {
        return false;
    }
    if is_own {
        let (first, second) = if a.index < b.index { (a, b) } else { (b, a) };
        if second.index >= first.access.over {
            return false;
        }
    }
    match (a.access.epoch, b.access.epoch) {
        (Epoch::Fence(a), Epoch::Fence(b)) => a == b,
        (Epoch::Started(a), Epoch::Started(b)) if is_own => a == b,
        (Epoch::Started(_), Epoch::Started(_)) => a.exposure.is_some() && a.exposure == b.exposure,
        (Epoch::Passive(..), Epoch::Passive(..)) | (Epoch::Alone, Epoch::Alone) if is_own => true,
        (Epoch::Passive(from_a, _), Epoch::Passive(from_b, _)) => {
            a.is_beside(b) && !a.may_follow(from_b) && !b.may_follow(from_a)
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "onesided_tests.rs"]
mod tests;
