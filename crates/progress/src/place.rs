//! Where a task stands, and which of two tasks is behind.
//!
//! A place is read off the open spine of the task's call tree: in each open call, which of its
//! children is open (or was the last), and in which iteration of the loops of that call. The loops
//! are those of the function's control flow as all tasks together showed it: a node for each place
//! from which it calls a function, an edge where one call followed another. Two calls of one function
//! are taken for two places if what was called before differs, and never the same was called after
//! them. Only the program's own functions and calls of MPI and OpenMP count: `strcmp` is called
//! anywhere. What was never left (a task hangs there for the first time) is taken to be part of what
//! usually follows what came before.
//!
//! ```text
//!  main ── solve ── step (iteration 812) ── exchange (iteration 3) ── MPI_Recv
//!  main ── solve ── step (iteration 812) ── MPI_Allreduce             ahead, if exchange leads to it
//! ```
//!
//! *Guarantees*: a task is said to be behind another only if, in the innermost open call that both
//! are in, it is in an earlier iteration of a loop, outer loops first, or in the same and can go on to
//! where the other is while the other cannot come back within that iteration. Anything else is
//! incomparable. Counters begin again with each entry of a loop, irreducible ones included.
//! *Costs*: O(nodes of the forest) once, O(depth x list) a task, O(edges) a comparison.
//! *Not for*: two places that look alike so: they are one place, and may seem a loop.

use crate::iteration::{Fold, Rings, Rounds, Witness, said};
use crate::nesting::{ENTRY, Flow, Nesting, Place as At, Turn, Walk};
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId, StackFrame};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Where a task stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Coordinates {
    /// The open calls, outermost first, and before them the thread itself.
    pub(crate) levels: Vec<Level>,
}

/// Where a task stands, and what can be said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Where.
    pub at: Coordinates,
    /// Loops around it, outermost first, whose iteration is certain: by the function they are in and the
    /// first that they call, and the iteration, from 1.
    pub iterations: Vec<(String, u64)>,
}

/// A moment of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Moment {
    /// Its call tree.
    pub root: NodeId,
    /// That of an event, a call that is open then; without one, the end.
    pub event: Option<u64>,
}

impl From<NodeId> for Moment {
    fn from(root: NodeId) -> Self {
        Self { root, event: None }
    }
}

/// Where in an open call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Level {
    /// The function; `None` is the thread.
    pub function: Option<FunctionKey>,
    /// Which of the functions that it calls.
    pub at: At,
    /// Whether that call is open; else it was the last.
    pub inside: bool,
    /// The loops of the function around it, outermost first.
    pub loops: Vec<Turn>,
}

/// A call by what was called before it.
type Context = (Option<FunctionKey>, FunctionKey);

/// The control flow of a function, as it was seen.
#[derive(Debug, Default)]
struct Shown {
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
    nesting: Nesting,
    rings: Rings,
}

/// A walk over a function's calls.
#[derive(Clone)]
struct Path {
    walk: Walk,
    /// The context of the last.
    context: Option<usize>,
}

/// What all tasks together showed of the functions that are open somewhere.
#[derive(Debug)]
pub(crate) struct Program<'f> {
    forest: &'f Forest,
    shown: FxHashMap<Option<FunctionKey>, Shown>,
}

impl<'f> Program<'f> {
    /// From the call trees of the tasks, for these moments.
    pub fn new(forest: &'f Forest, moments: &[Moment]) -> Self {
        let mut program = Self {
            forest,
            shown: FxHashMap::default(),
        };
        // Functions that are open: only their flow is asked for.
        for moment in moments {
            program.shown.entry(None).or_default();
            for frame in open(forest, *moment) {
                program.shown.entry(Some(frame.function)).or_default();
            }
        }
        program.see();
        program
    }

    /// The same, for every function: also of calls that are over the place can be asked.
    pub fn of_all(forest: &'f Forest) -> Self {
        let mut program = Self {
            forest,
            shown: FxHashMap::default(),
        };
        program.shown.entry(None).or_default();
        for index in 0..forest.len() as u32 {
            if let Label::Call(call) = forest.node(NodeId(index)).label
                && counts(forest, call.function)
            {
                program.shown.entry(Some(call.function)).or_default();
            }
        }
        program.see();
        program
    }

    /// Takes in the whole forest.
    fn see(&mut self) {
        let forest = self.forest;
        for (function, id) in frames(forest) {
            if let Some(shown) = self.shown.get_mut(&function) {
                shown.see(forest, id);
            }
        }
        for shown in self.shown.values_mut() {
            shown.settle();
        }
        // Who came round the loops is asked once these are known.
        for (function, id) in frames(forest) {
            if let Some(shown) = self.shown.get_mut(&function)
                && !shown.nesting.loops.is_empty()
            {
                shown.come_round(forest, forest.node(id).items, &mut Witness::default());
            }
        }
    }

    /// At which place of a function a call is that follows a place.
    pub fn after(&self, function: Option<FunctionKey>, at: At, callee: FunctionKey) -> At {
        let shown = self.shown.get(&function);
        shown
            .and_then(|shown| shown.after(at, callee))
            .unwrap_or(ENTRY)
    }

    /// Where a task stands.
    #[cfg(test)]
    pub fn coordinates(&self, moment: Moment) -> Coordinates {
        self.stand(moment).at
    }

    /// Where a task stands, and in which iterations.
    pub fn stand(&self, moment: Moment) -> Standing {
        let (mut levels, mut iterations) = (Vec::new(), Vec::new());
        let (mut function, mut id) = (None, moment.root);
        // Events of this call up to the moment, that one counted; `None` is all of them.
        let mut made = moment.event.map(|it| it + 1);
        while let Some(shown) = self.shown.get(&function) {
            let mut path = Path::new();
            let open = match &mut made {
                Some(made) => self.walk_until(shown, id, made, &mut path),
                None => {
                    let items = self.forest.node(id).items;
                    shown.walk(self.forest, items, &mut path);
                    let last = items.last();
                    last.and_then(|item| self.open_call(item.node))
                }
            };
            let items = self.forest.node(id).items;
            // At the end of the trace.
            let fold = made
                .is_none()
                .then(|| Fold::of(self.forest, items))
                .flatten();
            for (turn, iteration) in shown.said(&path, open.is_some(), fold) {
                iterations.push((self.name(function, shown, &turn), iteration));
            }
            levels.push(Level {
                function,
                at: path.walk.at,
                inside: open.is_some(),
                loops: path.walk.loops,
            });
            let Some((callee, node)) = open else { break };
            (function, id) = (Some(callee), node);
        }
        let at = Coordinates { levels };
        Standing { at, iterations }
    }

    /// A loop by its function, and the first that it calls.
    fn name(&self, function: Option<FunctionKey>, shown: &Shown, turn: &Turn) -> String {
        let name = |function: Option<FunctionKey>| match function {
            Some(function) => self.forest.function(function).name.as_str(),
            None => "-",
        };
        format!("{}/{}", name(function), name(shown.function(turn.entered)))
    }

    /// The loops around a place, outermost first, and how often it came to where they begin, which may be
    /// more or less than the iteration ([`Standing::iterations`]): whoever goes on counts further.
    pub fn loops(&self, standing: &Coordinates) -> Vec<(String, u64)> {
        let mut loops = Vec::new();
        for level in &standing.levels {
            let Some(shown) = self.shown.get(&level.function) else {
                break;
            };
            for turn in &level.loops {
                let around = &shown.nesting.loops[turn.index];
                // Of loops that share a header, the outer is one as soon as it began anew.
                if turn.iteration == 1 && !around.inner.is_empty() {
                    continue;
                }
                loops.push((self.name(level.function, shown, turn), turn.iteration));
            }
        }
        loops
    }

    /// Walks over the first events of a call, `made`: gives the call that is open then, and in `made` how many of its
    /// events are, its own not counted.
    fn walk_until(
        &self,
        shown: &Shown,
        mut id: NodeId,
        made: &mut u64,
        path: &mut Path,
    ) -> Option<(FunctionKey, NodeId)> {
        loop {
            let node = self.forest.node(id);
            let index = node.ends.partition_point(|end| end < made);
            let (before, from) = node.items.split_at_checked(index)?;
            shown.walk(self.forest, before, path);
            let item = from.first().filter(|_| *made > 0)?;
            *made -= index.checked_sub(1).map_or(0, |it| node.ends[it]);
            let over = (*made - 1) / self.forest.node(item.node).events;
            *made -= over * self.forest.node(item.node).events;
            let again = Item {
                times: over,
                ..*item
            };
            shown.walk(self.forest, &[again], path);
            match self.forest.node(item.node).label {
                Label::Call(call) if counts(self.forest, call.function) => {
                    shown.walk_one(self.forest, item.node, path);
                    *made -= 1;
                    return Some((call.function, item.node));
                }
                Label::Loop(_) | Label::Iteration => id = item.node,
                Label::Call(_) | Label::Trace | Label::Return => return None,
            }
        }
    }

    fn open_call(&self, id: NodeId) -> Option<(FunctionKey, NodeId)> {
        match self.forest.node(id).label {
            Label::Call(call) if call.open && counts(self.forest, call.function) => {
                Some((call.function, id))
            }
            _ => None,
        }
    }

    /// Which of two tasks is behind (`Less`): `None` where that cannot be said, `Equal` where they
    /// are at the same place.
    pub fn compare(&self, a: &Coordinates, b: &Coordinates) -> Option<Ordering> {
        for (a, b) in a.levels.iter().zip(&b.levels) {
            if a.function != b.function {
                return None;
            }
            let shown = self.shown.get(&a.function)?;
            match shown.compare(a, b)? {
                Ordering::Equal => {}
                other => return Some(other),
            }
        }
        // One is in the other's last call, which is over for neither.
        Some(Ordering::Equal)
    }
}

/// The distinct calls, and traces, by whose frame they are.
fn frames(forest: &Forest) -> impl Iterator<Item = (Option<FunctionKey>, NodeId)> {
    let all = (0..forest.len() as u32).map(NodeId);
    all.filter_map(|id| match forest.node(id).label {
        Label::Call(call) => Some((Some(call.function), id)),
        Label::Trace => Some((None, id)),
        _ => None,
    })
}

impl Path {
    fn new() -> Self {
        Self {
            walk: Walk::new(),
            context: None,
        }
    }

    /// Whether it came to the same place, with counters that did not begin again.
    fn follows(&self, before: &Self) -> bool {
        let (before, now) = (&before.walk, &self.walk);
        let mut turns = before.loops.iter().zip(&now.loops);
        let mut rounds = before.rounds.iter().zip(&now.rounds);
        before.at == now.at
            && before.loops.len() == now.loops.len()
            && turns.all(|(a, b)| {
                (a.index, a.entered) == (b.index, b.entered)
                    && a.iteration <= b.iteration
                    && a.passes <= b.passes
                    && a.total <= b.total
            })
            && rounds.all(|(a, b)| b.follows(a))
    }

    /// Goes on `times` more as from `before` to here.
    fn repeat(&mut self, before: &Self, times: u64) {
        let (before, now) = (&before.walk, &mut self.walk);
        for (turn, before) in now.loops.iter_mut().zip(&before.loops) {
            turn.iteration += times * (turn.iteration - before.iteration);
            turn.passes += times * (turn.passes - before.passes);
            turn.total += times * (turn.total - before.total);
        }
        for (rounds, before) in now.rounds.iter_mut().zip(&before.rounds) {
            rounds.repeat(before, times);
        }
    }
}

impl Shown {
    /// The function called at a place; none at the entry.
    fn function(&self, at: At) -> Option<FunctionKey> {
        self.functions.get((at as usize).checked_sub(1)?).copied()
    }

    fn after(&self, at: At, callee: FunctionKey) -> Option<At> {
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
    fn see(&mut self, forest: &Forest, id: NodeId) {
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
    fn settle(&mut self) {
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
        let seen = seen.into_iter();
        self.rings = Rings::new(seen.filter_map(|(from, to)| Some((from?, to))));
    }

    /// Lets a list show who came round the loops.
    fn come_round(&mut self, forest: &Forest, items: &[Item], witness: &mut Witness) {
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
    fn said(&self, path: &Path, inside: bool, fold: Option<Fold>) -> Vec<(Turn, u64)> {
        let Path { walk, context } = path;
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
    fn walk(&self, forest: &Forest, items: &[Item], path: &mut Path) {
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

    fn walk_one(&self, forest: &Forest, id: NodeId, path: &mut Path) {
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

    /// Where loops share a header, or have several, what is said has to be right in every reading.
    fn compare(&self, a: &Level, b: &Level) -> Option<Ordering> {
        let of = |turn: &Turn| &self.nesting.loops[turn.index];
        let common = || {
            let turns = a.loops.iter().zip(&b.loops);
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
        let nested = self.compare_as(a, b, |it| it.iteration, false)?;
        if !common().any(|(a, _)| is_unsure(a)) {
            return Some(nested);
        }
        let passes = self.compare_as(a, b, |it| it.passes, false)?;
        let flat = self.compare_as(a, b, |it| it.total, true)?;
        (nested == passes && nested == flat).then_some(nested)
    }

    /// With these counts; `flat`: loops that share a header are one.
    fn compare_as(
        &self,
        a: &Level,
        b: &Level,
        count: fn(&Turn) -> u64,
        flat: bool,
    ) -> Option<Ordering> {
        let common = a
            .loops
            .iter()
            .zip(&b.loops)
            .take_while(|(a, b)| a.index == b.index);
        let mut innermost = None;
        for (a, b) in common {
            let around = &self.nesting.loops[a.index];
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
            // The same call, come to by another way.
            (false, false) if self.function(a.at) == self.function(b.at) => {
                Some(b.inside.cmp(&a.inside))
            }
            _ => None,
        }
    }
}

/// The open calls of a moment, outermost first.
pub(crate) fn open(forest: &Forest, moment: Moment) -> Vec<StackFrame> {
    let at = |event| forest.position(moment.root, event).map(|it| it.stack);
    match moment.event {
        Some(event) => at(event).unwrap_or_default(),
        None => forest.open(moment.root),
    }
}

fn find(united: &[usize], mut context: usize) -> usize {
    while united[context] != context {
        context = united[context];
    }
    context
}

/// Whether calls of a function are places.
pub(crate) fn counts(forest: &Forest, function: FunctionKey) -> bool {
    let function = forest.function(function);
    let starts = |prefix: &&str| function.name.starts_with(prefix);
    !function.imported
        || [
            "MPI_",
            "PMPI_",
            "mpi_",
            "pmpi_",
            "GOMP_",
            "__kmpc_",
            "omp_",
            "pthread_barrier_wait",
        ]
        .iter()
        .any(starts)
}

/// Whether it is a function of MPI.
pub(crate) fn is_mpi(forest: &Forest, function: FunctionKey) -> bool {
    let function = forest.function(function);
    let name = lockstep_trace::c_name(&function.name);
    function.imported && (name.starts_with("MPI_") || name.starts_with("PMPI_"))
}
