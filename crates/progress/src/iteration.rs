//! What can be said of the iteration that a task is in: a number that the calls show, or none.
//!
//! The loops of all tasks together ([`crate::nesting`]) order tasks; for that a guess does where nobody
//! showed better. A number in a sentence has to be right, so more is asked of it.
//!
//! *Is the call in the loop?* Somebody has gone on from it, and has come round: the call, as what was
//! called before it tells it from others ([`Rings`]), lies on a ring of calls within the loop. A call
//! that nobody ever left may be behind the loop as well as in an arm of it that was not taken before,
//! and between two calls nothing tells whether the loop is over, unless all go on in the same iteration.
//!
//! ```text
//!  for { S R } Finalize!     S R S R S R F!      behind the loop, or in an arm of it: no number
//!  for { S R }               S R S R S!          S after R was left, and led to R and S again: 3
//! ```
//!
//! *Which iteration is it?* A loop that several tasks enter by different calls, or one whose calls may
//! be those of an inner loop, has its iterations counted in more than one way ([`Rounds`]). What the
//! task itself shows decides: if all its complete rounds, two at least, are alike, the rounds are the
//! iterations; if not, the ways of counting have to agree.
//!
//! ```text
//!  S W   R W   S W R W S W R W S W R W S!        rounds of S W R W, alike: 4, and not 7
//!  a a a b a a a b a a!                          rounds of a a a b: 3, the inner loop's 2
//!  a a b a b a a a b a!                          a loop in a loop, or a condition: no number
//! ```
//!
//! *Guarantees*: a number is that of a loop around the call, but for what follows. *Costs*: O(calls of the
//! folded trees), as for the loops themselves. *Not for*: what the calls do not tell: a condition that holds
//! every third time is a loop of three; the same calls twice in a row are two rounds; what is called in the
//! first iteration only, or just before the loop as at its end, may move where a round is seen to begin.

use crate::counted::counts;
use crate::nesting::{Loop, Nesting, Place};
use lockstep_calltree::{Forest, FunctionKey, Item, Label};
use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// How a task itself went round a loop, since it entered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Where it entered: a round begins there.
    entered: Place,
    /// Whether that is a header; else what comes before it is another loop's.
    is_header: bool,
    /// Rounds, the one that is under way counted.
    begun: u64,
    /// How often it came to any header, and the same with those of inner loops of the same header.
    counts: [u64; 2],
    /// These counts when the round that is under way began.
    before: [u64; 2],
    /// What a round adds to them, once one is complete.
    each: Option<[u64; 2]>,
    /// Whether all complete rounds are alike.
    is_even: bool,
    /// Calls.
    calls: u64,
    /// Whether from all rounds of loops within it, since its last header, somebody has come round it, too.
    is_shown: bool,
}

impl Rounds {
    /// The first.
    pub fn new(entered: Place, is_header: bool) -> Self {
        Self {
            entered,
            is_header,
            begun: 1,
            counts: [1; 2],
            before: [0; 2],
            each: None,
            is_even: true,
            calls: 0,
            is_shown: true,
        }
    }

    /// It came to a header, by an edge of the loop itself or of an inner loop that shares its header.
    pub fn pass(&mut self, to: Place, is_own: bool) {
        if !self.is_header {
            return;
        }
        if is_own && to == self.entered {
            let each = [0, 1].map(|it| self.counts[it] - self.before[it]);
            self.is_even &= self.each.is_none_or(|it| it == each);
            self.each = Some(each);
            self.before = self.counts;
            self.begun += 1;
        }
        self.is_shown |= is_own;
        self.counts[0] += u64::from(is_own);
        self.counts[1] += 1;
    }

    /// It called what is at a place.
    pub fn call(&mut self, at: Place, is_shown: bool) {
        if !self.is_header && at == self.entered && self.calls > 0 {
            self.counts = self.counts.map(|it| it + 1);
            self.begun += 1;
        }
        self.calls += 1;
        self.is_shown &= is_shown;
    }

    /// Goes on `times` more as from `before` to here.
    pub fn repeat(&mut self, before: &Self, times: u64) {
        let more = |now: &mut u64, before: u64| *now += times * (*now - before);
        more(&mut self.begun, before.begun);
        more(&mut self.calls, before.calls);
        for at in [0, 1] {
            more(&mut self.counts[at], before.counts[at]);
            more(&mut self.before[at], before.before[at]);
        }
    }

    /// Whether going on as from `before` to here adds the same again, and again.
    pub fn follows(&self, before: &Self) -> bool {
        let under_way = |it: &Self| [0, 1].map(|at| it.counts[at] - it.before[at]);
        // Without a header, calls are counted, and no round is measured.
        let is_steady =
            !self.is_header || self.begun == before.begun || under_way(self) == under_way(before);
        let is_more = |at: usize| self.counts[at] >= before.counts[at];
        (self.entered, self.is_shown) == (before.entered, before.is_shown)
            && self.begun >= before.begun
            && self.calls >= before.calls
            && [0, 1].into_iter().all(is_more)
            && is_steady
    }

    /// The iteration.
    fn iteration(&self) -> Option<u64> {
        let agree = self.counts == [self.begun; 2];
        (agree || self.is_even && self.begun > 2).then_some(self.begun)
    }

    /// Whether it is in its first round, in which an inner loop of the same header is all there is.
    fn is_first(&self) -> bool {
        self.begun == 1
    }
}

/// From which calls somebody was seen to come round a loop. A call here is one by what was called before.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    /// What each call was seen to be followed by; `None` is the end of the function.
    followers: BTreeMap<usize, Vec<Option<usize>>>,
    /// Which calls each can come back to: the number of such a ring.
    ring: BTreeMap<usize, usize>,
    /// Loop and call.
    shown: FxHashSet<(usize, usize)>,
    /// Loops that somebody came round; others are guessed.
    loops: FxHashSet<usize>,
}

/// Goes through what one task called, one after another.
#[derive(Default)]
pub(crate) struct Witness {
    calls: Vec<usize>,
    /// The loops around the last, and with how many calls the present round of each began.
    around: Vec<(usize, usize)>,
    at: Option<Place>,
}

impl Witness {
    /// The last call.
    pub fn last(&self) -> Option<usize> {
        self.calls.last().copied()
    }
}

impl Rings {
    /// `followed` is what was seen to follow what.
    pub fn new(followed: impl Iterator<Item = (usize, Option<usize>)>) -> Self {
        let mut rings = Self::default();
        let mut graph: DiGraphMap<usize, ()> = DiGraphMap::new();
        for (from, to) in followed {
            rings.followers.entry(from).or_default().push(to);
            if let Some(to) = to {
                graph.add_edge(from, to, ());
            }
        }
        let mut parts = kosaraju_scc(&graph);
        parts.retain(|it| it.len() > 1 || graph.contains_edge(it[0], it[0]));
        for (ring, calls) in parts.into_iter().enumerate() {
            rings.ring.extend(calls.into_iter().map(|it| (it, ring)));
        }
        rings
    }

    /// Whether to go from one call to the next is to leave every loop that the first is in.
    pub fn leaves(&self, from: usize, to: usize) -> bool {
        let ring = self.ring.get(&from);
        ring.is_some() && ring != self.ring.get(&to)
    }

    /// Whether somebody came round a loop from a call.
    pub fn are_shown(&self, index: usize, call: usize) -> bool {
        self.shown.contains(&(index, call))
    }

    /// A task calls, at a place.
    pub fn see(&mut self, witness: &mut Witness, call: usize, to: Place, nesting: &Nesting) {
        let around = nesting.around(to);
        let common = witness.around.iter().zip(around);
        let common = common.take_while(|(it, index)| it.0 == **index).count();
        let begun = witness.calls.len();
        witness.around.truncate(common);
        if witness
            .calls
            .last()
            .is_some_and(|it| self.leaves(*it, call))
        {
            witness.around.clear();
        } else if let Some(at) = witness.at {
            let is_back = |it: &Loop| it.contains(at) && it.is_header(to);
            let mut inner = witness.around.iter();
            if let Some(innermost) = inner.rposition(|it| is_back(&nesting.loops[it.0])) {
                let (index, since) = witness.around[innermost];
                let round = witness.calls.iter().skip(since);
                self.shown.extend(round.map(|call| (index, *call)));
                self.loops.insert(index);
                witness.around.truncate(innermost);
                witness.around.push((index, begun));
            }
        }
        let entered = around.iter().skip(witness.around.len());
        witness.around.extend(entered.map(|index| (*index, begun)));
        if witness.around.is_empty() {
            witness.calls.clear();
        }
        witness.calls.push(call);
        witness.at = Some(to);
    }

    /// Whether a call is in a loop, and, where it is over (not `inside`), what comes next is, too, in the
    /// same iteration.
    fn is_in(
        &self,
        call: usize,
        inside: bool,
        index: usize,
        goes_on: impl Fn(usize) -> bool,
    ) -> bool {
        let is_next =
            |next: &Option<usize>| next.is_some_and(|it| self.are_shown(index, it) && goes_on(it));
        let mut next = self.followers.get(&call).into_iter().flatten();
        self.are_shown(index, call) && (inside || next.all(is_next))
    }
}

/// What the trace itself has folded: a loop right before the end, and how it begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fold {
    /// The iteration that is under way.
    pub iteration: u64,
    /// Calls of a whole one.
    pub each: u64,
    /// Calls from the loop's beginning to the end.
    pub calls: u64,
    /// Calls between it and the loop before it.
    pub between: Option<u64>,
}

impl Fold {
    /// What a list ends with; none where that is a loop that holds another.
    pub fn of(forest: &Forest, items: &[Item]) -> Option<Self> {
        let calls = |items: &[Item]| -> Option<Vec<FunctionKey>> {
            let mut calls = Vec::new();
            for item in items {
                match forest.node(item.node).label {
                    Label::Call(call) if counts(forest, call.function) => calls.push(call.function),
                    Label::Loop(_) | Label::Iteration => return None,
                    Label::Call(_) | Label::Trace | Label::Return => {}
                }
            }
            Some(calls)
        };
        let is_loop = |item: &Item| matches!(forest.node(item.node).label, Label::Loop(_));
        let at = items.iter().rposition(is_loop)?;
        let (before, from) = items.split_at(at);
        let (folded, tail) = from.split_first()?;
        let rounds = forest.node(folded.node).items;
        let trips: u64 = rounds.iter().map(|it| it.times).sum();
        let round = rounds.last()?;
        let round = match forest.node(round.node).label {
            Label::Iteration => calls(forest.node(round.node).items)?,
            _ => calls(std::slice::from_ref(round))?,
        };
        let tail = calls(tail)?;
        let each = round.len() as u64;
        let last = before.iter().rposition(is_loop);
        let between = last.and_then(|it| calls(before.get(it + 1..)?));
        round.starts_with(&tail).then(|| Self {
            iteration: trips + 1,
            each,
            calls: trips * each + tail.len() as u64,
            between: between.map(|it| it.len() as u64),
        })
    }

    /// Whether this is not how the task went round a loop: it folded nearly all of that otherwise, or into
    /// several loops.
    fn denies(&self, rounds: &Rounds, iteration: u64) -> bool {
        let Some(before) = rounds.calls.checked_sub(self.calls) else {
            return false;
        };
        let is_part = before >= self.each && self.between.is_none_or(|it| it >= before);
        !is_part && iteration != self.iteration
    }
}

/// The iterations of the loops around a call that can be said: loop and iteration, outermost first.
/// `around` are the loops, and how the task went round them.
pub(crate) fn said(
    around: &[(usize, Rounds)],
    (call, inside): (usize, bool),
    fold: Option<Fold>,
    (rings, nesting, places): (&Rings, &Nesting, &[Place]),
) -> Vec<(usize, u64)> {
    let mut said = Vec::new();
    // Whether it is known which rounds are those of the loop around one that shares its header.
    let mut is_plain = true;
    for (depth, (index, rounds)) in around.iter().enumerate() {
        if !rings.loops.contains(index) {
            continue;
        }
        let of: &Loop = &nesting.loops[*index];
        let goes_on = |call: usize| places.get(call).is_none_or(|it| !of.is_header(*it));
        let iteration = rounds.iteration();
        let is_known = rounds.is_shown && (is_plain || !of.is_shared);
        is_plain = is_known && (iteration.is_some() || rounds.is_first());
        // Of loops that share a header, the outer is one as soon as it began anew.
        let is_one = rounds.is_first() && !of.inner.is_empty();
        let is_innermost = depth + 1 == around.len();
        let fold = fold.filter(|_| is_innermost);
        if let Some(iteration) = iteration.filter(|_| is_known && !is_one)
            && rings.is_in(call, inside, *index, goes_on)
            && fold.is_none_or(|it| !it.denies(rounds, iteration))
        {
            said.push((*index, iteration));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else each of a billion calls is walked by itself.
    #[test]
    fn a_call_as_the_one_before_follows() {
        for is_header in [false, true] {
            let mut it = Rounds::new(3, is_header);
            let mut step = || {
                it.pass(3, true);
                it.call(3, true);
                it
            };
            let (_, before, now) = (step(), step(), step());
            assert!(now.follows(&before), "{is_header}");
            let mut more = now;
            more.repeat(&before, 10);
            for _ in 0..10 {
                step();
            }
            assert_eq!(more, it, "{is_header}");
        }
    }
}
