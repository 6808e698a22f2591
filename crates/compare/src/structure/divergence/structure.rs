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
//! one's, which is decided once for each pair of nodes. Where that fails in a function that waits for others, what its other calls
//! do in normal runs is accepted as well ([`Usual`]).

use super::exact::Mismatch;
use super::pattern::{Pattern, Row, State, add, repeated};
use super::usual::{Accepted, Unusual, Usual};
use crate::calls::function;
use crate::structure::list::{List, Next, first, iteration, last, own};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// The furthest event of `faulty` up to which it is explained by `normal`, and by what is `usual`; no mismatch if it all is. And
/// whether something was explained by the latter.
pub(super) fn first_mismatch(
    forest: &Forest,
    normal: NodeId,
    faulty: NodeId,
    usual: Option<Accepted>,
) -> (Option<Mismatch>, bool) {
    let mut explainer = Explainer::new(forest, normal);
    explainer.usual = usual;
    explainer.decide((normal, faulty));
    (explainer.mismatch((normal, faulty)), explainer.by_timing)
}

/// Whether one of these frames of the tree `normal` explains more of a frame than its first `within` events.
pub(super) fn explains_more(
    forest: &Forest,
    normal: NodeId,
    frames: &[NodeId],
    frame: NodeId,
    within: u64,
) -> bool {
    let mut explainer = Explainer::new(forest, normal);
    frames.iter().any(|other| {
        let pair = (*other, frame);
        if forest.same_shape(pair.0, pair.1) {
            return true;
        }
        if !explainer.known.contains_key(&pair) {
            explainer.decide(pair);
        }
        match explainer.known.get(&pair) {
            Some(Err(failure)) => failure.event > within,
            _ => true,
        }
    })
}

/// A frame of the normal tree and one of the faulty tree.
type Pair = (NodeId, NodeId);

struct Explainer<'f> {
    forest: &'f Forest,
    /// For each caller the short rows of calls that it repeats somewhere in the normal trace.
    repeated: FxHashMap<Option<FunctionKey>, FxHashSet<Row>>,
    patterns: FxHashMap<NodeId, Rc<Pattern>>,
    known: FxHashMap<Pair, Result<(), Failure>>,
    usual: Option<Accepted<'f>>,
    /// Whether something was explained by what is usual.
    by_timing: bool,
    /// Frames that are looked at beside what is usual, each within the one before.
    depth: usize,
    /// What came of it, by frame.
    beside: FxHashMap<NodeId, Result<(), Unusual>>,
}

/// So many functions that wait are looked at within each other.
const DEPTH: usize = 32;

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
    /// Where the position says nothing of loops: those of the faulty frame.
    loops: Option<Vec<(BodyId, u64)>>,
    /// Where the normal frame never gets to that position: what other calls of the function do there.
    normal: Option<Next>,
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
                                        loops: None,
                                        normal: None,
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
            loops: None,
            normal: None,
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

impl<'f> Explainer<'f> {
    fn new(forest: &'f Forest, normal: NodeId) -> Self {
        Self {
            forest,
            repeated: repeated(forest, normal),
            patterns: FxHashMap::default(),
            known: FxHashMap::default(),
            usual: None,
            by_timing: false,
            depth: 0,
            beside: FxHashMap::default(),
        }
    }

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
                    let pair = attempt.pair;
                    attempts.pop();
                    let result = result.or_else(|failure| self.otherwise(pair, failure));
                    let result = result.or_else(|failure| self.broken_off(failure));
                    self.known.insert(pair, result);
                }
            }
        }
    }

    /// That a trace ends early is timing where all of its team are broken off when the program ends.
    fn broken_off(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.usual.is_some_and(|it| it.is_broken_off) || failure.faulty != Next::End {
            return Err(failure);
        }
        self.by_timing = true;
        Ok(())
    }

    /// What the normal frame does not explain may be usual.
    fn otherwise(&mut self, pair: Pair, failure: Failure) -> Result<(), Failure> {
        let Some(Accepted { usual, own, .. }) = self.usual else {
            return Err(failure);
        };
        if function(self.forest, pair.1).is_some_and(|it| usual.is_free(it)) {
            self.by_timing = true;
            return Ok(());
        }
        if !usual.waits_at(self.forest, pair.1) || self.depth == DEPTH {
            return Err(failure);
        }
        let found = match self.beside.get(&pair.1) {
            Some(found) => found.clone(),
            None => {
                self.depth += 1;
                let found = usual.explains(self.forest, pair.1, own, &mut |call| {
                    self.unlike(usual, call)
                });
                self.depth -= 1;
                self.beside.insert(pair.1, found.clone());
                found
            }
        };
        let Err(unusual) = found else {
            self.by_timing = true;
            return Ok(());
        };
        if unusual.event <= failure.event {
            return Err(failure);
        }
        let pattern = self.pattern(pair.0);
        let state = pattern.behind(self.forest, unusual.after);
        let normal = match state {
            Some(_) => None,
            None => usual.next(self.forest, pair.1, unusual.after),
        };
        Err(Failure {
            event: unusual.event,
            state: state.unwrap_or(failure.state),
            faulty: unusual.faulty,
            within: unusual.within,
            loops: Some(unusual.loops),
            normal,
        })
    }

    /// The usual call that explains most of one, if none explains all of it; how far, and what comes then.
    fn unlike(&mut self, usual: &Usual, call: NodeId) -> Option<(NodeId, u64, Next)> {
        let frames = usual.frames(function(self.forest, call)?);
        if frames.iter().any(|it| self.forest.same_shape(*it, call)) {
            return None;
        }
        let mut best: Option<(NodeId, u64, Next)> = None;
        for frame in frames {
            let pair = (*frame, call);
            if !self.known.contains_key(&pair) {
                self.decide(pair);
            }
            let Some(Err(failure)) = self.known.get(&pair) else {
                return None;
            };
            if best.is_none_or(|(_, event, _)| event < failure.event) {
                best = Some((*frame, failure.event, failure.faulty));
            }
        }
        best
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
            found.stack.extend(function(self.forest, pair.1));
            if let Some(loops) = &failure.loops {
                found.loops.extend(loops);
            } else {
                let around = pattern.around(failure.state.at).into_iter();
                let rounds = failure.state.rounds.iter().map(|over| over + 1);
                let bodies = around.map(|number| pattern.loops[number].body);
                found.loops.extend(bodies.zip(rounds));
            }
            found.normal_event += pattern.event(self.forest, pair.0, &failure.state);
            found.normal = match (failure.normal, pattern.leaves.get(failure.state.at)) {
                (Some(next), _) => next,
                (None, Some(leaf)) => first(self.forest, leaf.node),
                (None, None) => last(self.forest, pair.0),
            };
            match failure.within {
                Some(inner) => pair = inner,
                None => return mismatch,
            }
        }
    }
}
