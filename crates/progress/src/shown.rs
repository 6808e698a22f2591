//! The control flow of one function, as all tasks together showed it: which places it has, what followed what, the loops of that,
//! and which of two tasks within it is behind.
//!
//! *Guarantees*: what [`crate::place`] says of one open call. *Costs*: O(calls of the folded trees) once; a comparison is O(edges).
//! *Not for*: calls within calls.

use crate::counted::counts;
use crate::iteration::{Fold, Rings, Rounds, Witness, said};
use crate::nesting::{ENTRY, Flow, Nesting, Place as At};
use crate::walk::{Level, Turn, Walk};
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A call by what was called before it.
type Context = (Option<FunctionKey>, FunctionKey);

/// The control flow of a function, as it was seen.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// Calls by what was called before, in the order in which they were seen.
    contexts: FxHashMap<Context, usize>,
    list: Vec<Context>,
    /// What followed what; `None` is the function's beginning, or its end.
    followed: BTreeSet<(Option<usize>, Option<usize>)>,
    /// For each context its place.
    places: Vec<At>,
    /// For each place, from 1, the function called.
    functions: Vec<FunctionKey>,
    flow: Flow,
    pub nesting: Nesting,
    /// The loops if iterations begin with other calls, too; none if there are no such calls.
    otherwise: Option<Nesting>,
    rings: Rings,
    /// Places that nobody ever left, and loops which may have ended before each: where what came before it goes round.
    unleft: BTreeMap<At, BTreeSet<usize>>,
    /// Places from which somebody came to the end of the function, or may have.
    ending: BTreeSet<At>,
    /// Of places where tasks are and from which nobody came to the end: the loops that they left on the way, and the least
    /// iteration in which one did.
    departed: FxHashMap<At, BTreeMap<usize, u64>>,
    /// Places where tasks are.
    standing: BTreeSet<At>,
}

/// Where in a function, and the loops around it.
type Within<'l> = (&'l Level, &'l [Turn]);

/// A walk over a function's calls.
#[derive(Clone)]
pub(crate) struct Path {
    pub walk: Walk,
    /// The same in loops whose iterations begin with other calls, too, if there are such.
    pub otherwise: Walk,
    /// The context of the last.
    context: Option<usize>,
}

impl Path {
    pub fn new() -> Self {
        Self {
            walk: Walk::new(),
            otherwise: Walk::new(),
            context: None,
        }
    }

    /// Whether it came to the same place, with counters that did not begin again.
    fn follows(&self, before: &Self) -> bool {
        self.walk.follows(&before.walk) && self.otherwise.follows(&before.otherwise)
    }

    /// Goes on `times` more as from `before` to here.
    fn repeat(&mut self, before: &Self, times: u64) {
        self.walk.repeat(&before.walk, times);
        self.otherwise.repeat(&before.otherwise, times);
    }
}

impl Shown {
    /// A task is at a place, and left these loops on the way.
    pub fn arrive(&mut self, at: At, left: &[Turn]) {
        self.standing.insert(at);
        if self.ending.contains(&at) {
            return;
        }
        let departed = self.departed.entry(at).or_default();
        for turn in left {
            let least = departed.entry(turn.index).or_insert(turn.iteration);
            *least = turn.iteration.min(*least);
        }
    }

    /// Whether nobody ever left a place.
    pub fn is_unleft(&self, at: At) -> bool {
        self.unleft.contains_key(&at)
    }

    /// Whether all tasks in this function are at one place.
    pub fn are_all_at_one(&self) -> bool {
        self.standing.len() == 1
    }

    /// The function called at a place; none at the entry.
    pub fn function(&self, at: At) -> Option<FunctionKey> {
        self.functions.get((at as usize).checked_sub(1)?).copied()
    }

    pub fn after(&self, at: At, callee: FunctionKey) -> Option<At> {
        let context = self.contexts.get(&(self.function(at), callee))?;
        self.places.get(*context).copied()
    }

    fn context(&mut self, before: Option<usize>, function: FunctionKey) -> usize {
        let key = (before.map(|it| self.list[it].1), function);
        *self.contexts.entry(key).or_insert_with(|| {
            self.list.push(key);
            self.list.len() - 1
        })
    }

    /// Adds what a call or trace showed.
    pub fn see(&mut self, forest: &Forest, id: NodeId) {
        let mut last = None;
        self.see_list(forest, forest.node(id).items, &mut last);
        // A thread's first list of calls may go on for ever.
        let is_over = matches!(forest.node(id).label, Label::Call(call) if !call.open);
        if is_over && last.is_some() {
            self.followed.insert((last, None));
        }
    }

    fn see_list(&mut self, forest: &Forest, items: &[Item], last: &mut Option<usize>) {
        for item in items {
            self.see_one(forest, item.node, last);
            // From the end of an iteration to the beginning of the next, where what was called
            // before is another than the first time.
            for _ in 1..item.times.min(3) {
                self.see_one(forest, item.node, last);
            }
        }
    }

    fn see_one(&mut self, forest: &Forest, id: NodeId, last: &mut Option<usize>) {
        let node = forest.node(id);
        match node.label {
            Label::Call(call) if counts(forest, call.function) => {
                let next = Some(self.context(*last, call.function));
                self.followed.insert((*last, next));
                *last = next;
            }
            Label::Loop(_) | Label::Iteration => self.see_list(forest, node.items, last),
            Label::Call(_) | Label::Trace | Label::Return => {}
        }
    }

    /// What no task ever left is the place from which others called the same, if there is one such
    /// place; where nobody ever left a call of a function, all its calls are one place, as arms of a condition come together
    /// again. Else, and if nobody did, it stands between what came before it and what else came after
    /// that, unless that led to it: a call behind a condition, in the same loop.
    fn guess(&mut self, united: &mut [usize], of_function: &FxHashMap<FunctionKey, Vec<usize>>) {
        let is_left = |context: usize| {
            let from = (Some(context), None)..=(Some(context), Some(usize::MAX));
            self.followed.range(from).next().is_some()
        };
        let mut guessed = Vec::new();
        for &(before, context) in &self.followed {
            let Some(context) = context.filter(|it| !is_left(*it)) else {
                continue;
            };
            let alike = of_function.get(&self.list[context].1).into_iter().flatten();
            let left: BTreeSet<usize> = alike
                .filter(|other| is_left(**other))
                .map(|other| find(united, *other))
                .collect();
            if left.len() == 1 {
                united[find(united, context)] = left.first().copied().unwrap_or(context);
            }
            if !left.is_empty() {
                continue;
            }
            let alike = of_function.get(&self.list[context].1).into_iter().flatten();
            let arms: Vec<usize> = alike.copied().filter(|it| *it != context).collect();
            for other in &arms {
                let (a, b) = (find(united, *other), find(united, context));
                united[a.max(b)] = a.min(b);
            }
            // Arms that nobody left say nothing of each other.
            let others = (before, Some(0))..=(before, Some(usize::MAX));
            let others = self.followed.range(others).map(|(_, next)| *next);
            guessed.extend(
                others
                    .filter(|next| *next != Some(context) && next.is_none_or(is_left))
                    .filter(|next| next.is_none_or(|it| !self.leads(it, &arms)))
                    .map(|next| (Some(context), next)),
            );
        }
        self.followed.extend(guessed);
    }

    /// Whether a task came from one call to one of others. O(calls of the function).
    fn leads(&self, from: usize, to: &[usize]) -> bool {
        let mut reached = BTreeSet::from([from]);
        let mut next = vec![from];
        while let Some(context) = next.pop() {
            let behind = (Some(context), Some(0))..=(Some(context), Some(usize::MAX));
            let behind = self.followed.range(behind).filter_map(|(_, next)| *next);
            next.extend(behind.filter(|it| reached.insert(*it)));
        }
        to.iter().any(|it| reached.contains(it))
    }

    /// Everything was seen: which contexts are one place, and the flow between places.
    pub fn settle(&mut self) {
        let mut after: Vec<BTreeSet<Option<FunctionKey>>> = vec![BTreeSet::new(); self.list.len()];
        for (from, to) in &self.followed {
            if let Some(from) = from {
                after[*from].insert(to.map(|to| self.list[to].1));
            }
        }
        let mut united: Vec<usize> = (0..self.list.len()).collect();
        let mut of_function: FxHashMap<FunctionKey, Vec<usize>> = FxHashMap::default();
        for (context, (_, function)) in self.list.iter().enumerate() {
            of_function.entry(*function).or_default().push(context);
        }
        for contexts in of_function.values() {
            // By what comes after: the first context that it came after.
            let mut first: BTreeMap<Option<FunctionKey>, usize> = BTreeMap::new();
            for &context in contexts {
                for next in &after[context] {
                    let other = *first.entry(*next).or_insert(context);
                    let (a, b) = (find(&united, other), find(&united, context));
                    united[a.max(b)] = a.min(b);
                }
            }
        }
        let seen = self.followed.clone();
        self.guess(&mut united, &of_function);
        let mut numbers: FxHashMap<usize, At> = FxHashMap::default();
        for context in 0..self.list.len() {
            let root = find(&united, context);
            let number = *numbers.entry(root).or_insert_with(|| {
                self.functions.push(self.list[context].1);
                self.functions.len() as At
            });
            self.places.push(number);
        }
        for (from, to) in &self.followed {
            if let Some(to) = to {
                let from = from.map_or(ENTRY, |from| self.places[from]);
                self.flow.edge(from, self.places[*to]);
            }
        }
        self.nesting = self.flow.nesting();
        self.otherwise = self.flow.otherwise();
        let place = |it: Option<usize>| it.map_or(ENTRY, |it| self.places[it]);
        let (mut flow, mut ends) = (Flow::default(), BTreeSet::new());
        for (from, to) in &seen {
            match to {
                Some(_) => flow.edge(place(*from), place(*to)),
                None => ends.extend(from.map(|it| self.places[it])),
            }
        }
        self.ending = flow.leading_to(ends.into_iter());
        let left: BTreeSet<At> = seen.iter().map(|(from, _)| place(*from)).collect();
        let steps = seen.iter().filter(|(_, to)| to.is_some());
        let steps = steps.map(|(from, to)| (place(*from), place(*to)));
        for (before, at) in steps.filter(|(_, at)| !left.contains(at)) {
            let around = self.nesting.around(before).iter().copied();
            let over = around.filter(|it| flow.may_end(before, &self.nesting.loops[*it]));
            self.unleft.entry(at).or_default().extend(over);
        }
        let seen = seen.into_iter();
        self.rings = Rings::new(seen.filter_map(|(from, to)| Some((from?, to))));
    }

    /// Lets a list show who came round the loops.
    pub fn come_round(&mut self, forest: &Forest, items: &[Item], witness: &mut Witness) {
        for item in items {
            let node = forest.node(item.node);
            for _ in 0..item.times.min(3) {
                match node.label {
                    Label::Call(call) if counts(forest, call.function) => {
                        let before = witness.last().map(|it| self.list[it].1);
                        if let Some(&context) = self.contexts.get(&(before, call.function)) {
                            let place = self.places[context];
                            self.rings.see(witness, context, place, &self.nesting);
                        }
                    }
                    Label::Loop(_) | Label::Iteration => {
                        self.come_round(forest, node.items, witness);
                    }
                    Label::Call(_) | Label::Trace | Label::Return => {}
                }
            }
        }
    }

    /// Of the loops that a walk ended in, those of which the iteration can be said.
    pub fn said(&self, path: &Path, inside: bool, fold: Option<Fold>) -> Vec<(Turn, u64)> {
        let Path { walk, context, .. } = path;
        let Some(context) = *context else {
            return Vec::new();
        };
        let around: Vec<(usize, Rounds)> = (walk.loops.iter().map(|turn| turn.index))
            .zip(walk.rounds.iter().copied())
            .collect();
        let shown = (&self.rings, &self.nesting, &*self.places);
        let said = said(&around, (context, inside), fold, shown).into_iter();
        let turn = |index: usize| walk.loops.iter().find(|turn| turn.index == index);
        said.filter_map(|(index, iteration)| Some((*turn(index)?, iteration)))
            .collect()
    }

    /// Walks over a list, in time that does not depend on trip counts.
    pub fn walk(&self, forest: &Forest, items: &[Item], path: &mut Path) {
        for item in items {
            let (mut left, mut passes) = (item.times, 0);
            while left > 0 {
                let before = path.clone();
                self.walk_one(forest, item.node, path);
                left -= 1;
                passes += 1;
                // Twice through the same, from the same place, changes counters alike (or sets them
                // to the same): the rest is a multiplication.
                if passes > 1 && path.follows(&before) {
                    path.repeat(&before, left);
                    break;
                }
            }
        }
    }

    pub fn walk_one(&self, forest: &Forest, id: NodeId, path: &mut Path) {
        let node = forest.node(id);
        match node.label {
            Label::Call(call) if counts(forest, call.function) => {
                let context = (self.function(path.walk.at), call.function);
                let Some(&context) = self.contexts.get(&context) else {
                    return;
                };
                let before = path.context.replace(context);
                let to = self.places[context];
                let round = path.walk.step(to, &self.nesting);
                if let Some(nesting) = &self.otherwise {
                    path.otherwise.step(to, nesting);
                }
                if before.is_some_and(|before| self.rings.leaves(before, context)) {
                    path.walk.enter(&self.nesting);
                }
                let around = path.walk.loops.iter().zip(&mut path.walk.rounds);
                for (depth, (turn, rounds)) in around.enumerate() {
                    let is_around = round.is_some_and(|round| depth < round);
                    rounds.call(to, !is_around || self.rings.are_shown(turn.index, context));
                }
            }
            Label::Loop(_) | Label::Iteration => self.walk(forest, node.items, path),
            Label::Call(_) | Label::Trace | Label::Return => {}
        }
    }

    /// What is said has to be right whichever loops what nobody left is in, and with whichever calls iterations begin.
    pub fn compare(&self, a: &Level, b: &Level) -> Option<Ordering> {
        let order = self.compare_in_loops((a, &a.loops), (b, &b.loops), &self.nesting)?;
        if let Some(nesting) = &self.otherwise {
            let (a, b) = ((a, &*a.otherwise), (b, &*b.otherwise));
            self.compare_in_loops(a, b, nesting)
                .filter(|it| *it == order)?;
        }
        let is_doubtful = match order {
            Ordering::Less => self.is_doubtful(a, b),
            Ordering::Greater => self.is_doubtful(b, a),
            Ordering::Equal => false,
        };
        (!is_doubtful).then_some(order)
    }

    /// Whether one is behind the other only as long as what nobody left is in no other loop, or in none.
    fn is_doubtful(&self, behind: &Level, ahead: &Level) -> bool {
        let turns = behind.loops.iter().zip(&ahead.loops);
        let common = turns.take_while(|(a, b)| a.index == b.index).count();
        // It was taken to be in a loop, and may be after it.
        if let Some(over) = self
            .unleft
            .get(&behind.at)
            .filter(|_| behind.at != ahead.at)
        {
            let turns = behind.loops.iter().zip(&ahead.loops).take(common);
            let decides = |(a, b): (&Turn, &Turn)| a.iteration != b.iteration;
            let deciding = turns.clone().position(decides).unwrap_or(common);
            if turns
                .take(deciding + 1)
                .any(|(turn, _)| over.contains(&turn.index))
            {
                return true;
            }
        }
        // It was taken to be after a loop, and may be in it.
        let departed = self.departed.get(&ahead.at);
        for turn in &behind.loops[common..] {
            let Some(iteration) = departed.and_then(|it| it.get(&turn.index)) else {
                return false;
            };
            match iteration.cmp(&turn.iteration) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => {
                    let around = &self.nesting.loops[turn.index];
                    if !self.flow.leads_on(behind.at, ahead.at, around) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// Where loops share a header, or have several, what is said has to be right in every reading.
    fn compare_in_loops(&self, a: Within, b: Within, nesting: &Nesting) -> Option<Ordering> {
        let of = |turn: &Turn| &nesting.loops[turn.index];
        let common = || {
            let turns = a.1.iter().zip(b.1);
            turns.take_while(|(a, b)| a.index == b.index)
        };
        // Who entered elsewhere may be a part of an iteration ahead, whatever the counts say: that is
        // certain where a loop is one circuit, which everybody passes.
        let counts = |it: &Turn| (it.iteration, it.passes, it.total);
        if let Some((a, b)) =
            common().find(|(a, b)| counts(a) != counts(b) || a.entered != b.entered)
            && a.entered != b.entered
        {
            let apart = a.passes.abs_diff(b.passes) >= of(a).headers.len() as u64;
            let by = a.passes.cmp(&b.passes);
            return Some(by).filter(|_| apart && self.flow.is_circuit(of(a)));
        }
        let is_unsure = |turn: &Turn| of(turn).headers.len() > 1 || !of(turn).inner.is_empty();
        let nested = self.compare_as(a, b, nesting, |it| it.iteration, false)?;
        if !common().any(|(a, _)| is_unsure(a)) {
            return Some(nested);
        }
        let passes = self.compare_as(a, b, nesting, |it| it.passes, false)?;
        let flat = self.compare_as(a, b, nesting, |it| it.total, true)?;
        (nested == passes && nested == flat).then_some(nested)
    }

    /// With these counts; `flat`: loops that share a header are one.
    fn compare_as(
        &self,
        (a, of_a): Within,
        (b, of_b): Within,
        nesting: &Nesting,
        count: fn(&Turn) -> u64,
        flat: bool,
    ) -> Option<Ordering> {
        let turns = of_a.iter().zip(of_b);
        let common = turns
            .clone()
            .take_while(|(a, b)| a.index == b.index)
            .count();
        let mut innermost = None;
        for (a, b) in turns.take(common) {
            let around = &nesting.loops[a.index];
            if flat && around.is_shared {
                continue;
            }
            match count(a).cmp(&count(b)) {
                Ordering::Equal => innermost = Some(around),
                other => return Some(other),
            }
        }
        if a.at == b.at {
            // In the call, or after it.
            return Some(b.inside.cmp(&a.inside));
        }
        let there = self.flow.reaches(a.at, b.at, innermost, flat);
        let back = self.flow.reaches(b.at, a.at, innermost, flat);
        match (there, back) {
            (true, false) => Some(Ordering::Less),
            (false, true) => Some(Ordering::Greater),
            // The same call, come to by another way, and each in the same iteration of loops of its own.
            (false, false) if self.function(a.at) == self.function(b.at) => {
                let own = |turns: &[Turn]| turns[common..].iter().map(count).collect::<Vec<_>>();
                (own(of_a) == own(of_b)).then(|| b.inside.cmp(&a.inside))
            }
            _ => None,
        }
    }
}

fn find(united: &[usize], mut context: usize) -> usize {
    while united[context] != context {
        context = united[context];
    }
    context
}
