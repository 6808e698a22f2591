//! How far a faulty tree can be explained by a normal one when trip counts are free.
//!
//! The children of a normal frame are read as a pattern in which each loop may run once or more. The
//! children of the faulty frame are followed through it with *all* the positions that they can have
//! reached (a set that mostly has one or two members), so that it does not matter how the greedy folding
//! has cut either list into loops:
//!
//! ```text
//!  normal   a L0 a L0 b        pattern   ( a  (p)+ )+  b       L1 = a L0, L0 = p
//!  faulty   a p p p a p b      reached    0→1→{0,1,2}→ ...
//! ```
//!
//! A loop of the faulty frame is followed until its iterations lead to positions that were reached
//! before. What the normal trace repeats in some call of a function may be repeated in every call of it:
//! trip counts are free down to 1. (A polling loop runs once here and three times there, and only the
//! latter looks like a loop.) Two calls of one function match if the faulty one's children can be explained by the normal
//! one's, which is decided once for each pair of nodes.

use super::Mismatch;
use super::list::{List, Next, first, iteration, last, own};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The furthest event of `faulty` up to which it is explained by `normal`; `None` if it all is.
pub(super) fn first_mismatch(forest: &Forest, normal: NodeId, faulty: NodeId) -> Option<Mismatch> {
    if forest.same_shape(normal, faulty) {
        return None;
    }
    let mut explainer = Explainer {
        forest,
        repeated: repeated(forest, normal),
        patterns: FxHashMap::default(),
        known: FxHashMap::default(),
    };
    explainer.decide((normal, faulty));
    explainer.mismatch((normal, faulty))
}

/// A frame of the normal tree and one of the faulty tree.
type Pair = (NodeId, NodeId);

struct Explainer<'f> {
    forest: &'f Forest,
    /// For each caller the short rows of calls that it repeats somewhere in the normal trace.
    repeated: FxHashMap<Option<FunctionKey>, FxHashSet<Row>>,
    patterns: FxHashMap<NodeId, Rc<Pattern>>,
    known: FxHashMap<Pair, Result<(), Failure>>,
}

/// Where the explanation of a frame fails.
#[derive(Debug, Clone)]
struct Failure {
    /// Events of the faulty frame before that, its own call included.
    event: u64,
    /// The position in the normal frame.
    state: State,
    /// What the faulty frame does there.
    faulty: Next,
    /// If it fails within calls of the same function: those.
    within: Option<Pair>,
}

/// Calls in a row.
type Row = Vec<FunctionKey>;

/// The longest row that is looked for in other calls of the same function.
const ROW: usize = 4;

/// How many leaves after a loop are looked at for more of its iterations.
const BESIDE: usize = 64;
/// And how many before it.
const BEFORE: usize = 16;

/// The children of a frame as a pattern.
#[derive(Debug)]
struct Pattern {
    leaves: Vec<Leaf>,
    loops: Vec<Span>,
    /// Leaves after which earlier ones may come again, and those.
    again: FxHashMap<usize, Vec<usize>>,
    /// The last leaf of each function.
    last: FxHashMap<FunctionKey, usize>,
    /// Leaves that need not come, because a loop beside them says the same: from, to.
    skips: FxHashMap<usize, Vec<usize>>,
}

/// A call, or a return without one.
#[derive(Debug)]
struct Leaf {
    node: NodeId,
    /// Its place in the innermost list.
    index: usize,
    /// The innermost loop around it.
    around: Option<usize>,
}

/// A loop of a pattern: leaves `start..end`, once or more.
#[derive(Debug)]
struct Span {
    start: usize,
    end: usize,
    body: BodyId,
    /// Its place in the list around it.
    index: usize,
    around: Option<usize>,
}

/// A position in a pattern: before leaf `at`, or at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    at: usize,
    /// For each loop around it, outermost first, how many iterations are over.
    rounds: Vec<u64>,
}

impl Pattern {
    fn new(forest: &Forest, frame: NodeId, repeated: Option<&FxHashSet<Row>>) -> Self {
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
    fn around(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = self.leaves.get(at).and_then(|leaf| leaf.around);
        while let Some(number) = next {
            found.push(number);
            next = self.loops[number].around;
        }
        found.reverse();
        found
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
    fn follow(&self, forest: &Forest, frame: NodeId, state: &State, to: &mut Vec<State>) {
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
            add(to, self.state(*start, &around, &state.rounds));
        }
        self.skip_on(to);
    }

    /// The position before the first leaf, and those that can be reached without any.
    fn start(&self) -> Vec<State> {
        let mut states = vec![self.state(0, &[], &[])];
        self.skip_on(&mut states);
        states
    }

    /// Adds what can be reached by skipping leaves.
    fn skip_on(&self, states: &mut Vec<State>) {
        let mut index = 0;
        while let Some(state) = states.get(index).cloned() {
            index += 1;
            if let Some(skips) = self.skips.get(&state.at) {
                let around = self.around(state.at);
                for at in skips {
                    add(states, self.state(*at, &around, &state.rounds));
                }
            }
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
    fn event(&self, forest: &Forest, frame: NodeId, state: &State) -> u64 {
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

/// The function of a call.
fn function(forest: &Forest, node: NodeId) -> Option<FunctionKey> {
    match forest.node(node).label {
        Label::Call(call) => Some(call.function),
        _ => None,
    }
}

/// For each caller the rows of up to [`ROW`] calls that are a loop body in some call of it.
fn repeated(forest: &Forest, root: NodeId) -> FxHashMap<Option<FunctionKey>, FxHashSet<Row>> {
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

/// Adds a position that is not there yet.
fn add(states: &mut Vec<State>, state: State) {
    if states.iter().all(|other| other.at != state.at) {
        states.push(state);
    }
}

/// The explanation of one pair of frames, under way.
struct Attempt {
    pair: Pair,
    pattern: Rc<Pattern>,
    /// Where the normal frame may have got to; the most likely first.
    states: Vec<State>,
    /// Where the faulty frame is: its list, and what it is in within that.
    places: Vec<Place>,
    /// What could not be explained and was taken for a free repetition, if nothing has been explained
    /// since: should that go on, it was none.
    excused: Option<Failure>,
}

/// A place in the faulty frame.
enum Place {
    List {
        list: List,
        index: usize,
    },
    Loop {
        node: NodeId,
        trips: u64,
        /// Iterations that are over.
        over: u64,
        /// Positions after an earlier iteration, and which one that was.
        seen: FxHashMap<Vec<usize>, (u64, Vec<State>)>,
        /// All positions after any iteration so far, the latest first.
        all: Vec<State>,
    },
}

enum Step {
    /// This pair must be decided first.
    Needs(Pair),
    Done(Result<(), Failure>),
}

impl Attempt {
    fn new(pair: Pair, pattern: Rc<Pattern>) -> Self {
        Self {
            pair,
            states: pattern.start(),
            pattern,
            places: vec![Place::List {
                list: List::Of(pair.1),
                index: 0,
            }],
            excused: None,
        }
    }

    /// Goes on until a pair is needed that is not decided yet, or to the end.
    fn run(&mut self, forest: &Forest, known: &FxHashMap<Pair, Result<(), Failure>>) -> Step {
        loop {
            let element = match self.places.last() {
                Some(Place::List { list, index }) => list.get(forest, *index),
                Some(Place::Loop { .. }) => {
                    self.begin_iteration(forest);
                    continue;
                }
                None => return Step::Done(Ok(())),
            };
            let Some(element) = element else {
                if self.places.len() == 1 {
                    return Step::Done(self.end(forest));
                }
                self.end_iteration();
                continue;
            };
            if let Label::Loop(_) = forest.node(element).label {
                self.places.push(Place::Loop {
                    node: element,
                    trips: forest.trip_count(element),
                    over: 0,
                    seen: FxHashMap::default(),
                    all: Vec::new(),
                });
                continue;
            }
            match self.leaf(forest, element, known) {
                Some(done) => return done,
                None => continue,
            }
        }
    }

    /// A call of the faulty frame, or a return without one.
    fn leaf(
        &mut self,
        forest: &Forest,
        element: NodeId,
        known: &FxHashMap<Pair, Result<(), Failure>>,
    ) -> Option<Step> {
        let mut reached = Vec::new();
        let mut failure: Option<Failure> = None;
        for state in &self.states {
            let Some(leaf) = self.pattern.leaves.get(state.at) else {
                continue;
            };
            let pair = (leaf.node, element);
            let matches = forest.same_shape(pair.0, pair.1)
                || match (forest.node(pair.0).label, forest.node(pair.1).label) {
                    (Label::Call(a), Label::Call(b)) if a.function == b.function => {
                        match known.get(&pair) {
                            None => return Some(Step::Needs(pair)),
                            Some(Ok(())) => true,
                            Some(Err(inner)) => {
                                let event = self.event(forest) + inner.event;
                                if failure.as_ref().is_none_or(|found| found.event < event) {
                                    failure = Some(Failure {
                                        event,
                                        state: state.clone(),
                                        faulty: inner.faulty,
                                        within: Some(pair),
                                    });
                                }
                                false
                            }
                        }
                    }
                    _ => false,
                };
            if matches {
                self.pattern
                    .follow(forest, self.pair.0, state, &mut reached);
            }
        }
        if !reached.is_empty() {
            self.states = reached;
            self.excused = None;
            self.pass();
            return None;
        }
        let failure = match (self.excused.take(), failure) {
            (Some(excused), _) => excused,
            (None, Some(within)) => within,
            (None, None) => self.failure(forest, first(forest, element)),
        };
        if self.excuse(forest, element) {
            self.excused = Some(failure);
            return None;
        }
        Some(Step::Done(Err(failure)))
    }

    fn failure(&self, forest: &Forest, faulty: Next) -> Failure {
        Failure {
            event: self.event(forest),
            state: self.states[0].clone(),
            faulty,
            within: None,
        }
    }

    /// The end of the faulty frame.
    fn end(&self, forest: &Forest) -> Result<(), Failure> {
        let (normal, faulty) = (last(forest, self.pair.0), last(forest, self.pair.1));
        let at_end = |state: &State| state.at == self.pattern.leaves.len();
        if normal == faulty && self.states.iter().any(at_end) {
            return Ok(());
        }
        let failure = self.failure(forest, faulty);
        Err(self.excused.clone().unwrap_or(failure))
    }

    /// The element is done.
    fn pass(&mut self) {
        if let Some(Place::List { index, .. }) = self.places.last_mut() {
            *index += 1;
        }
    }

    fn begin_iteration(&mut self, forest: &Forest) {
        let Some(Place::Loop { node, over, .. }) = self.places.last() else {
            return;
        };
        if let Some((list, _)) = iteration(forest, *node, *over) {
            self.places.push(Place::List { list, index: 0 });
        }
    }

    /// After an iteration: another one, or the end of the loop.
    fn end_iteration(&mut self) {
        self.places.pop();
        let Some(Place::Loop {
            trips,
            over,
            seen,
            all,
            ..
        }) = self.places.last_mut()
        else {
            return;
        };
        *over += 1;
        let mut positions: Vec<usize> = self.states.iter().map(|state| state.at).collect();
        positions.sort_unstable();
        // Where it was before, it will be again, after as many iterations.
        if let Some((earlier, states)) = seen.get(&positions) {
            let period = *over - earlier;
            let times = (*trips - *over) / period;
            for state in &mut self.states {
                let before = states.iter().find(|other| other.at == state.at);
                for (round, before) in state
                    .rounds
                    .iter_mut()
                    .zip(before.map_or(&[][..], |s| &s.rounds))
                {
                    *round += round.saturating_sub(*before) * times;
                }
            }
            *over += times * period;
            seen.clear();
        } else {
            seen.insert(positions, (*over, self.states.clone()));
        }
        for state in std::mem::replace(all, self.states.clone()) {
            add(all, state);
        }
        if *over >= *trips {
            self.states = std::mem::take(all);
            self.places.pop();
            self.pass();
        }
    }

    /// Nothing explains `element`. If the loop around it has been explained once, and the normal frame
    /// does not call that function any more, its other iterations are mere repetitions. (Where it does,
    /// something has been left out: `send send recv` in place of `send recv send recv`.)
    fn excuse(&mut self, forest: &Forest, element: NodeId) -> bool {
        let excused = |place: &Place| matches!(place, Place::Loop { over, .. } if *over > 0);
        let Some(depth) = self.places.iter().rposition(excused) else {
            return false;
        };
        let Some(function) = function(forest, element) else {
            return false;
        };
        let last = self.pattern.last.get(&function);
        let comes = |state: &State| {
            let around = self.pattern.around(state.at);
            let from = around
                .first()
                .map_or(state.at, |number| self.pattern.loops[*number].start);
            last.is_some_and(|last| *last >= from)
        };
        if self.states.iter().any(comes) {
            return false;
        }
        self.places.truncate(depth + 1);
        if let Some(Place::Loop { all, .. }) = self.places.pop() {
            self.states = all;
        }
        self.pass();
        true
    }

    /// Number of events of the faulty frame so far.
    fn event(&self, forest: &Forest) -> u64 {
        let places = self.places.iter().map(|place| match place {
            Place::List { list, index } => list.before(forest, *index),
            Place::Loop { node, over, .. } => {
                iteration(forest, *node, *over).map_or(0, |(_, before)| before)
            }
        });
        own(forest, self.pair.1) + places.sum::<u64>()
    }
}

impl Explainer<'_> {
    /// Decides a pair, and before it all that it needs: a stack of attempts in place of recursion.
    fn decide(&mut self, pair: Pair) {
        let mut attempts = vec![self.attempt(pair)];
        while let Some(attempt) = attempts.last_mut() {
            match attempt.run(self.forest, &self.known) {
                Step::Needs(pair) => {
                    let attempt = self.attempt(pair);
                    attempts.push(attempt);
                }
                Step::Done(result) => {
                    self.known.insert(attempt.pair, result);
                    attempts.pop();
                }
            }
        }
    }

    fn attempt(&mut self, pair: Pair) -> Attempt {
        Attempt::new(pair, self.pattern(pair.0))
    }

    fn pattern(&mut self, frame: NodeId) -> Rc<Pattern> {
        let (forest, repeated) = (self.forest, &self.repeated);
        let pattern = self.patterns.entry(frame).or_insert_with(|| {
            let rows = repeated.get(&function(forest, frame));
            Rc::new(Pattern::new(forest, frame, rows))
        });
        pattern.clone()
    }

    /// The mismatch that a pair fails with, from its outermost frame inwards.
    fn mismatch(&mut self, mut pair: Pair) -> Option<Mismatch> {
        let mut mismatch: Option<Mismatch> = None;
        loop {
            let Some(Err(failure)) = self.known.get(&pair).cloned() else {
                return mismatch;
            };
            let pattern = self.pattern(pair.0);
            let found = mismatch.get_or_insert_with(|| Mismatch {
                normal: Next::End,
                faulty: failure.faulty,
                normal_event: 0,
                faulty_event: failure.event,
                stack: Vec::new(),
                loops: Vec::new(),
            });
            if let Label::Call(call) = self.forest.node(pair.1).label {
                found.stack.push(call.function);
            }
            let around = pattern.around(failure.state.at).into_iter();
            let rounds = failure.state.rounds.iter().map(|over| over + 1);
            let bodies = around.map(|number| pattern.loops[number].body);
            found.loops.extend(bodies.zip(rounds));
            found.normal_event += pattern.event(self.forest, pair.0, &failure.state);
            found.normal = match pattern.leaves.get(failure.state.at) {
                Some(leaf) => first(self.forest, leaf.node),
                None => last(self.forest, pair.0),
            };
            match failure.within {
                Some(inner) => pair = inner,
                None => return mismatch,
            }
        }
    }
}
