//! Who calls whom in call trees, how often, and on which paths.

use crate::numbered::Numbered;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::hash::Hash;

/// A caller and what it calls; nobody calls what stands at the root of a trace.
pub(crate) type Edge = (Option<FunctionKey>, FunctionKey);

/// The function of a call.
pub(crate) fn function(forest: &Forest, node: NodeId) -> Option<FunctionKey> {
    match forest.node(node).label {
        Label::Call(call) => Some(call.function),
        _ => None,
    }
}

/// The calls and traces among some nodes, with their functions; a trace has none.
pub(crate) fn frames(
    forest: &Forest,
    nodes: Vec<(NodeId, u64)>,
) -> impl Iterator<Item = (NodeId, Option<FunctionKey>, u64)> + '_ {
    nodes
        .into_iter()
        .filter_map(|(id, times)| match forest.node(id).label {
            Label::Call(call) => Some((id, Some(call.function), times)),
            Label::Trace => Some((id, None, times)),
            Label::Loop(_) | Label::Iteration | Label::Return => None,
        })
}

/// Adds to a sum that does not overflow.
pub(crate) fn add<K: Eq + Hash>(sums: &mut FxHashMap<K, u64>, key: K, more: u64) {
    let sum = sums.entry(key).or_default();
    *sum = sum.saturating_add(more);
}

/// How often each function is called in some trees.
pub(crate) fn counts(forest: &Forest, roots: &[NodeId]) -> FxHashMap<FunctionKey, u64> {
    let mut counts = FxHashMap::default();
    for (id, times) in forest.occurrences(roots) {
        if let Some(function) = function(forest, id) {
            add(&mut counts, function, times);
        }
    }
    counts
}

/// Who calls whom in a tree, and how often; and its loops, each by the function around it.
pub(crate) struct Calls {
    pub(crate) edges: FxHashMap<Edge, u64>,
    pub(crate) loops: FxHashSet<(Option<FunctionKey>, NodeId)>,
}

impl Calls {
    /// Without the calls that are left out, and all that is in them.
    pub(crate) fn new(forest: &Forest, root: NodeId, is_left_out: &dyn Fn(NodeId) -> bool) -> Self {
        let (mut edges, mut loops) = (FxHashMap::default(), FxHashSet::default());
        let nodes = forest.occurrences_without(&[root], is_left_out);
        for (id, caller, times) in frames(forest, nodes) {
            forest.within(id, times, |node, times| match function(forest, node) {
                _ if is_left_out(node) => {}
                Some(callee) => add(&mut edges, (caller, callee), times),
                None => drop(loops.insert((caller, node))),
            });
        }
        Self { edges, loops }
    }
}

/// Who calls whom in some trees. O(nodes).
pub(crate) fn tree_calls(forest: &Forest, roots: &[NodeId]) -> FxHashSet<Edge> {
    let mut found = FxHashSet::default();
    let (mut seen, mut entered) = (FxHashSet::default(), FxHashSet::default());
    let mut open: Vec<(NodeId, Option<FunctionKey>)> = roots.iter().map(|it| (*it, None)).collect();
    while let Some((id, around)) = open.pop() {
        let own = function(forest, id);
        found.extend(own.map(|callee| (around, callee)));
        // What is in a call does not depend on who made it.
        let is_new = match own {
            Some(_) => entered.insert(id),
            None => seen.insert((id, around)),
        };
        if is_new {
            let items = forest.node(id).items.iter();
            open.extend(items.map(|item| (item.node, own.or(around))));
        }
    }
    found
}

/// Shows all nodes below some, each once.
pub(crate) fn below(forest: &Forest, mut open: Vec<NodeId>, see: &mut dyn FnMut(NodeId)) {
    let mut seen = FxHashSet::default();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            see(id);
            open.extend(forest.node(id).items.iter().map(|item| item.node));
        }
    }
}

/// The functions that a frame calls itself, in the order of their first calls.
pub(crate) fn called(forest: &Forest, frame: NodeId) -> Vec<FunctionKey> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut open = vec![frame];
    while let Some(id) = open.pop() {
        match function(forest, id).filter(|_| id != frame) {
            Some(function) if !found.contains(&function) => found.push(function),
            Some(_) => {}
            None if seen.insert(id) => {
                open.extend(forest.node(id).items.iter().rev().map(|item| item.node));
            }
            None => {}
        }
    }
    found
}

/// Call paths: the number of the one above, and the function.
pub(crate) type Paths = Numbered<(Option<usize>, FunctionKey)>;

impl Paths {
    /// The path of a call from another one. A call of a function that is open already goes on from there, so that recursion has no
    /// depth.
    fn below(&mut self, above: Option<usize>, function: FunctionKey) -> usize {
        let mut before = above;
        while let Some(number) = before {
            let (next, other) = self.items[number];
            if other == function {
                return number;
            }
            before = next;
        }
        self.number((above, function))
    }

    /// The functions of a path, outermost first.
    pub(crate) fn functions(&self, path: usize) -> Vec<FunctionKey> {
        let each = std::iter::successors(Some(path), |path| self.items[*path].0);
        let mut functions: Vec<FunctionKey> = each.map(|path| self.items[path].1).collect();
        functions.reverse();
        functions
    }

    /// The call paths of a tree, and how often each is gone, without calls that are left out; `None` if it has more than `most` places.
    pub(crate) fn of(
        &mut self,
        forest: &Forest,
        root: NodeId,
        is_left_out: &dyn Fn(NodeId) -> bool,
        most: usize,
    ) -> Option<FxHashMap<usize, u64>> {
        let mut counts = FxHashMap::default();
        // Parents have greater ids: when a node is the greatest left, all that is above it is done.
        let mut open: BTreeMap<(NodeId, Option<usize>), u64> = BTreeMap::from([((root, None), 1)]);
        let mut places = 0;
        while let Some(((id, above), times)) = open.pop_last() {
            places += 1;
            if places > most {
                return None;
            }
            let path = match function(forest, id) {
                Some(function) => {
                    let path = self.below(above, function);
                    add(&mut counts, path, times);
                    Some(path)
                }
                None => above,
            };
            let items = forest.node(id).items.iter();
            for item in items.filter(|it| !is_left_out(it.node)) {
                let sum = open.entry((item.node, path)).or_default();
                *sum = sum.saturating_add(times.saturating_mul(item.times));
            }
        }
        Some(counts)
    }
}
