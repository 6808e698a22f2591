//! The children of a frame as a pattern in which each loop may run once or more.
//!
//! Greedy folding depends on trip counts: it cuts the same loop differently in another run. A pattern
//! makes up for that with ways round what a loop beside it says as well ([`Pattern::skip`]) and with
//! repetitions of what is repeated elsewhere ([`Pattern::repeat`]).

use crate::calls::function;
use crate::structure::list::{List, iteration, own};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls in a row.
pub(super) type Row = Vec<FunctionKey>;

/// The longest row that is looked for in other calls of the same function.
const ROW: usize = 4;

/// How many leaves after a loop are looked at for more of its iterations.
const BESIDE: usize = 64;
/// And how many before it.
const BEFORE: usize = 16;

/// The children of a frame as a pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) leaves: Vec<Leaf>,
    pub(super) loops: Vec<Span>,
    /// Leaves after which earlier ones may come again, and those.
    again: FxHashMap<usize, Vec<usize>>,
    /// The last leaf of each function.
    pub(super) last: FxHashMap<FunctionKey, usize>,
    /// Leaves that need not come, because a loop beside them says the same: from, to.
    skips: FxHashMap<usize, Vec<usize>>,
}

/// A call, or a return without one.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) node: NodeId,
    /// Its place in the innermost list.
    index: usize,
    /// The innermost loop around it.
    around: Option<usize>,
}

/// A loop of a pattern: leaves `start..end`, once or more.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) start: usize,
    end: usize,
    pub(super) body: BodyId,
    /// Its place in the list around it.
    index: usize,
    around: Option<usize>,
}

/// A position in a pattern: before leaf `at`, or at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) at: usize,
    /// For each loop around it, outermost first, how many iterations are over.
    pub(super) rounds: Vec<u64>,
}

impl Pattern {
    pub(super) fn new(forest: &Forest, frame: NodeId, repeated: Option<&FxHashSet<Row>>) -> Self {
        let mut pattern = Self {
            leaves: Vec::new(),
            loops: Vec::new(),
            again: FxHashMap::default(),
            last: FxHashMap::default(),
            skips: FxHashMap::default(),
        };
        pattern.add(forest, List::Of(frame), None);
        for (index, leaf) in pattern.leaves.iter().enumerate() {
            if let Some(function) = function(forest, leaf.node) {
                pattern.last.insert(function, index);
            }
        }
        if let Some(rows) = repeated {
            pattern.repeat(forest, rows);
        }
        for number in 0..pattern.loops.len() {
            pattern.skip(forest, number);
        }
        pattern
    }

    /// Finds what stands beside a loop and is an iteration of it: greedy folding leaves some behind
    /// (`a p p p a p p p` is `L1^2 p` with L1 = `a L0`, since its second iteration was complete after
    /// two `p`). Were the counts others, it would be in the loop, or the loop would not be needed.
    fn skip(&mut self, forest: &Forest, number: usize) {
        let Span {
            start, end, around, ..
        } = self.loops[number];
        let list = match around {
            Some(outer) => self.loops[outer].start..self.loops[outer].end,
            None => 0..self.leaves.len(),
        };
        let mut inside = self.after(end - 1, &self.loops[number]);
        for at in (end..list.end).take(BESIDE) {
            let is_over;
            (inside, is_over) = self.step(forest, number, &inside, at);
            if inside.is_empty() {
                break;
            }
            if is_over && (at + 1 == list.end || self.is_level(at + 1, around)) {
                self.skips.entry(end).or_default().push(at + 1);
            }
        }
        let least = list.start.max(start.saturating_sub(BEFORE));
        let optional = (least..start)
            .filter(|from| self.is_level(*from, around))
            .any(|from| (start..end).any(|at| self.completes(forest, number, from, at, list.end)));
        if optional {
            self.skips.entry(start).or_default().push(end);
        }
    }

    /// Whether the leaves from `from` up to a loop are the end of an iteration of it, from its leaf
    /// `at` on, and those after the loop the beginning of one, up to that leaf: then they are one without
    /// it.
    fn completes(
        &self,
        forest: &Forest,
        number: usize,
        from: usize,
        at: usize,
        end: usize,
    ) -> bool {
        let span = &self.loops[number];
        let mut inside = vec![at];
        let mut is_over = false;
        for leaf in from..span.start {
            (inside, is_over) = self.step(forest, number, &inside, leaf);
            if inside.is_empty() {
                return false;
            }
        }
        if !is_over {
            return false;
        }
        inside = vec![span.start];
        for leaf in (span.end..end).take(BEFORE) {
            if inside.contains(&at) {
                return true;
            }
            (inside, _) = self.step(forest, number, &inside, leaf);
        }
        inside.contains(&at)
    }

    /// Follows a leaf within a loop: what may come then, and whether an iteration may be over.
    fn step(
        &self,
        forest: &Forest,
        number: usize,
        inside: &[usize],
        leaf: usize,
    ) -> (Vec<usize>, bool) {
        let span = &self.loops[number];
        let node = self.leaves[leaf].node;
        let (mut next, mut is_over) = (Vec::new(), false);
        for at in inside {
            if !forest.same_shape(self.leaves[*at].node, node) {
                continue;
            }
            is_over |= at + 1 == span.end;
            for after in self.after(*at, span) {
                if !next.contains(&after) {
                    next.push(after);
                }
            }
        }
        (next, is_over)
    }

    /// Whether a leaf begins an element of the list within the loop `around`.
    fn is_level(&self, at: usize, around: Option<usize>) -> bool {
        let mut inner = self.leaves.get(at).and_then(|leaf| leaf.around);
        while inner != around {
            match inner {
                Some(number) if self.loops[number].start == at => {
                    inner = self.loops[number].around;
                }
                _ => return false,
            }
        }
        true
    }

    /// What can come after a leaf within a loop.
    fn after(&self, at: usize, within: &Span) -> Vec<usize> {
        let mut found = Vec::new();
        if at + 1 < within.end {
            found.push(at + 1);
        }
        let mut around = self.leaves[at].around;
        while let Some(number) = around {
            let span = &self.loops[number];
            if span.end != at + 1 || span.start < within.start {
                break;
            }
            found.push(span.start);
            around = span.around;
        }
        let again = self.again.get(&at).into_iter().flatten();
        found.extend(again.copied().filter(|start| *start >= within.start));
        found
    }

    /// Lets rows of calls come again wherever they stand.
    fn repeat(&mut self, forest: &Forest, rows: &FxHashSet<Row>) {
        let functions: Vec<Option<FunctionKey>> = self
            .leaves
            .iter()
            .map(|leaf| function(forest, leaf.node))
            .collect();
        for length in 1..=ROW {
            for (start, row) in functions.windows(length).enumerate() {
                let around = self.leaves[start].around;
                let leaves = &self.leaves[start..start + length];
                let together = leaves.iter().all(|leaf| leaf.around == around);
                let row: Option<Row> = row.iter().copied().collect();
                if together && row.is_some_and(|row| rows.contains(&row)) {
                    let again = self.again.entry(start + length - 1).or_default();
                    again.push(start);
                }
            }
        }
    }

    /// Loops nest at most as deep as the logarithm of the number of events.
    fn add(&mut self, forest: &Forest, list: List, around: Option<usize>) {
        for (index, node) in list.elements(forest).enumerate() {
            let Label::Loop(body) = forest.node(node).label else {
                self.leaves.push(Leaf {
                    node,
                    index,
                    around,
                });
                continue;
            };
            let number = self.loops.len();
            self.loops.push(Span {
                start: self.leaves.len(),
                end: 0,
                body,
                index,
                around,
            });
            if let Some((list, _)) = iteration(forest, node, 0) {
                self.add(forest, list, Some(number));
            }
            self.loops[number].end = self.leaves.len();
        }
    }

    /// The loops around a leaf, outermost first.
    pub(super) fn around(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = self.leaves.get(at).and_then(|leaf| leaf.around);
        while let Some(number) = next {
            found.push(number);
            next = self.loops[number].around;
        }
        found.reverse();
        found
    }

    /// The first position behind a call of a function, or the beginning; `None` where there is no such call.
    pub(super) fn behind(&self, forest: &Forest, after: Option<FunctionKey>) -> Option<State> {
        let at = match after {
            None => 0,
            Some(_) => {
                1 + (self.leaves.iter()).position(|leaf| function(forest, leaf.node) == after)?
            }
        };
        Some(self.state(at, &[], &[]))
    }

    /// The position before leaf `at`, coming from within the loops `kept`, of which `rounds` are over.
    fn state(&self, at: usize, kept: &[usize], rounds: &[u64]) -> State {
        let around = self.around(at);
        let same = around.iter().zip(kept).take_while(|(a, b)| a == b).count();
        let mut rounds = rounds[..same.min(rounds.len())].to_vec();
        rounds.resize(around.len(), 0);
        State { at, rounds }
    }

    /// Where one can be after leaf `state.at`: first what the normal trace did, then what it might
    /// have done.
    pub(super) fn follow(
        &self,
        forest: &Forest,
        frame: NodeId,
        state: &State,
        to: &mut Vec<State>,
    ) {
        if to.len() >= POSITIONS {
            return;
        }
        let fresh = to.len();
        let around = self.around(state.at);
        let mut later = Vec::new();
        for (depth, number) in around.iter().enumerate().rev() {
            let span = &self.loops[*number];
            if span.end != state.at + 1 {
                break;
            }
            let mut rounds = state.rounds[..=depth].to_vec();
            rounds[depth] += 1;
            let again = self.state(span.start, &around[..=depth], &rounds);
            let looped = self.concrete(forest, frame, &around[..=depth], &state.rounds);
            let goes_on = looped.is_some_and(|looped| rounds[depth] < forest.trip_count(looped));
            if goes_on {
                add(to, again);
            } else {
                later.push(again);
            }
        }
        add(to, self.state(state.at + 1, &around, &state.rounds));
        later.into_iter().for_each(|state| add(to, state));
        for start in self.again.get(&state.at).into_iter().flatten() {
            if is_new(to, *start) {
                to.push(self.state(*start, &around, &state.rounds));
            }
        }
        self.skip_on(to, fresh);
    }

    /// The position before the first leaf, and those that can be reached without any.
    pub(super) fn start(&self) -> Vec<State> {
        let mut states = vec![self.state(0, &[], &[])];
        self.skip_on(&mut states, 0);
        states
    }

    /// Adds what can be reached from positions, `from` and later ones, by skipping leaves.
    fn skip_on(&self, states: &mut Vec<State>, from: usize) {
        let mut index = from;
        while let Some(at) = states.get(index).map(|state| state.at) {
            let skips = self.skips.get(&at).into_iter().flatten();
            for to in skips {
                if is_new(states, *to) {
                    let around = self.around(at);
                    let state = self.state(*to, &around, &states[index].rounds);
                    states.push(state);
                }
            }
            index += 1;
        }
    }

    /// The innermost of some loops as it occurs in the given iterations of those around it.
    fn concrete(
        &self,
        forest: &Forest,
        frame: NodeId,
        around: &[usize],
        rounds: &[u64],
    ) -> Option<NodeId> {
        let mut list = List::Of(frame);
        let mut found = None;
        for (depth, number) in around.iter().enumerate() {
            if let Some(looped) = found {
                list = iteration(forest, looped, rounds[depth - 1])?.0;
            }
            found = list.get(forest, self.loops[*number].index);
        }
        found
    }

    /// Number of events of the frame before a position.
    pub(super) fn event(&self, forest: &Forest, frame: NodeId, state: &State) -> u64 {
        let mut events = own(forest, frame);
        let mut list = List::Of(frame);
        let Some(leaf) = self.leaves.get(state.at) else {
            let end = forest.node(frame).ends.last().copied().unwrap_or(0);
            return events + end;
        };
        for (number, round) in self.around(state.at).into_iter().zip(&state.rounds) {
            let index = self.loops[number].index;
            events += list.before(forest, index);
            let looped = list.get(forest, index);
            match looped.and_then(|looped| iteration(forest, looped, *round)) {
                Some((inner, before)) => {
                    events += before;
                    list = inner;
                }
                None => return events,
            }
        }
        events + list.before(forest, leaf.index)
    }
}

/// For each caller the rows of up to [`ROW`] calls that are a loop body in some call of it.
pub(super) fn repeated(
    forest: &Forest,
    root: NodeId,
) -> FxHashMap<Option<FunctionKey>, FxHashSet<Row>> {
    let mut found: FxHashMap<Option<FunctionKey>, FxHashSet<Row>> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    let mut open = vec![(root, None)];
    while let Some((id, caller)) = open.pop() {
        if !seen.insert((id, caller)) {
            continue;
        }
        let node = forest.node(id);
        if let (Label::Loop(_), Some((body, _))) = (node.label, iteration(forest, id, 0)) {
            let row = body.elements(forest).take(ROW + 1);
            let row: Option<Row> = row.map(|node| function(forest, node)).collect();
            if let Some(row) = row.filter(|row| row.len() <= ROW) {
                found.entry(caller).or_default().insert(row);
            }
        }
        let inside = function(forest, id).or(caller);
        open.extend(node.items.iter().map(|item| (item.node, inside)));
    }
    found
}

/// How many positions are followed at once; of more, the most likely. (Where loops of equal calls stand
/// side by side by the thousand, each of them might be meant.)
const POSITIONS: usize = 32;

/// Whether a position is not there yet, and there are few.
fn is_new(states: &[State], at: usize) -> bool {
    states.len() < POSITIONS && states.iter().all(|other| other.at != at)
}

/// Adds a position that is new.
pub(super) fn add(states: &mut Vec<State>, state: State) {
    if is_new(states, state.at) {
        states.push(state);
    }
}
