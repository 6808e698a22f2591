//! A call that left out what every other call of its function does, wherever in the job these were made: a message, or
//! the collective operation in which others wait.
//!
//! The task that does so goes on, and is often far ahead when somebody misses the message: messages with one tag stand in
//! for each other until there is one too few. [`crate::departure`] looks at the last calls in the frames that are open; here
//! all calls of a function are held together, by what each of them communicates itself: those that are over, and the one
//! that is open, as far as it came. Calls of other tasks count as well: in lockstep they do the same. Where what is rare in
//! one task is usual elsewhere, as that has another part (the border of a grid sends less), its own calls tell.
//!
//! *Guarantees*: nothing of a function whose calls waver: each of the other ways was gone [`OFTEN`] times, the left-out
//! one once in the whole job (or in its task, and hardly ever in [`PEERS`] others), by a task that had gone another before: it
//! has no part of its own. *Costs*: O(distinct subtrees), and the calls of those frames that are told apart, at most [`MOST`].
//! *Not for*: receives that are missing (then it is the sender who waits).

use crate::departure::{Departure, MOST, calls, communicates, function, nth};
use lockstep_api::mpi::{Does, Form};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_comm::Routine;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// So many calls that were alike are a habit.
pub(crate) const OFTEN: u64 = 8;

/// Other tasks whose own habits are looked at, those that differ.
const PEERS: usize = 64;

/// What others do now and then, too, is a slip where it would be chance in one of so many cases.
const CHANCE: u64 = 32;

/// What others miss of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Missed {
    /// A message.
    pub message: bool,
    /// Collective operations, by name.
    pub collectives: BTreeSet<Arc<str>>,
}

impl Missed {
    /// Whether a call of this function would be what they miss.
    pub fn is(&self, forest: &Forest, function: FunctionKey) -> bool {
        let Routine { name, meaning, .. } = Routine::of(&forest.function(function).name);
        let sends = matches!(meaning.does, Does::Send(_)) && meaning.form != Form::Persistent;
        self.message && sends || self.collectives.contains(&name)
    }
}

/// The distinct subtrees of some tasks, callers before callees, and how often each occurs.
pub(crate) struct Counted {
    order: Vec<NodeId>,
    times: FxHashMap<NodeId, u64>,
}

impl Counted {
    pub fn new(forest: &Forest, roots: &[NodeId]) -> Self {
        let mut order = Vec::new();
        let mut seen = FxHashSet::default();
        let mut next: Vec<(NodeId, bool)> = roots.iter().map(|it| (*it, false)).collect();
        while let Some((id, is_done)) = next.pop() {
            if is_done {
                order.push(id);
            } else if seen.insert(id) {
                next.push((id, true));
                next.extend(forest.node(id).items.iter().map(|it| (it.node, false)));
            }
        }
        order.reverse();
        let mut times: FxHashMap<NodeId, u64> = FxHashMap::default();
        for root in roots {
            *times.entry(*root).or_default() += 1;
        }
        for id in &order {
            let own = times[id];
            for item in forest.node(*id).items {
                let sum = times.entry(item.node).or_default();
                *sum = sum.saturating_add(own.saturating_mul(item.times));
            }
        }
        Self { order, times }
    }

    /// How often calls that `is_meant` accepts come in each subtree.
    pub fn sums(
        &self,
        forest: &Forest,
        is_meant: impl Fn(NodeId) -> bool,
    ) -> FxHashMap<NodeId, u64> {
        let mut sums: FxHashMap<NodeId, u64> = FxHashMap::default();
        for id in self.order.iter().rev() {
            let below = forest.node(*id).items.iter().fold(0u64, |sum, item| {
                sum.saturating_add(sums[&item.node].saturating_mul(item.times))
            });
            sums.insert(*id, below.saturating_add(u64::from(is_meant(*id))));
        }
        sums
    }
}

/// What calls of one function communicate: each way that they went, how often, and one of them.
type Ways = BTreeMap<Vec<FunctionKey>, (u64, NodeId)>;

/// Calls that are held together: those of one function, or of one function by another.
type Kin = (Option<FunctionKey>, FunctionKey);

/// How the calls of some tasks went.
pub(crate) struct Habits<'a> {
    forest: &'a Forest,
    ways: BTreeMap<Kin, Ways>,
    /// Whether calls of one function by others are held apart.
    by_caller: bool,
}

impl<'a> Habits<'a> {
    /// Of the tasks with these trees; `None` where there is too much to look at.
    pub fn new(forest: &'a Forest, roots: &[NodeId]) -> Option<Self> {
        let mut habits = Self {
            forest,
            ways: BTreeMap::new(),
            by_caller: false,
        };
        let mut left = MOST;
        let counted = Counted::new(forest, roots);
        for id in &counted.order {
            if let Some((key, false)) = own_call(forest, *id) {
                habits.add((None, key), *id, counted.times[id], &mut left)?;
            }
        }
        habits.forget_silent();
        Some(habits)
    }

    /// Of one task, the calls of each caller by themselves.
    fn by_caller(forest: &'a Forest, counted: &Counted) -> Option<Self> {
        let mut habits = Self {
            forest,
            ways: BTreeMap::new(),
            by_caller: true,
        };
        let mut left = MOST;
        for id in &counted.order {
            let Some((caller, _)) = own_call(forest, *id) else {
                continue;
            };
            let mut made: BTreeMap<NodeId, u64> = BTreeMap::new();
            for call in calls(forest, *id, &mut left)? {
                *made.entry(call).or_default() += counted.times[id];
            }
            for (call, times) in made {
                if let Some((key, false)) = own_call(forest, call) {
                    habits.add((Some(caller), key), call, times, &mut left)?;
                }
            }
        }
        habits.forget_silent();
        Some(habits)
    }

    fn add(&mut self, kin: Kin, call: NodeId, times: u64, left: &mut usize) -> Option<()> {
        let way = way(self.forest, call, left)?;
        let ways = self.ways.entry(kin).or_default();
        ways.entry(way).or_insert((0, call)).0 += times;
        Some(())
    }

    fn forget_silent(&mut self) {
        let communicates = |ways: &Ways| ways.keys().any(|it| !it.is_empty());
        self.ways.retain(|_, ways| communicates(ways));
    }

    /// The one call of this task that left out what others miss, and which all others of its function do, one way or the
    /// other.
    pub fn exception(&self, root: NodeId, missed: &Missed) -> Option<Departure> {
        let counted = Counted::new(self.forest, &[root]);
        let slip = self.slip(&counted, missed)?;
        let (departure, _) = self.told(root, &counted, &slip)?;
        Some(departure)
    }

    /// The same by what this one of several tasks did itself when it was called from one function: what is rare in it others may do
    /// often, whose part is another; but who has the same part may do so hardly ever: where it comes to an end, so that it would
    /// be chance in one of [`CHANCE`] cases at most.
    pub fn own_exception(
        forest: &'a Forest,
        roots: &[NodeId],
        at: usize,
        missed: &Missed,
    ) -> Option<Departure> {
        let root = *roots.get(at)?;
        let counted = Counted::new(forest, &[root]);
        let own = Self::by_caller(forest, &counted)?;
        let slip = own.slip(&counted, missed)?;
        let mut left = MOST;
        let rare = way(forest, slip.target, &mut left)?;
        let others: BTreeSet<NodeId> = roots.iter().copied().filter(|it| *it != root).collect();
        let (mut by_chance, mut all_calls) = (0, 0u64);
        for other in others.into_iter().take(PEERS) {
            let all = Self::by_caller(forest, &Counted::new(forest, &[other]))?;
            let Some(ways) = all.ways.get(&slip.kin) else {
                continue;
            };
            let times = ways.get(&rare).map_or(0, |it| it.0);
            if times < OFTEN {
                by_chance += times;
                all_calls += ways.values().map(|it| it.0).sum::<u64>();
            }
        }
        let (departure, since) = own.told(root, &counted, &slip)?;
        let chances = by_chance.saturating_mul(since + 1).saturating_mul(CHANCE);
        (chances <= all_calls).then_some(departure)
    }

    fn slip(&self, counted: &Counted, missed: &Missed) -> Option<Slip> {
        let forest = self.forest;
        let mut left = MOST;
        let mut open: BTreeMap<Kin, Vec<NodeId>> = BTreeMap::new();
        let mut caller = None;
        // Those that are open are within each other.
        for id in &counted.order {
            if let Some((key, true)) = own_call(forest, *id) {
                let around = caller.replace(key).filter(|_| self.by_caller);
                open.entry((around, key)).or_default().push(*id);
            }
        }
        let mut found = Vec::new();
        for (kin, ways) in &self.ways {
            let over = exception(forest, ways, missed);
            let over = over.filter(|it| counted.times.contains_key(&it.0));
            let mut lacking: Vec<(NodeId, Vec<FunctionKey>, FunctionKey)> =
                over.into_iter().collect();
            if let Some([id]) = open.get(kin).map(Vec::as_slice) {
                let so_far = way(forest, *id, &mut left)?;
                let broken = broken_off(forest, ways, &so_far, missed);
                lacking.extend(broken.map(|(usual, missing)| (*id, usual, missing)));
            }
            found.extend(lacking.into_iter().map(|(target, usual, missing)| Slip {
                kin: *kin,
                target,
                usual,
                missing,
            }));
        }
        // Two are no slip but a way of their own.
        match found.len() {
            1 => found.pop(),
            _ => None,
        }
    }

    /// Where the slip is, if the task did what is usual before; and how often it did so since.
    fn told(&self, root: NodeId, counted: &Counted, slip: &Slip) -> Option<(Departure, u64)> {
        let (forest, mut left) = (self.forest, MOST);
        let Slip {
            kin,
            target,
            usual,
            missing,
        } = slip;
        let key = function(forest, *target);
        let is_usual = |id: NodeId| {
            let is_it = function(forest, id) == key && id != *target;
            let mut left = MOST;
            let found = is_it.then(|| way(forest, id, &mut left)).flatten();
            found.as_ref() == Some(usual)
        };
        let usual = counted.sums(forest, is_usual);
        // Calls from elsewhere may be alike.
        let makes_it = |id: NodeId| {
            let is_caller = kin.0.is_some() && function(forest, id) == kin.0;
            let mut left = MOST;
            let list = is_caller.then(|| calls(forest, id, &mut left)).flatten();
            list.is_some_and(|it| it.contains(target))
        };
        let around = counted.sums(forest, |id| match kin.0 {
            Some(_) => makes_it(id),
            None => id == *target,
        });
        let mut frames = Vec::new();
        let (mut id, mut before) = (root, 0u64);
        while id != *target {
            let list = calls(forest, id, &mut left)?;
            let is_here = makes_it(id);
            let mut places = list.iter();
            let at = places.position(|it| match is_here {
                true => it == target,
                false => around[it] > 0,
            })?;
            before = list[..at]
                .iter()
                .fold(before, |sum, it| sum.saturating_add(usual[it]));
            let name = forest.function(function(forest, list[at])?).name.clone();
            frames.push((name, nth(forest, &list, at)));
            id = list[at];
        }
        let since = usual[&root].saturating_sub(before);
        let departure = Departure {
            frames,
            left_out: vec![forest.function(*missing).name.clone()],
            instead: Vec::new(),
            communicates: true,
            rounds: false,
        };
        (before > 0).then_some((departure, since))
    }
}

/// A call that left something out.
struct Slip {
    kin: Kin,
    target: NodeId,
    /// The way that it should have gone.
    usual: Vec<FunctionKey>,
    missing: FunctionKey,
}

/// The function of a call that is not one of MPI, and whether it is open.
fn own_call(forest: &Forest, id: NodeId) -> Option<(FunctionKey, bool)> {
    match forest.node(id).label {
        Label::Call(call) if !communicates(forest, call.function) => {
            Some((call.function, call.open))
        }
        _ => None,
    }
}

/// What a frame communicates itself; `None` where it makes too many calls.
fn way(forest: &Forest, id: NodeId, left: &mut usize) -> Option<Vec<FunctionKey>> {
    let own = calls(forest, id, left)?.into_iter();
    let own = own.filter_map(|it| function(forest, it));
    Some(own.filter(|it| communicates(forest, *it)).collect())
}

/// The way that a call should have gone which is open and came so far without what is missed, and that; `None` where it
/// is on its way, or other calls waver.
fn broken_off(
    forest: &Forest,
    ways: &Ways,
    so_far: &[FunctionKey],
    missed: &Missed,
) -> Option<(Vec<FunctionKey>, FunctionKey)> {
    let is_on_its_way = ways.keys().any(|usual| usual.starts_with(so_far));
    if is_on_its_way || ways.values().any(|(times, _)| *times < OFTEN) {
        return None;
    }
    ways.keys().find_map(|usual| {
        // Where they part it left something out.
        let mut pairs = usual.iter().zip(so_far);
        let at = pairs.position(|(usual, it)| usual != it)?;
        let is_it = missed.is(forest, usual[at]) && usual[at + 1..].starts_with(&so_far[at..]);
        is_it.then(|| (usual.clone(), usual[at]))
    })
}

/// The call that went its way alone, the way that it should have gone, and what it left out; `None` where other calls waver, too.
fn exception(
    forest: &Forest,
    ways: &Ways,
    missed: &Missed,
) -> Option<(NodeId, Vec<FunctionKey>, FunctionKey)> {
    let mut rare = ways.iter().filter(|(_, (times, _))| *times < OFTEN);
    let (way, (1, id)) = rare.next().filter(|_| rare.next().is_none())? else {
        return None;
    };
    let mut lacking = ways.keys().filter_map(|usual| {
        let missing = lacks(way, usual).filter(|it| missed.is(forest, *it))?;
        Some((usual, missing))
    });
    let (usual, missing) = lacking.next()?;
    Some((*id, usual.clone(), missing))
}

/// The one element that a list lacks of a usual one.
pub(crate) fn lacks<T: PartialEq + Copy>(list: &[T], usual: &[T]) -> Option<T> {
    if usual.len() != list.len() + 1 {
        return None;
    }
    let at = (0..list.len()).find(|at| usual[*at] != list[*at]);
    let at = at.unwrap_or(list.len());
    (usual[at + 1..] == list[at..]).then(|| usual[at])
}

#[cfg(test)]
#[path = "habit_tests.rs"]
mod tests;
