//! How one list of elements becomes another: structure first, then trip counts.

use imara_diff::{Algorithm, Diff, Token};
use lockstep_calltree::{Forest, Item, Label, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;
use std::rc::Rc;

/// A step of the way from a list of elements of the normal trace to one of the faulty trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// The same elements in both.
    Equal(Vec<NodeId>),
    /// Elements of the normal trace alone.
    Normal(Vec<NodeId>),
    /// Elements of the faulty trace alone.
    Faulty(Vec<NodeId>),
    /// The same loop, other trip counts (its own, or within).
    Counts(NodeId, NodeId),
    /// A call of the same function; the edits are those of what happens in it.
    Call(NodeId, NodeId, Rc<Vec<Edit>>),
    /// A loop with another body; the edits are those of the first iterations.
    Body(NodeId, NodeId, Rc<Vec<Edit>>),
    /// The same loop, which one side leaves, or enters, with another body.
    Split(Split),
    /// The same loop, whose later iterations differ on one side in what happens within their calls.
    Continued(Continued),
}

/// `A^8` against `A^3 f g' h f g' h ...`: what follows makes the same calls as iterations of the loop do,
/// but something happens in them that did not before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Continued {
    /// The longer loop.
    pub looped: NodeId,
    /// What the other side still has of it.
    pub kept: Option<NodeId>,
    /// What follows there.
    pub nodes: Vec<NodeId>,
    /// Whether that is in the faulty trace.
    pub in_faulty: bool,
    /// How many iterations it makes.
    pub iterations: u64,
    /// The first of them.
    pub first: Vec<NodeId>,
    /// Between an iteration of the loop and that one.
    pub edits: Rc<Vec<Edit>>,
}

/// `A^16` against `A^7 B^9`: the loop changes its body on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Split {
    pub normal: NodeId,
    pub faulty: NodeId,
    /// The loop with the other body.
    pub other: NodeId,
    /// Whether the other is the faulty trace's.
    pub in_faulty: bool,
    /// Whether it comes after the common part.
    pub after: bool,
    /// From an iteration of the body to one of the other, as the sides have it.
    pub edits: Rc<Vec<Edit>>,
}

impl Edit {
    /// Elements of one trace alone.
    fn alone(nodes: Vec<NodeId>, in_faulty: bool) -> Self {
        match in_faulty {
            true => Self::Faulty(nodes),
            false => Self::Normal(nodes),
        }
    }

    /// The elements, if they are of that trace alone.
    fn of_one(&self, in_faulty: bool) -> Option<&[NodeId]> {
        match (self, in_faulty) {
            (Self::Faulty(nodes), true) | (Self::Normal(nodes), false) => Some(nodes),
            _ => None,
        }
    }

    /// The same change the other way round.
    pub fn mirrored(&self) -> Self {
        let all = |edits: &Rc<Vec<Self>>| Rc::new(mirrored(edits));
        match self {
            Self::Equal(nodes) => Self::Equal(nodes.clone()),
            Self::Normal(nodes) => Self::Faulty(nodes.clone()),
            Self::Faulty(nodes) => Self::Normal(nodes.clone()),
            Self::Counts(a, b) => Self::Counts(*b, *a),
            Self::Call(a, b, edits) => Self::Call(*b, *a, all(edits)),
            Self::Body(a, b, edits) => Self::Body(*b, *a, all(edits)),
            Self::Split(split) => Self::Split(Split {
                normal: split.faulty,
                faulty: split.normal,
                in_faulty: !split.in_faulty,
                edits: all(&split.edits),
                ..split.clone()
            }),
            Self::Continued(continued) => Self::Continued(Continued {
                in_faulty: !continued.in_faulty,
                edits: all(&continued.edits),
                ..continued.clone()
            }),
        }
    }
}

pub(super) fn mirrored(edits: &[Edit]) -> Vec<Edit> {
    let mut edits: Vec<Edit> = edits.iter().map(Edit::mirrored).collect();
    // What is removed stands before what is added.
    for index in 1..edits.len() {
        if let (Edit::Faulty(_), Edit::Normal(_)) = (&edits[index - 1], &edits[index]) {
            edits.swap(index - 1, index);
        }
    }
    edits
}

/// How deep calls within calls are compared; below, a changed call is shown as removed and added.
const DEPTH: usize = 200;
/// Largest product of lengths for which a gap is aligned by likeness of every pair.
const PAIRS: usize = 1 << 14;

/// Compares lists of one forest.
pub(super) struct Aligner<'f> {
    forest: &'f Forest,
    calls: FxHashMap<(NodeId, NodeId), Rc<Vec<Edit>>>,
    depth: usize,
}

/// The elements of an iteration, or of a call or trace.
pub(super) fn elements(forest: &Forest, node: NodeId, is_iteration: bool) -> Vec<NodeId> {
    let found = forest.node(node);
    if is_iteration && found.label != Label::Iteration {
        return vec![node];
    }
    found.items.iter().map(|item| item.node).collect()
}

/// The first iteration of a loop, as elements.
pub(super) fn iteration(forest: &Forest, looped: NodeId) -> Vec<NodeId> {
    match forest.node(looped).items.first() {
        Some(item) => elements(forest, item.node, true),
        None => Vec::new(),
    }
}

impl<'f> Aligner<'f> {
    pub fn new(forest: &'f Forest) -> Self {
        Self {
            forest,
            calls: FxHashMap::default(),
            depth: 0,
        }
    }

    /// From one trace to another. Nothing if they are equal.
    ///
    /// Decided in the order of the content addresses and turned round if need be, so that the way back
    /// is the way there mirrored.
    pub fn traces(&mut self, normal: NodeId, faulty: NodeId) -> Vec<Edit> {
        if normal == faulty {
            return Vec::new();
        }
        let turn = self.forest.hash(normal) > self.forest.hash(faulty);
        let (a, b) = if turn {
            (faulty, normal)
        } else {
            (normal, faulty)
        };
        let edits = self.lists(
            &elements(self.forest, a, false),
            &elements(self.forest, b, false),
        );
        if turn { mirrored(&edits) } else { edits }
    }

    /// From one iteration of a loop to another.
    pub fn iterations(&mut self, normal: NodeId, faulty: NodeId) -> Vec<Edit> {
        self.lists(
            &elements(self.forest, normal, true),
            &elements(self.forest, faulty, true),
        )
    }

    fn lists(&mut self, a: &[NodeId], b: &[NodeId]) -> Vec<Edit> {
        let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let end = a[start..]
            .iter()
            .rev()
            .zip(b[start..].iter().rev())
            .take_while(|(a, b)| a == b)
            .count();
        let mut edits = Edits::default();
        edits.equal(&a[..start]);
        let (inner_a, inner_b) = (&a[start..a.len() - end], &b[start..b.len() - end]);
        let shapes = |nodes: &[NodeId]| -> Vec<_> {
            nodes.iter().map(|node| self.forest.shape(*node)).collect()
        };
        let (shapes_a, shapes_b) = (shapes(inner_a), shapes(inner_b));
        for (from_a, from_b) in segments(&shapes_a, &shapes_b) {
            let (part_a, part_b) = (&inner_a[from_a.clone()], &inner_b[from_b.clone()]);
            if shapes_a[from_a] == shapes_b[from_b] {
                for (a, b) in part_a.iter().zip(part_b) {
                    let edit = self.pair(*a, *b);
                    edits.add(edit);
                }
            } else {
                self.gap(part_a, part_b, &mut edits);
            }
        }
        edits.equal(&a[a.len() - end..]);
        let edits = self.go_on(edits.list);
        self.split(edits)
    }

    /// Two elements that belong together.
    fn pair(&mut self, a: NodeId, b: NodeId) -> Edit {
        if a == b {
            return Edit::Equal(vec![a]);
        }
        match (self.forest.node(a).label, self.forest.node(b).label) {
            (Label::Loop(x), Label::Loop(y)) if x == y => Edit::Counts(a, b),
            (Label::Loop(_), Label::Loop(_)) => {
                let edits = self.lists(&iteration(self.forest, a), &iteration(self.forest, b));
                Edit::Body(a, b, Rc::new(edits))
            }
            _ => self.call(a, b),
        }
    }

    fn call(&mut self, a: NodeId, b: NodeId) -> Edit {
        if let Some(edits) = self.calls.get(&(a, b)) {
            return Edit::Call(a, b, edits.clone());
        }
        let (of_a, of_b) = (
            elements(self.forest, a, false),
            elements(self.forest, b, false),
        );
        self.depth += 1;
        let edits = if self.depth > DEPTH {
            let mut edits = Edits::default();
            edits.add(Edit::Normal(of_a));
            edits.add(Edit::Faulty(of_b));
            edits.list
        } else {
            self.lists(&of_a, &of_b)
        };
        self.depth -= 1;
        let edits = Rc::new(edits);
        self.calls.insert((a, b), edits.clone());
        Edit::Call(a, b, edits)
    }

    /// Elements of which no two have the same shape.
    fn gap(&mut self, a: &[NodeId], b: &[NodeId], edits: &mut Edits) {
        if a.len().saturating_mul(b.len()) > PAIRS {
            // Too many to look at every pair: those of the same function, by Myers.
            let class = |nodes: &[NodeId]| -> Vec<_> {
                nodes
                    .iter()
                    .map(|node| match self.forest.node(*node).label {
                        Label::Call(call) => (0, u128::from(call.function.0)),
                        Label::Loop(body) => (1, self.forest.bodies().family(body)),
                        _ => (2, 0),
                    })
                    .collect()
            };
            let (classes_a, classes_b) = (class(a), class(b));
            for (from_a, from_b) in segments(&classes_a, &classes_b) {
                if classes_a[from_a.clone()] == classes_b[from_b.clone()] {
                    for (a, b) in a[from_a].iter().zip(&b[from_b]) {
                        let edit = self.pair(*a, *b);
                        edits.add(edit);
                    }
                } else {
                    edits.add(Edit::Normal(a[from_a].to_vec()));
                    edits.add(Edit::Faulty(b[from_b].to_vec()));
                }
            }
            return;
        }
        let (mut i, mut j) = (0, 0);
        for (at_a, at_b) in self.best_pairs(a, b) {
            edits.add(Edit::Normal(a[i..at_a].to_vec()));
            edits.add(Edit::Faulty(b[j..at_b].to_vec()));
            let edit = self.pair(a[at_a], b[at_b]);
            edits.add(edit);
            (i, j) = (at_a + 1, at_b + 1);
        }
        edits.add(Edit::Normal(a[i..].to_vec()));
        edits.add(Edit::Faulty(b[j..].to_vec()));
    }

    /// The common subsequence of greatest likeness.
    fn best_pairs(&self, a: &[NodeId], b: &[NodeId]) -> Vec<(usize, usize)> {
        let width = b.len() + 1;
        let mut best = vec![0u32; (a.len() + 1) * width];
        let mut likeness = vec![0u32; a.len() * b.len()];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                let alike = self.likeness(a[i], b[j]);
                likeness[i * b.len() + j] = alike;
                let paired = if alike > 0 {
                    alike + best[(i + 1) * width + j + 1]
                } else {
                    0
                };
                best[i * width + j] = paired
                    .max(best[(i + 1) * width + j])
                    .max(best[i * width + j + 1]);
            }
        }
        let mut pairs = Vec::new();
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() {
            let here = best[i * width + j];
            let alike = likeness[i * b.len() + j];
            if alike > 0 && here == alike + best[(i + 1) * width + j + 1] {
                pairs.push((i, j));
                (i, j) = (i + 1, j + 1);
            } else if here == best[(i + 1) * width + j] {
                i += 1;
            } else {
                j += 1;
            }
        }
        pairs
    }

    /// 0 for elements that do not belong together, up to 100 for those that certainly do.
    fn likeness(&self, a: NodeId, b: NodeId) -> u32 {
        match (self.forest.node(a).label, self.forest.node(b).label) {
            (Label::Call(x), Label::Call(y)) if x.function == y.function => 100,
            (Label::Loop(x), Label::Loop(y)) => {
                let bodies = self.forest.bodies();
                if x == y || bodies.family(x) == bodies.family(y) {
                    return 100;
                }
                let (a, b) = (self.functions(a), self.functions(b));
                let common = a.intersection(&b).count();
                let all = a.len().max(b.len());
                // Half of what the greater one calls is common, or they are different loops.
                if 2 * common >= all && all > 0 {
                    (99 * common / all) as u32
                } else {
                    0
                }
            }
            (Label::Return, Label::Return) => 100,
            _ => 0,
        }
    }

    /// The functions that an iteration of a loop calls itself.
    fn functions(&self, looped: NodeId) -> FxHashSet<u32> {
        let mut found = FxHashSet::default();
        let mut open = iteration(self.forest, looped);
        while let Some(node) = open.pop() {
            match self.forest.node(node).label {
                Label::Call(call) => {
                    found.insert(call.function.0);
                }
                Label::Loop(_) => open.extend(iteration(self.forest, node)),
                _ => {}
            }
        }
        found
    }

    /// Finds loops that go on as other nodes that make the same calls.
    fn go_on(&mut self, edits: Vec<Edit>) -> Vec<Edit> {
        let mut out = Edits::default();
        let mut edits = edits.into_iter().peekable();
        while let Some(edit) = edits.next() {
            let trips = |node| self.forest.trip_count(node);
            let found = match (&edit, edits.peek()) {
                (Edit::Counts(a, b), Some(Edit::Faulty(nodes))) if trips(*a) > trips(*b) => {
                    self.continued(*a, Some(*b), nodes, true)
                }
                (Edit::Counts(a, b), Some(Edit::Normal(nodes))) if trips(*a) < trips(*b) => {
                    self.continued(*b, Some(*a), nodes, false)
                }
                (Edit::Normal(normal), Some(Edit::Faulty(faulty))) => {
                    let looped = normal.last().copied();
                    looped.and_then(|looped| self.continued(looped, None, faulty, true))
                }
                _ => None,
            };
            let Some(found) = found else {
                out.add(edit);
                continue;
            };
            if let Edit::Normal(mut normal) = edit {
                normal.pop();
                out.add(Edit::Normal(normal));
            }
            let taken = found.nodes.len();
            let in_faulty = found.in_faulty;
            out.add(Edit::Continued(found));
            if let Some(rest) = edits.next().as_ref().and_then(|it| it.of_one(in_faulty)) {
                out.add(Edit::alone(rest[taken..].to_vec(), in_faulty));
            }
        }
        out.list
    }

    /// How far `nodes` make the same calls as iterations of a loop.
    fn continued(
        &mut self,
        looped: NodeId,
        kept: Option<NodeId>,
        nodes: &[NodeId],
        in_faulty: bool,
    ) -> Option<Continued> {
        self.forest.body(looped)?;
        let body = iteration(self.forest, looped);
        let length = body.len();
        let mut first: Vec<NodeId> = Vec::new();
        // Elements taken, and how many nodes and iterations were complete at once.
        let (mut taken, mut complete) = (0usize, (0usize, 0u64));
        let mut iterations = 0u64;
        let mut all = true;
        for (index, node) in nodes.iter().enumerate() {
            let here = taken % length;
            let (elements, times) = if self.likeness(body[here], *node) > 0 {
                (vec![*node], 1)
            } else {
                let found = iteration(self.forest, *node);
                let is_round = !found.is_empty() && found.len().is_multiple_of(length);
                if self.forest.body(*node).is_none() || !is_round {
                    all = false;
                    break;
                }
                (found, self.forest.trip_count(*node))
            };
            let mut expected = body.iter().cycle().skip(here);
            let fits = elements.iter().all(|element| {
                let expected = expected.next();
                expected.is_some_and(|expected| self.likeness(*expected, *element) > 0)
            });
            if !fits {
                all = false;
                break;
            }
            first.extend(elements.iter().take(length.saturating_sub(first.len())));
            let rounds = (here + elements.len()) / length;
            iterations += rounds as u64 + (times - 1) * (elements.len() / length) as u64;
            taken = here + elements.len();
            if taken.is_multiple_of(length) {
                complete = (index + 1, iterations);
            }
        }
        let (count, iterations) = match complete {
            // The trace ends within the first of them.
            (0, _) if all && first.len() > 1 => (nodes.len(), 1),
            (0, _) => return None,
            complete => complete,
        };
        let edits = if in_faulty {
            self.lists(&body, &first)
        } else {
            self.lists(&first, &body)
        };
        Some(Continued {
            looped,
            kept,
            nodes: nodes[..count].to_vec(),
            in_faulty,
            iterations,
            first,
            edits: Rc::new(edits),
        })
    }

    /// Finds loops that change their body on the way.
    fn split(&mut self, edits: Vec<Edit>) -> Vec<Edit> {
        let mut out = Edits::default();
        let mut edits = edits.into_iter().peekable();
        while let Some(edit) = edits.next() {
            let Edit::Counts(a, b) = edit else {
                out.add(edit);
                continue;
            };
            let (trips_a, trips_b) = (self.forest.trip_count(a), self.forest.trip_count(b));
            let in_faulty = trips_a > trips_b;
            let alone = |edit: Option<&Edit>| match trips_a == trips_b {
                true => Vec::new(),
                false => edit
                    .and_then(|it| it.of_one(in_faulty))
                    .map_or_else(Vec::new, <[_]>::to_vec),
            };
            let (mut before, after) = (alone(out.list.last()), alone(edits.peek()));
            let is_other = |other: &NodeId| {
                matches!(self.forest.node(*other).label, Label::Loop(_))
                    && self.likeness(a, *other) > 0
            };
            let later = after.first().copied().filter(is_other);
            let earlier = before.last().copied().filter(is_other);
            let Some(other) = later.or(earlier) else {
                out.add(edit);
                continue;
            };
            let from = iteration(self.forest, if in_faulty { a } else { other });
            let to = iteration(self.forest, if in_faulty { other } else { b });
            let split = Split {
                normal: a,
                faulty: b,
                other,
                in_faulty,
                after: later.is_some(),
                edits: Rc::new(self.lists(&from, &to)),
            };
            if later.is_some() {
                edits.next();
                out.add(Edit::Split(split));
                out.add(Edit::alone(after[1..].to_vec(), in_faulty));
            } else {
                out.list.pop();
                before.pop();
                out.add(Edit::alone(before, in_faulty));
                out.add(Edit::Split(split));
            }
        }
        out.list
    }
}

/// Edits in order, equal ones joined and empty ones left out.
#[derive(Default)]
struct Edits {
    list: Vec<Edit>,
}

impl Edits {
    fn equal(&mut self, nodes: &[NodeId]) {
        self.add(Edit::Equal(nodes.to_vec()));
    }

    fn add(&mut self, edit: Edit) {
        match (self.list.last_mut(), edit) {
            (_, Edit::Equal(more) | Edit::Normal(more) | Edit::Faulty(more)) if more.is_empty() => {
            }
            (Some(Edit::Equal(nodes)), Edit::Equal(more))
            | (Some(Edit::Normal(nodes)), Edit::Normal(more))
            | (Some(Edit::Faulty(nodes)), Edit::Faulty(more)) => nodes.extend(more),
            (_, edit) => self.list.push(edit),
        }
    }
}

/// Ranges of two lists, in turn equal and different, by Myers' algorithm.
pub(super) fn segments<T: Hash + Eq + Copy>(
    a: &[T],
    b: &[T],
) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let mut numbers: FxHashMap<T, u32> = FxHashMap::default();
    let mut intern = |items: &[T]| -> Vec<Token> {
        items
            .iter()
            .map(|item| {
                let next = numbers.len() as u32;
                Token(*numbers.entry(*item).or_insert(next))
            })
            .collect()
    };
    let (tokens_a, tokens_b) = (intern(a), intern(b));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Myers, &tokens_a, &tokens_b, numbers.len() as u32);
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    for hunk in diff.hunks() {
        let (before, after) = (
            hunk.before.start as usize..hunk.before.end as usize,
            hunk.after.start as usize..hunk.after.end as usize,
        );
        if i < before.start {
            found.push((i..before.start, j..after.start));
        }
        (i, j) = (before.end, after.end);
        found.push((before, after));
    }
    if i < a.len() || j < b.len() {
        found.push((i..a.len(), j..b.len()));
    }
    found
}

/// The trip count of the first iteration at which two loops of one body differ within, from 1, with
/// the two iterations, and how many differ of those that both have.
pub(super) fn first_change(
    forest: &Forest,
    a: NodeId,
    b: NodeId,
) -> Option<(u64, u64, NodeId, NodeId)> {
    let (mut runs_a, mut runs_b) = (forest.node(a).items.iter(), forest.node(b).items.iter());
    let (mut x, mut y): (Option<Item>, Option<Item>) = (None, None);
    let mut found: Option<(u64, u64, NodeId, NodeId)> = None;
    let mut iteration = 1;
    loop {
        x = x
            .filter(|run| run.times > 0)
            .or_else(|| runs_a.next().copied());
        y = y
            .filter(|run| run.times > 0)
            .or_else(|| runs_b.next().copied());
        let (Some(run_a), Some(run_b)) = (&mut x, &mut y) else {
            return found;
        };
        let both = run_a.times.min(run_b.times);
        if run_a.node != run_b.node {
            let first = found.get_or_insert((iteration, 0, run_a.node, run_b.node));
            first.1 += both;
        }
        run_a.times -= both;
        run_b.times -= both;
        iteration += both;
    }
}
