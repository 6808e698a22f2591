//! Where a task departed from what is normal: what it left out, or did instead.
//!
//! A task that skipped work is *ahead*, and those who wait for its messages are the least progressed: they
//! are its victims. What is normal is told by the same task of a normal run; or by the task itself, where
//! the last call of a function does otherwise than all its calls before, which were alike.
//!
//! Two call trees are walked in step, frame by frame. Calls of the program's own functions may be made more
//! or less often in a row (data differ); calls that communicate may not.
//!
//! *Guarantees*: what was still open at the end is not called left out. *Costs*: O(calls of frames that
//! differ), at most [`MOST`]; equal subtrees cost nothing. *Not for*: showing all differences (`diff`).

use crate::counted::{counts, is_mpi};
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId};

/// A departure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// The frames in which it happened, outermost first: function, and which of its calls by the frame
    /// around it, from 1.
    pub frames: Vec<(String, usize)>,
    /// What was left out, in order.
    pub left_out: Vec<String>,
    /// What was called instead, or besides.
    pub instead: Vec<String>,
    /// Whether any of these calls communicates, or something in them.
    pub communicates: bool,
    /// Whether it is only that a loop had more rounds, or fewer, each of which went as one before it.
    pub rounds: bool,
}

/// Calls that are looked at, at most.
pub const MOST: usize = 20_000_000;
/// How far is looked for where two frames come together again.
const WINDOW: usize = 4096;
/// Calls of a round of a loop.
const ROUND: usize = 64;
/// Functions that are named.
const NAMED: usize = 3;
/// So many calls that were alike are a habit.
const HABIT: usize = 3;

/// Two frames that are walked in step.
struct Pair {
    normal: Vec<NodeId>,
    other: Vec<NodeId>,
    /// How far both are.
    at: (usize, usize),
    /// Whether the other frame may go on.
    open: bool,
    name: Option<(FunctionKey, usize)>,
}

/// Where `other` first departs from `normal`; `None` where it does not, as far as it got.
pub(crate) fn departure(forest: &Forest, normal: NodeId, other: NodeId) -> Option<Departure> {
    if normal == other {
        return None;
    }
    let mut left = MOST;
    let is_open = |id: NodeId| matches!(forest.node(id).label, Label::Call(call) if call.open);
    let is_trace = forest.node(other).label == Label::Trace;
    let mut stack = vec![Pair {
        normal: calls(forest, normal, &mut left)?,
        other: calls(forest, other, &mut left)?,
        at: (0, 0),
        open: is_trace || is_open(other),
        name: None,
    }];
    while let Some(pair) = stack.last_mut() {
        let (i, j) = pair.at;
        match (pair.normal.get(i).copied(), pair.other.get(j).copied()) {
            (None, None) => drop(stack.pop()),
            (Some(_), None) if pair.open => drop(stack.pop()),
            (Some(a), Some(b)) if a == b => pair.at = (i + 1, j + 1),
            (Some(a), Some(b)) if function(forest, a) == function(forest, b) => {
                pair.at = (i + 1, j + 1);
                let nth = nth(forest, &pair.other, j);
                stack.push(Pair {
                    normal: calls(forest, a, &mut left)?,
                    other: calls(forest, b, &mut left)?,
                    at: (0, 0),
                    open: is_open(b),
                    name: function(forest, b).map(|it| (it, nth)),
                });
            }
            (a, b) => {
                let skipped = meet(forest, &pair.normal[i..], b);
                let added = meet(forest, &pair.other[j..], a);
                // Who asked here, and asks still, may yet do what comes next.
                let asked = || {
                    let mut before = pair.other[..j].iter().rev();
                    let last = before.find(|it| asks(forest, **it) || !mpi_free(forest, **it));
                    last.is_some_and(|it| asks(forest, *it))
                };
                let is_new = skipped.is_none() && added.is_none();
                if pair.open && (is_new || asked()) && only_asks(forest, &pair.other[j..]) {
                    stack.pop();
                    continue;
                }
                let (skipped, added) = match (skipped, added) {
                    (Some(k), Some(m)) if m < k => (0, m),
                    (Some(k), _) => (k, 0),
                    (None, Some(m)) => (0, m),
                    // One call in the place of another.
                    (None, None) => (usize::from(a.is_some()), usize::from(b.is_some())),
                };
                let is_habit = skipped + added > 0
                    && repeats(forest, &pair.normal, i, skipped)
                    && repeats(forest, &pair.other, j, added);
                if is_habit {
                    pair.at = (i + skipped, j + added);
                    continue;
                }
                let (left_out, instead) = (
                    names(forest, &pair.normal[i..i + skipped]),
                    names(forest, &pair.other[j..j + added]),
                );
                let mut calls = pair.normal[i..i + skipped]
                    .iter()
                    .chain(&pair.other[j..j + added]);
                let communicates = calls.any(|it| !mpi_free(forest, *it));
                let rounds = goes_round(forest, &pair.other, j, a, pair.open)
                    || goes_round(forest, &pair.normal, i, b, false);
                let frames = stack.iter().filter_map(|it| it.name);
                return Some(Departure {
                    frames: frames
                        .map(|(key, nth)| (forest.function(key).name.clone(), nth))
                        .collect(),
                    left_out,
                    instead,
                    communicates,
                    rounds,
                });
            }
        }
    }
    None
}

/// Where the last call of a function, in a frame that is still open, departs from all before it in what it communicates: where
/// these were alike; or the last round of a loop, back to where the task is now.
pub(crate) fn unlike_before(forest: &Forest, root: NodeId) -> Option<Departure> {
    let mut left = MOST;
    let mut frames: Vec<(String, usize)> = Vec::new();
    let mut id = root;
    loop {
        let list = calls(forest, id, &mut left)?;
        let mut seen: Vec<FunctionKey> = Vec::new();
        for (at, call) in list.iter().enumerate().rev() {
            let Some(key) = function(forest, *call) else {
                continue;
            };
            // Once round: back to the last time that the task was where it is.
            if at + 1 < list.len() && Some(key) == list.last().and_then(|it| function(forest, *it))
            {
                break;
            }
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            if matches!(forest.node(*call).label, Label::Call(call) if call.open) {
                continue;
            }
            let before: Vec<NodeId> = list[..at]
                .iter()
                .copied()
                .filter(|it| function(forest, *it) == Some(key))
                .collect();
            let Some(first) = before.first().filter(|_| before.len() >= HABIT) else {
                continue;
            };
            let alike = before
                .iter()
                .all(|it| departure(forest, *first, *it).is_none());
            let found = departure(forest, *first, *call).filter(|it| alike && it.communicates);
            if let Some(mut found) = found {
                let name = forest.function(key).name.clone();
                let mut all = frames;
                all.push((name, before.len() + 1));
                all.append(&mut found.frames);
                found.frames = all;
                return Some(found);
            }
        }
        // On into the call that is open.
        let last = list.last().copied()?;
        if !matches!(forest.node(last).label, Label::Call(call) if call.open) {
            return None;
        }
        let key = function(forest, last)?;
        if let Some(left_out) = last_round(forest, &list, key) {
            return Some(Departure {
                frames,
                left_out,
                instead: Vec::new(),
                communicates: true,
                rounds: false,
            });
        }
        let nth = nth(forest, &list, list.len() - 1);
        frames.push((forest.function(key).name.clone(), nth));
        id = last;
    }
}

/// What communicates and was called by the frame itself in each of the rounds before the last one, and not in that. A
/// round is from one call of this function, in which the frame is, to the next.
fn last_round(forest: &Forest, list: &[NodeId], key: FunctionKey) -> Option<Vec<String>> {
    if !communicates(forest, key) {
        return None;
    }
    let keys: Vec<FunctionKey> = list
        .iter()
        .filter_map(|it| function(forest, *it))
        .filter(|it| communicates(forest, *it))
        .collect();
    let mut rounds = keys.split(|it| *it == key).skip(1).collect::<Vec<_>>();
    // Behind the call in which it is now, nothing came.
    rounds.pop();
    let (last, before) = rounds.split_last()?;
    let usual = before.first().filter(|_| before.len() >= HABIT)?;
    if before.iter().any(|it| it != usual) {
        return None;
    }
    let mut done = last.iter().peekable();
    let left_out: Vec<FunctionKey> = usual
        .iter()
        .copied()
        .filter(|it| done.next_if_eq(&it).is_none())
        .collect();
    let is_less = done.next().is_none() && !left_out.is_empty();
    let name = |it: FunctionKey| forest.function(it).name.clone();
    is_less.then(|| left_out.into_iter().take(NAMED).map(name).collect())
}

/// The calls that a frame made, one by one; `None` where there are too many.
pub(crate) fn calls(forest: &Forest, id: NodeId, left: &mut usize) -> Option<Vec<NodeId>> {
    let mut found = Vec::new();
    let mut next: Vec<(&[Item], u64)> = vec![(forest.node(id).items, 0)];
    while let Some((items, done)) = next.pop() {
        let Some((item, rest)) = items.split_first() else {
            continue;
        };
        if done == item.times {
            next.push((rest, 0));
            continue;
        }
        let node = forest.node(item.node);
        match node.label {
            Label::Loop(_) | Label::Iteration => {
                next.push((items, done + 1));
                next.push((node.items, 0));
            }
            Label::Call(call) if counts(forest, call.function) => {
                *left = left.checked_sub(item.times as usize)?;
                found.extend(std::iter::repeat_n(item.node, item.times as usize));
                next.push((rest, 0));
            }
            Label::Call(_) | Label::Trace | Label::Return => next.push((rest, 0)),
        }
    }
    Some(found)
}

pub(crate) fn function(forest: &Forest, id: NodeId) -> Option<FunctionKey> {
    match forest.node(id).label {
        Label::Call(call) => Some(call.function),
        _ => None,
    }
}

/// Which call of its function a call is, from 1.
pub(crate) fn nth(forest: &Forest, list: &[NodeId], at: usize) -> usize {
    let key = function(forest, list[at]);
    let same = list[..=at]
        .iter()
        .filter(|it| function(forest, **it) == key);
    same.count()
}

/// How many calls come before one of this one's function; all of a short rest where there is none to meet.
fn meet(forest: &Forest, list: &[NodeId], with: Option<NodeId>) -> Option<usize> {
    let Some(key) = with.and_then(|it| function(forest, it)) else {
        return Some(list.len());
    };
    let mut near = list.iter().take(WINDOW);
    near.position(|it| function(forest, *it) == Some(key))
}

/// Whether some calls only go on with what was done before them, and communicate nothing.
fn repeats(forest: &Forest, list: &[NodeId], at: usize, count: usize) -> bool {
    let of = |index: usize| list.get(index).and_then(|it| function(forest, *it));
    let is_free = |index: usize| of(index).is_some_and(|it| !communicates(forest, it));
    let is_round = |period: usize| {
        count.is_multiple_of(period)
            && (0..count).all(|it| of(at + it) == of(at - period + it % period))
    };
    count == 0
        || (at..at + count).all(|it| is_free(it) && mpi_free(forest, list[it]))
            && (1..=at.min(count)).any(is_round)
}

/// Whether a frame goes on from here with rounds of several calls as before, and whole ones up to a call of the function of
/// `next`; or as far as it is, if it is `open`.
fn goes_round(
    forest: &Forest,
    list: &[NodeId],
    at: usize,
    next: Option<NodeId>,
    open: bool,
) -> bool {
    let of = |index: usize| list.get(index).and_then(|it| function(forest, *it));
    let next = next.and_then(|it| function(forest, it));
    (2..=at.min(ROUND)).any(|period| {
        let ahead = (at..list.len()).take(WINDOW);
        let alike = ahead.take_while(|it| of(*it) == of(*it - period)).count();
        let whole = (period..=alike).step_by(period);
        // A round that is not whole has to be one of several.
        let several = || at >= 2 * period && (at - period..at).all(|it| of(it) == of(it - period));
        let is_last = open && alike > 0 && at + alike == list.len();
        is_last && (alike >= period || several())
            || whole.map(|it| of(at + it)).any(|it| it == next)
    })
}

/// Whether a function sends, receives or waits: not where it only asks, or tells what is known here.
pub(crate) fn communicates(forest: &Forest, function: FunctionKey) -> bool {
    let meaning = forest.of_mpi(function);
    is_mpi(forest, function) && !meaning.asks() && !meaning.is_query()
}

/// Whether a call asks MPI for something without waiting for it.
fn asks(forest: &Forest, id: NodeId) -> bool {
    let is_it = |it: FunctionKey| is_mpi(forest, it) && !communicates(forest, it);
    function(forest, id).is_some_and(is_it)
}

/// Whether these calls ask, and none of them does anything else that communicates.
fn only_asks(forest: &Forest, list: &[NodeId]) -> bool {
    let mut list = list.to_vec();
    list.dedup();
    list.iter().any(|it| asks(forest, *it)) && list.iter().all(|it| mpi_free(forest, *it))
}

/// Names of calls: of those that communicate, if any do (that is what others miss), else of all.
fn names(forest: &Forest, list: &[NodeId]) -> Vec<String> {
    let telling: Vec<NodeId> = list
        .iter()
        .copied()
        .filter(|it| !mpi_free(forest, *it))
        .collect();
    let named = if telling.is_empty() { list } else { &telling };
    let keys = named.iter().filter_map(|it| function(forest, *it));
    keys.take(NAMED)
        .map(|it| forest.function(it).name.clone())
        .collect()
}

/// Whether nothing in a call communicates.
fn mpi_free(forest: &Forest, id: NodeId) -> bool {
    let mut next = vec![id];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(id) = next.pop() {
        if function(forest, id).is_some_and(|it| communicates(forest, it)) {
            return false;
        }
        let items = forest.node(id).items.iter().map(|it| it.node);
        next.extend(items.filter(|it| seen.insert(*it)));
    }
    true
}

#[cfg(test)]
#[path = "departure_tests.rs"]
mod tests;
