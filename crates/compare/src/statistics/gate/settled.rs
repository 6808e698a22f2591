//! What one call made, without what it made by timing alone.
//!
//! ```text
//!  MPI_Test other MPI_Test other MPI_Test unpack     is   MPI_Test unpack       a question that is asked again before something came of it
//!  lock unlock usleep lock unlock usleep lock unlock is   lock unlock           what is looked at again behind a pause
//! ```
//! Both rules forget the earlier of two looks. So the same program gives the same list, however long it had to wait.
//!
//! *Costs*: loops without questions, locks and pauses are taken as they are folded; others are gone through round by round.

use super::quiet::{ALL, Class, Classes, Quiet};
use crate::calls::function;
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A list of calls, as a length and a polynomial of it: equal lists have equal ones, however their loops were folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(super) struct Sequence {
    pub(super) length: u64,
    pub(super) hash: u64,
}

/// A prime: 2^61 - 1.
const PRIME: u128 = (1 << 61) - 1;
/// Any large number will do.
const BASE: u64 = 0x0b4e_1d2f_9c3a_5871;

fn times(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % PRIME) as u64
}

fn plus(a: u64, b: u64) -> u64 {
    ((u128::from(a) + u128::from(b)) % PRIME) as u64
}

/// Which call of a frame follows which; `None` is its begin, or its end.
pub(super) type Follows = (Option<FunctionKey>, Option<FunctionKey>);

/// A list of calls.
#[derive(Debug, Clone)]
struct List {
    sequence: Sequence,
    /// [`BASE`] to the power of the length.
    power: u64,
    first: Option<FunctionKey>,
    last: Option<FunctionKey>,
    /// Rows of calls of one function.
    rows: u64,
    follows: BTreeSet<Follows>,
    calls: FxHashMap<NodeId, u64>,
}

impl Default for List {
    fn default() -> Self {
        Self {
            sequence: Sequence::default(),
            power: 1,
            first: None,
            last: None,
            rows: 0,
            follows: BTreeSet::new(),
            calls: FxHashMap::default(),
        }
    }
}

impl List {
    fn one(node: NodeId, function: FunctionKey) -> Self {
        Self {
            sequence: Sequence {
                length: 1,
                hash: u64::from(function.0) + 1,
            },
            power: BASE,
            first: Some(function),
            last: Some(function),
            rows: 1,
            follows: BTreeSet::new(),
            calls: FxHashMap::from_iter([(node, 1)]),
        }
    }

    /// Adds a list so many times in a row.
    fn push_times(&mut self, other: &Self, count: u64) {
        if count == 0 || other.sequence.length == 0 {
            return;
        }
        self.follows.extend(&other.follows);
        if count > 1 {
            self.follows.insert((other.last, other.first));
        }
        if self.last.is_some() {
            self.follows.insert((self.last, other.first));
        }
        // A row may go on behind where two lists meet.
        let seams = u64::from(self.last == other.first);
        let inner = u64::from(other.last == other.first);
        let more = (other.rows - inner).saturating_mul(count - 1);
        let rows = self.rows.saturating_add(other.rows - seams);
        self.rows = rows.saturating_add(more);
        self.first = self.first.or(other.first);
        self.last = other.last;
        for (node, calls) in &other.calls {
            let sum = self.calls.entry(*node).or_default();
            *sum = sum.saturating_add(calls.saturating_mul(count));
        }
        // By doubling.
        let (mut sequence, mut power, mut left) = (other.sequence, other.power, count);
        while left > 0 {
            if left & 1 == 1 {
                (self.sequence, self.power) =
                    joined((self.sequence, self.power), (sequence, power));
            }
            (sequence, power) = joined((sequence, power), (sequence, power));
            left >>= 1;
        }
    }
}

/// Of calls of which each function's are in one row: the same calls in the order of the functions.
fn sorted(calls: &[(NodeId, FunctionKey, u64)], rows: u64) -> Option<Sequence> {
    let mut by_function: BTreeMap<FunctionKey, (NodeId, u64)> = BTreeMap::new();
    for (node, function, count) in calls {
        let row = by_function.entry(*function).or_insert((*node, 0));
        row.1 = row.1.saturating_add(*count);
    }
    if by_function.len() < 2 || by_function.len() as u64 != rows {
        return None;
    }
    let mut all = List::default();
    for (function, (node, count)) in by_function {
        all.push_times(&List::one(node, function), count);
    }
    Some(all.sequence)
}

fn joined(a: (Sequence, u64), b: (Sequence, u64)) -> (Sequence, u64) {
    let sequence = Sequence {
        length: a.0.length.saturating_add(b.0.length),
        hash: plus(times(a.0.hash, b.1), b.0.hash),
    };
    (sequence, times(a.1, b.1))
}

/// What a call or a trace made.
#[derive(Debug, Default)]
pub(super) struct Frame {
    pub sequence: Sequence,
    /// The calls in the order of the functions, if the frame goes back to none of them behind another.
    pub sorted: Option<Sequence>,
    pub follows: BTreeSet<Follows>,
    /// The calls, each as often as it stands there.
    pub calls: Vec<(NodeId, FunctionKey, u64)>,
    /// Functions of which a call was forgotten: how often they are called is a matter of timing.
    pub forgotten: FxHashSet<FunctionKey>,
    /// Whether it takes locks, asks, or takes work: itself, or through a function that does little else.
    pub shares: bool,
    /// Whether it gets an answer that depends on who was faster, likewise.
    pub answers: bool,
    pub first_come: bool,
    pub receives: bool,
}

/// One entry of a list that is not finished.
#[derive(Clone, Copy)]
struct Entry {
    node: NodeId,
    times: u64,
}

/// A look: where it begins in the list, who asked, and what for.
#[derive(Clone, Copy)]
struct Look {
    at: usize,
    asked: Option<FunctionKey>,
    bits: u8,
}

/// Makes frames of the nodes of a forest.
pub(super) struct Settler<'a> {
    forest: &'a Forest,
    classes: &'a Classes,
    frames: FxHashMap<NodeId, Rc<Frame>>,
    plain: FxHashMap<NodeId, Rc<List>>,
}

/// The list of a frame while it is made.
#[derive(Default)]
struct Draft {
    entries: Vec<Entry>,
    /// Where the calls begin that are idle, up to the end.
    quiet_from: usize,
    slept: bool,
    looks: [Option<Look>; 2],
    forgotten: FxHashSet<FunctionKey>,
}

impl<'a> Settler<'a> {
    pub fn new(forest: &'a Forest, classes: &'a Classes) -> Self {
        Self {
            forest,
            classes,
            frames: FxHashMap::default(),
            plain: FxHashMap::default(),
        }
    }

    /// What a call, or a trace, made.
    pub fn frame(&mut self, node: NodeId) -> Rc<Frame> {
        if let Some(frame) = self.frames.get(&node) {
            return Rc::clone(frame);
        }
        let frame = Rc::new(self.settle(node));
        self.frames.insert(node, Rc::clone(&frame));
        frame
    }

    fn settle(&mut self, node: NodeId) -> Frame {
        let mut draft = Draft::default();
        self.visit(self.forest.node(node).items, &mut draft);
        let mut list = List::default();
        for entry in &draft.entries {
            let part = self.list(entry.node);
            list.push_times(&part, entry.times);
        }
        list.follows.insert((None, list.first));
        list.follows.insert((list.last, None));
        let mut frame = Frame {
            sequence: list.sequence,
            follows: list.follows,
            forgotten: draft.forgotten,
            ..Frame::default()
        };
        let calls = list.calls.into_iter();
        let calls = calls.filter_map(|(it, count)| Some((it, function(self.forest, it)?, count)));
        frame.calls.extend(calls);
        frame.calls.sort_unstable();
        frame.sorted = sorted(&frame.calls, list.rows);
        frame.answers = !frame.forgotten.is_empty();
        self.note_kinds(node, &mut frame);
        frame
    }

    /// What those are that it calls, whether or not these calls are forgotten.
    fn note_kinds(&self, node: NodeId, frame: &mut Frame) {
        let named = |it: FunctionKey| self.classes.named[it.0 as usize];
        let forest = self.forest;
        forest.within(node, 1, |id, _| {
            let Some(called) = function(forest, id) else {
                return;
            };
            let mut add = |function: FunctionKey| {
                let named = named(function);
                frame.shares |= named.shares;
                frame.answers |= named.answers;
                frame.first_come |= named.first_come;
                frame.receives |= named.receives;
            };
            add(called);
            // What it calls calls nothing: it does little else.
            let mut inner = Vec::new();
            let mut is_small = !named(called).is_runtime;
            forest.within(id, 1, |id, _| {
                if let Some(function) = function(forest, id) {
                    inner.push(function);
                    is_small &= forest.node(id).items.is_empty();
                }
            });
            if is_small {
                inner.into_iter().for_each(add);
            }
        });
    }

    /// The calls of an entry, in a row: those of a call alone, or of a loop or an iteration that is plain.
    fn list(&mut self, node: NodeId) -> Rc<List> {
        if let Some(list) = self.plain.get(&node) {
            return Rc::clone(list);
        }
        let forest = self.forest;
        let list = match forest.node(node).label {
            Label::Call(call) => List::one(node, call.function),
            Label::Loop(_) | Label::Iteration => {
                let mut list = List::default();
                for item in forest.node(node).items {
                    let part = self.list(item.node);
                    list.push_times(&part, item.times);
                }
                list
            }
            Label::Trace | Label::Return => List::default(),
        };
        let list = Rc::new(list);
        self.plain.insert(node, Rc::clone(&list));
        list
    }

    fn visit(&self, items: &[Item], draft: &mut Draft) {
        for item in items {
            let node = self.forest.node(item.node);
            let quiet = self.classes.node(item.node);
            match node.label {
                Label::Call(call) => {
                    let entry = Entry {
                        node: item.node,
                        times: item.times,
                    };
                    draft.call(entry, call.function, quiet, self.forest);
                }
                Label::Loop(_) | Label::Iteration if quiet.is_plain => {
                    draft.work(
                        Entry {
                            node: item.node,
                            times: item.times,
                        },
                        quiet.commits,
                    );
                }
                Label::Loop(_) | Label::Iteration => {
                    // To wait twice is as good as to wait for long.
                    let rounds =
                        if quiet.is_idle && quiet.class == Class::Work && self.waits(item.node) {
                            item.times.min(2)
                        } else {
                            item.times
                        };
                    for _ in 0..rounds {
                        self.visit(node.items, draft);
                    }
                }
                Label::Trace | Label::Return => {}
            }
        }
    }

    /// Whether a loop that is idle has a pause or a question in it.
    fn waits(&self, node: NodeId) -> bool {
        let mut waits = false;
        self.forest.within(node, 1, |id, _| {
            waits |= !matches!(self.classes.node(id).class, Class::Work | Class::Idle);
        });
        waits
    }
}

/// Places of [`Draft::looks`].
const QUESTION: usize = 0;
const YIELD: usize = 1;

impl Draft {
    fn call(&mut self, entry: Entry, function: FunctionKey, quiet: Quiet, forest: &Forest) {
        match quiet.class {
            Class::Work => self.work(entry, quiet.commits),
            Class::Wait => {}
            Class::Sleep => self.slept = true,
            Class::Yield => {
                self.look(YIELD, None, ALL, forest);
                self.slept = true;
            }
            Class::Question => {
                self.wake(forest);
                self.look(QUESTION, Some(function), quiet.asks, forest);
                self.entries.push(Entry { times: 1, ..entry });
            }
            Class::Idle => {
                self.wake(forest);
                self.entries.push(entry);
                self.commit(QUESTION, quiet.commits);
            }
        }
    }

    fn work(&mut self, entry: Entry, commits: u8) {
        self.entries.push(entry);
        self.quiet_from = self.entries.len();
        self.slept = false;
        self.commit(QUESTION, commits);
        self.commit(YIELD, commits);
    }

    /// Something comes of such questions.
    fn commit(&mut self, kind: usize, commits: u8) {
        self.looks[kind] = self.looks[kind].filter(|it| it.bits & commits == 0);
    }

    /// Something is looked at behind a pause: what was looked at before it is forgotten.
    fn wake(&mut self, forest: &Forest) {
        if std::mem::take(&mut self.slept) {
            self.forget_from(self.quiet_from, forest);
        }
    }

    /// Something is asked: what came since the same was asked last is forgotten, with that question.
    fn look(&mut self, kind: usize, asked: Option<FunctionKey>, bits: u8, forest: &Forest) {
        if let Some(before) = self.looks[kind].filter(|it| it.asked == asked)
            && before.at < self.entries.len()
        {
            self.forget_from(before.at, forest);
        }
        let at = self.entries.len();
        self.looks[kind] = Some(Look { at, asked, bits });
    }

    fn forget_from(&mut self, at: usize, forest: &Forest) {
        for entry in self.entries.drain(at..) {
            match function(forest, entry.node) {
                Some(call) => drop(self.forgotten.insert(call)),
                None => forest.within(entry.node, 1, |node, _| {
                    self.forgotten.extend(function(forest, node));
                }),
            }
        }
        self.quiet_from = self.quiet_from.min(at);
    }
}

#[cfg(test)]
#[path = "settled_tests.rs"]
mod tests;
