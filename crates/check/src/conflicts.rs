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

use lockstep_api::mpi::Access;
use lockstep_comm::CommunicatorId;
use lockstep_comm::accesses::{Accesses, Done, Epoch};
use lockstep_trace::TraceName;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// Pairs that are looked at.
const MOST_PAIRS: usize = 1 << 22;

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

/// For each epoch of `MPI_Win_start` in which the task accessed this part of a window, by which `MPI_Win_post` of
/// the target it was let in; `None` where that is not known.
fn exposures(
    accesses: &Accesses,
    window: CommunicatorId,
    target: u32,
    posts: Option<usize>,
) -> Option<BTreeMap<usize, usize>> {
    let parts = accesses
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

/// Whether it is in order with others of its kind, element by element.
fn accumulates(access: Access) -> bool {
    !matches!(access, Access::Get | Access::Put)
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
    let of_task = |task: &u32| exposures(tasks[task], window, target, posts.copied());
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
#[path = "conflicts_tests.rs"]
mod tests;
