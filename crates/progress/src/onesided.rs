//! Accesses to windows that nothing orders: two that overlap, one of them a put, in one epoch.
//!
//! Their result is undefined (MPI 4.1, 12.7), and it shows one day or never. Epochs between fences are numbered: fences are
//! collective. Of passive epochs the *phase* is known, how many operations of the whole world came before: what
//! one task did up to phase 3 and another from phase 4 on is in order. Locks that exclude each other order, too; where
//! tasks send each other messages, these may, and nothing is told of passive epochs.
//!
//! *Guarantees*: what is told overlaps, whatever order the messages of the program take. *Not seen*: loads and
//! stores, datatypes of the program's own, epochs of `MPI_Win_start`. *Costs*: O(1) a call; memory for the first [`MOST`] accesses
//! of a task; O(n log n) to look for two that overlap, and at most [`MOST_PAIRS`] pairs are.

use crate::message::CommunicatorId;
use lockstep_trace::{Resolved, TraceName};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Accesses that are kept of a task.
const MOST: usize = 1 << 15;
/// Pairs that are looked at.
const MOST_PAIRS: usize = 1 << 22;

/// What is done to the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Get,
    Put,
    /// Element by element: in order with others of its kind.
    Accumulate,
}

/// Between what it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Epoch {
    /// After so many fences.
    Fence(usize),
    /// From one phase to another.
    Passive(usize, usize),
}

/// An access to a part of a task's window.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Access {
    window: CommunicatorId,
    target: u32,
    /// Bytes of the window, from and to.
    bytes: (i64, i64),
    manner: Manner,
    epoch: Epoch,
    /// How many accesses of the task came before it was over at the target; the largest number if it is not.
    over: usize,
    name: Arc<str>,
    call: (TraceName, u64),
}

/// A task's accesses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accesses {
    all: Vec<Access>,
    fences: FxHashMap<CommunicatorId, usize>,
    /// Locks that are held: whose part (`None` is everybody's), and whether nobody else may have it.
    locks: Vec<(CommunicatorId, Option<u32>, bool)>,
    /// Bytes of a unit of displacement.
    units: FxHashMap<CommunicatorId, i64>,
    /// Windows in an epoch of `MPI_Win_start`.
    started: Vec<CommunicatorId>,
    phase: usize,
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

/// Bytes of an element of a type of the standard.
fn size(name: &str) -> Option<i64> {
    Some(match name.strip_prefix("MPI_")? {
        "CHAR" | "SIGNED_CHAR" | "UNSIGNED_CHAR" | "BYTE" | "PACKED" | "INT8_T" | "UINT8_T"
        | "C_BOOL" | "CXX_BOOL" | "CHARACTER" | "INTEGER1" => 1,
        "SHORT" | "UNSIGNED_SHORT" | "INT16_T" | "UINT16_T" | "INTEGER2" => 2,
        "INT" | "UNSIGNED" | "FLOAT" | "INT32_T" | "UINT32_T" | "WCHAR" | "INTEGER"
        | "INTEGER4" | "REAL" | "REAL4" | "LOGICAL" => 4,
        "LONG" | "UNSIGNED_LONG" | "LONG_LONG" | "LONG_LONG_INT" | "UNSIGNED_LONG_LONG"
        | "DOUBLE" | "INT64_T" | "UINT64_T" | "AINT" | "OFFSET" | "COUNT" | "DOUBLE_PRECISION"
        | "REAL8" | "INTEGER8" | "2INT" | "FLOAT_INT" | "COMPLEX" | "C_FLOAT_COMPLEX"
        | "C_COMPLEX" => 8,
        "DOUBLE_COMPLEX" | "C_DOUBLE_COMPLEX" => 16,
        _ => return None,
    })
}

fn manner(base: &str) -> Option<Manner> {
    Some(match base {
        "Get" | "Rget" => Manner::Get,
        "Put" | "Rput" => Manner::Put,
        "Accumulate" | "Raccumulate" | "Get_accumulate" | "Rget_accumulate" | "Fetch_and_op"
        | "Compare_and_swap" => Manner::Accumulate,
        _ => return None,
    })
}

/// `MPI_LOCK_EXCLUSIVE` of Open MPI and of MPICH.
const EXCLUSIVE: [i64; 2] = [1, 234];

impl Accesses {
    /// The task made a window; `unit` is that of its displacements.
    pub(crate) fn made(&mut self, window: CommunicatorId, unit: Option<i64>) {
        self.units.extend(unit.map(|it| (window, it)));
    }

    /// So many operations of the whole world begin that nobody comes out of before all are in.
    pub(crate) fn meet(&mut self, times: usize) {
        self.phase += times;
    }

    /// How many of these there were.
    pub(crate) fn times_met(&self) -> usize {
        self.phase
    }

    /// A call on a window begins.
    pub(crate) fn call(
        &mut self,
        (name, trace): (&Arc<str>, TraceName),
        event: &Resolved,
        window: CommunicatorId,
    ) {
        let rank = |name| event.peer(name).and_then(|(_, peer)| peer.world);
        match name.strip_prefix("MPI_").unwrap_or(name) {
            "Win_fence" => *self.fences.entry(window).or_default() += 1,
            "Win_start" => self.started.push(window),
            "Win_complete" => self.started.retain(|it| *it != window),
            "Win_lock_all" => self.locks.push((window, None, false)),
            "Win_lock" => {
                let kind = event.number("lock_type");
                let alone = kind.is_some_and(|it| EXCLUSIVE.contains(&it));
                if let Some(rank) = rank("rank") {
                    self.locks.push((window, Some(rank), alone));
                }
            }
            "Win_unlock" => {
                let whose = rank("rank");
                self.locks.retain(|it| (it.0, it.1) != (window, whose));
                self.over(window, whose);
            }
            "Win_unlock_all" => {
                self.locks.retain(|it| (it.0, it.1) != (window, None));
                self.over(window, None);
            }
            "Win_flush" => self.over(window, rank("rank")),
            "Win_flush_all" => self.over(window, None),
            base => {
                if let Some(manner) = manner(base)
                    && let Some(target) = rank("target_rank")
                    && self.all.len() < MOST
                {
                    let call = (trace, event.annotated.index);
                    let access = self.access(window, target, manner, event);
                    let made = access.map(|(bytes, epoch)| Access {
                        window,
                        target,
                        bytes,
                        manner,
                        epoch,
                        over: usize::MAX,
                        name: name.clone(),
                        call,
                    });
                    self.all.extend(made);
                }
            }
        }
    }

    /// The bytes and the epoch of an access; `None` of what excludes others, and where they are not known.
    fn access(
        &self,
        window: CommunicatorId,
        target: u32,
        manner: Manner,
        event: &Resolved,
    ) -> Option<((i64, i64), Epoch)> {
        if self.started.contains(&window) {
            return None;
        }
        let held = |it: &&(CommunicatorId, Option<u32>, bool)| {
            it.0 == window && it.1.is_none_or(|rank| rank == target)
        };
        let epoch = match self.locks.iter().find(held) {
            Some((_, _, true)) => return None,
            Some(_) => Epoch::Passive(self.phase, usize::MAX),
            None => Epoch::Fence(*self.fences.get(&window)?),
        };
        let datatype = match manner {
            Manner::Accumulate => event.handle("target_datatype").or(event.handle("datatype")),
            _ => event.handle("target_datatype"),
        };
        let each = size(datatype?.name.as_deref()?)?;
        let count = event.number("target_count").unwrap_or(1);
        let from = event.number("target_disp")? * self.units.get(&window)?;
        (count > 0).then_some(((from, from + count * each), epoch))
    }

    /// What it did to a part of a window is done there.
    fn over(&mut self, window: CommunicatorId, target: Option<u32>) {
        let count = self.all.len();
        let phase = self.phase;
        for it in self.all.iter_mut().rev() {
            if it.window == window && target.is_none_or(|target| target == it.target) {
                if it.over != usize::MAX {
                    // All before it are over, too.
                    if target.is_some() {
                        break;
                    }
                    continue;
                }
                it.over = count;
                if let Epoch::Passive(_, to) = &mut it.epoch {
                    *to = phase;
                }
            }
        }
    }

    /// Gives windows other numbers.
    pub(crate) fn renumber(&mut self, mut here: impl FnMut(&mut CommunicatorId)) {
        self.all.iter_mut().for_each(|it| here(&mut it.window));
    }

    /// Adds those of another thread of the task.
    pub(crate) fn append(&mut self, other: Self) {
        // How the threads' calls are in order is not known.
        if self.all.is_empty() {
            *self = other;
        } else if !other.all.is_empty() {
            self.all.clear();
        }
    }
}

/// Who made an access, and the how many-th of the task it is.
type Made<'a> = (u32, usize, &'a Access);

/// For each pair of tasks and target the first conflict; `are_alone` says that no messages order what tasks do.
pub(crate) fn conflicts<'a>(
    tasks: impl Iterator<Item = (u32, &'a Accesses)>,
    are_alone: bool,
) -> Vec<Conflict> {
    let mut parts: BTreeMap<(CommunicatorId, u32), Vec<Made<'_>>> = BTreeMap::new();
    for (task, accesses) in tasks {
        for (index, it) in accesses.all.iter().enumerate() {
            let part = parts.entry((it.window, it.target)).or_default();
            part.push((task, index, it));
        }
    }
    let mut found: BTreeMap<(u32, u32, u32), Conflict> = BTreeMap::new();
    let mut left = MOST_PAIRS;
    for ((_, target), mut accesses) in parts {
        accesses.sort_by_key(|(task, index, it)| (it.bytes, *task, *index));
        for (place, first) in accesses.iter().enumerate() {
            let behind = accesses.iter().skip(place + 1);
            for second in behind.take_while(|it| it.2.bytes.0 < first.2.bytes.1) {
                if left == 0 {
                    return found.into_values().collect();
                }
                left -= 1;
                if !conflict(first, second, are_alone) {
                    continue;
                }
                let (a, b) = match (first.0, first.1) <= (second.0, second.1) {
                    true => (first, second),
                    false => (second, first),
                };
                found.entry((a.0, b.0, target)).or_insert_with(|| Conflict {
                    task: a.0,
                    name: a.2.name.clone(),
                    call: a.2.call,
                    other: b.0,
                    other_name: b.2.name.clone(),
                    target,
                });
            }
        }
    }
    found.into_values().collect()
}

/// Whether two that overlap are not in order.
fn conflict(a: &Made<'_>, b: &Made<'_>, are_alone: bool) -> bool {
    if a.2.manner == b.2.manner && a.2.manner != Manner::Put {
        return false;
    }
    if a.0 == b.0 {
        let (first, second) = if a.1 < b.1 { (a, b) } else { (b, a) };
        return second.1 < first.2.over && same_fence(a.2.epoch, b.2.epoch);
    }
    match (a.2.epoch, b.2.epoch) {
        (Epoch::Fence(a), Epoch::Fence(b)) => a == b,
        (Epoch::Passive(a, to_a), Epoch::Passive(b, to_b)) => are_alone && a <= to_b && b <= to_a,
        _ => false,
    }
}

fn same_fence(a: Epoch, b: Epoch) -> bool {
    match (a, b) {
        (Epoch::Fence(a), Epoch::Fence(b)) => a == b,
        (Epoch::Passive(..), Epoch::Passive(..)) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_trace::TraceName;

    fn access(bytes: (i64, i64), manner: Manner, epoch: Epoch, over: usize) -> Access {
        Access {
            window: CommunicatorId(7),
            target: 1,
            bytes,
            manner,
            epoch,
            over,
            name: "MPI_Put".into(),
            call: (TraceName::new(0, 0), 0),
        }
    }

    fn of(all: Vec<Access>) -> Accesses {
        Accesses {
            all,
            ..Accesses::default()
        }
    }

    fn count(tasks: &[Accesses], are_alone: bool) -> usize {
        conflicts((0..).zip(tasks), are_alone).len()
    }

    #[test]
    fn what_overlaps_between_two_fences() {
        use Epoch::Fence;
        use Manner::*;
        let one = |manner, from, to, fence| {
            of(vec![access((from, to), manner, Fence(fence), usize::MAX)])
        };
        let both = |a: Accesses, b: Accesses| count(&[a, b], false);
        assert_eq!(both(one(Put, 0, 8, 1), one(Put, 4, 12, 1)), 1);
        assert_eq!(both(one(Get, 0, 8, 1), one(Put, 4, 12, 1)), 1);
        assert_eq!(both(one(Accumulate, 0, 8, 1), one(Put, 4, 12, 1)), 1);
        assert_eq!(both(one(Get, 0, 8, 1), one(Accumulate, 4, 12, 1)), 1);
        assert_eq!(both(one(Put, 0, 8, 1), one(Put, 8, 12, 1)), 0);
        assert_eq!(both(one(Put, 0, 8, 1), one(Put, 0, 8, 2)), 0);
        assert_eq!(both(one(Get, 0, 8, 1), one(Get, 0, 8, 1)), 0);
        assert_eq!(both(one(Accumulate, 0, 8, 1), one(Accumulate, 0, 8, 1)), 0);
    }

    #[test]
    fn phases_order_and_messages_may() {
        use Epoch::Passive;
        let one = |from, to| of(vec![access((0, 4), Manner::Put, Passive(from, to), 1)]);
        assert_eq!(count(&[one(0, 0), one(0, 1)], true), 1);
        assert_eq!(count(&[one(0, 0), one(1, 1)], true), 0);
        assert_eq!(count(&[one(0, 0), one(0, 1)], false), 0);
    }

    #[test]
    fn a_flush_orders_what_one_task_does() {
        let two = |over| {
            let put = |over| access((0, 4), Manner::Put, Epoch::Passive(0, 0), over);
            of(vec![put(over), put(2)])
        };
        assert_eq!(count(&[two(2)], true), 1);
        assert_eq!(count(&[two(1)], true), 0);
    }
}
