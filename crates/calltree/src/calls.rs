//! How often who calls whom.

use crate::forest::{Forest, FunctionMap};
use crate::function::FunctionKey;
use crate::node::{Label, NodeId};
use lockstep_trace::{Event, Thread};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Number of calls of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FunctionCalls {
    /// The function's name.
    pub name: String,
    /// File name of the program or library that contains the function; `library` if the program calls it in a library.
    pub image: String,
    /// Number of calls.
    pub calls: u64,
}

/// Number of calls from one function to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallEdge {
    /// Name of the calling function.
    pub caller: String,
    /// Name of the called function.
    pub callee: String,
    /// Number of calls.
    pub calls: u64,
}

/// How often functions were called, and by whom. Of trees, or of events where the trees would be too large: that takes as
/// much memory as calls are open.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    functions: BTreeMap<FunctionKey, u64>,
    edges: BTreeMap<(FunctionKey, FunctionKey), u64>,
}

impl Counts {
    /// Of some traces of a run, by their trees where these are of bounded size.
    pub fn of(forest: &mut Forest, functions: &FunctionMap, threads: &[&Thread]) -> Self {
        let traces = forest.bounded(threads.len(), |forest| {
            forest.add_traces(functions, threads)
        });
        let (whole, cut): (Vec<_>, Vec<_>) = traces
            .iter()
            .zip(threads)
            .partition(|(it, _)| it.left_out == 0);
        let mut counts = Self::default();
        let roots: Vec<NodeId> = whole.iter().map(|(trace, _)| trace.root).collect();
        counts.add_trees(forest, &roots);
        for (_, thread) in cut {
            counts.add_events(functions, thread.events());
        }
        counts
    }

    /// Adds the calls of a trace, event by event.
    pub fn add_events(&mut self, functions: &FunctionMap, events: impl Iterator<Item = Event>) {
        // The open calls, and whether each ends with the call that comes next.
        let mut open: Vec<(FunctionKey, bool)> = Vec::new();
        for event in events {
            match event {
                Event::Call(id) => {
                    let callee = functions.key(id);
                    *self.functions.entry(callee).or_default() += 1;
                    if let Some((caller, _)) = open.last() {
                        *self.edges.entry((*caller, callee)).or_default() += 1;
                    }
                    open.push((callee, false));
                }
                Event::Return => {
                    open.pop();
                    while open.last().is_some_and(|(_, handed_over)| *handed_over) {
                        open.pop();
                    }
                }
                Event::Tail => {
                    if let Some((_, handed_over)) = open.last_mut() {
                        *handed_over = true;
                    }
                }
            }
        }
    }

    /// Adds the calls of some trees.
    pub fn add_trees(&mut self, forest: &Forest, roots: &[NodeId]) {
        for (id, times) in forest.occurrences(roots) {
            let Label::Call(caller) = forest.nodes.label(id) else {
                continue;
            };
            let sum = self.functions.entry(caller.function).or_default();
            *sum = sum.saturating_add(times);
            forest.within(id, times, |node, times| {
                if let Label::Call(callee) = forest.nodes.label(node) {
                    let sum = self
                        .edges
                        .entry((caller.function, callee.function))
                        .or_default();
                    *sum = sum.saturating_add(times);
                }
            });
        }
    }

    /// How often each function was called, most often first.
    #[must_use]
    pub fn calls(&self, forest: &Forest) -> Vec<FunctionCalls> {
        let counts = self.functions.iter();
        let mut calls: Vec<FunctionCalls> = counts
            .map(|(key, calls)| {
                let function = forest.function(*key);
                FunctionCalls {
                    name: function.name.clone(),
                    image: function.image.clone(),
                    calls: *calls,
                }
            })
            .collect();
        calls.sort_by(|a, b| (b.calls, &a.name, &a.image).cmp(&(a.calls, &b.name, &b.image)));
        calls
    }

    /// How often each function called each other, most often first. Calls whose caller is not known (the
    /// outermost) are not among them.
    #[must_use]
    pub fn call_graph(&self, forest: &Forest) -> Vec<CallEdge> {
        let counts = self.edges.iter();
        let mut edges: Vec<CallEdge> = counts
            .map(|((caller, callee), calls)| CallEdge {
                caller: forest.function(*caller).name.clone(),
                callee: forest.function(*callee).name.clone(),
                calls: *calls,
            })
            .collect();
        edges.sort_by(|a, b| (b.calls, &a.caller, &a.callee).cmp(&(a.calls, &b.caller, &b.callee)));
        edges
    }
}

impl Forest {
    /// How often each function was called in these traces, most often first.
    #[must_use]
    pub fn calls(&self, roots: &[NodeId]) -> Vec<FunctionCalls> {
        let mut counts = Counts::default();
        counts.add_trees(self, roots);
        counts.calls(self)
    }

    /// How often each function called each other in these traces, most often first. Calls whose caller
    /// is not known (the outermost) are not among them.
    #[must_use]
    pub fn call_graph(&self, roots: &[NodeId]) -> Vec<CallEdge> {
        let mut counts = Counts::default();
        counts.add_trees(self, roots);
        counts.call_graph(self)
    }

    /// Shows the calls and loops that stand in a call or a trace, down through loops but not into calls, and how often they do in
    /// `times` of it; those that stand in several places several times. O(items of the nodes between), however they share each other.
    pub fn within(&self, frame: NodeId, times: u64, mut see: impl FnMut(NodeId, u64)) {
        let mut show = |id: NodeId, times: u64, open: &mut BTreeMap<NodeId, u64>| {
            for item in self.nodes.items(id) {
                let more = times.saturating_mul(item.times);
                let label = self.nodes.label(item.node);
                if matches!(label, Label::Call(_) | Label::Loop(_)) {
                    see(item.node, more);
                }
                if matches!(label, Label::Loop(_) | Label::Iteration) {
                    let sum = open.entry(item.node).or_default();
                    *sum = sum.saturating_add(more);
                }
            }
        };
        let mut open = BTreeMap::new();
        show(frame, times, &mut open);
        // Parents have greater ids, as in `occurrences`.
        while let Some((id, times)) = open.pop_last() {
            show(id, times, &mut open);
        }
    }

    /// How often each node stands in these traces, all told; outer before inner.
    #[must_use]
    pub fn occurrences(&self, roots: &[NodeId]) -> Vec<(NodeId, u64)> {
        self.occurrences_without(roots, &|_| false)
    }

    /// The same, of what does not stand in a node that is left out; those are not given either.
    #[must_use]
    pub fn occurrences_without(
        &self,
        roots: &[NodeId],
        is_left_out: &dyn Fn(NodeId) -> bool,
    ) -> Vec<(NodeId, u64)> {
        let mut times: FxHashMap<NodeId, u64> = FxHashMap::default();
        let mut heap: std::collections::BTreeSet<NodeId> = roots.iter().copied().collect();
        for root in roots {
            *times.entry(*root).or_default() += 1;
        }
        let mut found = Vec::new();
        // Parents have greater ids: when a node is the greatest left, all its parents are done.
        while let Some(id) = heap.pop_last() {
            let count = times[&id];
            found.push((id, count));
            let items = self.nodes.items(id).iter();
            for item in items.filter(|it| !is_left_out(it.node)) {
                let more = count.saturating_mul(item.times);
                let sum = times.entry(item.node).or_default();
                *sum = sum.saturating_add(more);
                heap.insert(item.node);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::function::Function;

    /// Iterations of two kinds that share the loop within double the ways to the innermost call with each level.
    #[test]
    fn loops_that_are_shared_are_gone_through_once() {
        let mut forest = Forest::new();
        let mut function = |name: String| {
            let image = String::new();
            let linkage = name.clone();
            forest.add_function(Function {
                name,
                linkage,
                image,
                imported: false,
            })
        };
        let main = function("main".to_owned());
        let inner = function("inner".to_owned());
        let others: Vec<FunctionKey> = (0..12).map(|it| function(format!("f{it}"))).collect();
        let mut calls = vec![inner, inner];
        for two in others.chunks(2) {
            let with = |last: FunctionKey| [&calls[..], &[last]].concat();
            let (a, b) = (with(two[0]), with(two[1]));
            calls = [&a[..], &a, &b, &b].concat();
        }
        let mut builder = Builder::new(&mut forest);
        builder.call(main);
        for callee in &calls {
            builder.call(*callee);
            builder.ret();
        }
        builder.ret();
        let root = builder.finish();
        let frame = forest.node(root).items[0].node;
        let (mut seen, mut times) = (0, 0);
        forest.within(frame, 3, |node, more| {
            let label = forest.node(node).label;
            seen += 1;
            times += if matches!(label, Label::Call(it) if it.function == inner) {
                more
            } else {
                0
            };
        });
        assert_eq!(times, 3 * 2 * 4_u64.pow(6));
        assert!(seen < 100, "{seen}");
    }
}
