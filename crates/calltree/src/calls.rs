//! How often who calls whom.

use crate::forest::Forest;
use crate::function::FunctionKey;
use crate::node::{Label, NodeId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// How often a function was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionCalls {
    /// The function's name.
    pub name: String,
    /// Its image.
    pub image: String,
    /// Its calls.
    pub calls: u64,
}

/// How often a function called another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallEdge {
    /// Name of the caller.
    pub caller: String,
    /// Name of the callee.
    pub callee: String,
    /// The calls.
    pub calls: u64,
}

impl Forest {
    /// How often each function was called in these traces, most often first.
    #[must_use]
    pub fn calls(&self, roots: &[NodeId]) -> Vec<FunctionCalls> {
        let mut counts: BTreeMap<FunctionKey, u64> = BTreeMap::new();
        for (id, times) in self.occurrences(roots) {
            if let Label::Call(call) = self.nodes.label(id) {
                *counts.entry(call.function).or_default() += times;
            }
        }
        let mut calls: Vec<FunctionCalls> = counts
            .into_iter()
            .map(|(key, calls)| {
                let function = self.function(key);
                FunctionCalls {
                    name: function.name.clone(),
                    image: function.image.clone(),
                    calls,
                }
            })
            .collect();
        calls.sort_by(|a, b| (b.calls, &a.name, &a.image).cmp(&(a.calls, &b.name, &b.image)));
        calls
    }

    /// How often each function called each other in these traces, most often first. Calls whose caller
    /// is not known (the outermost) are not among them.
    #[must_use]
    pub fn call_graph(&self, roots: &[NodeId]) -> Vec<CallEdge> {
        let mut counts: BTreeMap<(FunctionKey, FunctionKey), u64> = BTreeMap::new();
        for (id, times) in self.occurrences(roots) {
            let Label::Call(caller) = self.nodes.label(id) else {
                continue;
            };
            // Down to the calls that this one makes, through loops but not into the calls.
            let mut open: Vec<(NodeId, u64)> = vec![(id, times)];
            while let Some((around, times)) = open.pop() {
                for item in self.nodes.items(around) {
                    let times = times.saturating_mul(item.times);
                    match self.nodes.label(item.node) {
                        Label::Call(callee) => {
                            *counts
                                .entry((caller.function, callee.function))
                                .or_default() += times;
                        }
                        Label::Loop(_) | Label::Iteration => open.push((item.node, times)),
                        Label::Trace | Label::Return => {}
                    }
                }
            }
        }
        let mut edges: Vec<CallEdge> = counts
            .into_iter()
            .map(|((caller, callee), calls)| CallEdge {
                caller: self.function(caller).name.clone(),
                callee: self.function(callee).name.clone(),
                calls,
            })
            .collect();
        edges.sort_by(|a, b| (b.calls, &a.caller, &a.callee).cmp(&(a.calls, &b.caller, &b.callee)));
        edges
    }

    /// How often each node stands in these traces, all told; outer before inner.
    #[must_use]
    pub fn occurrences(&self, roots: &[NodeId]) -> Vec<(NodeId, u64)> {
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
            for item in self.nodes.items(id) {
                let more = count.saturating_mul(item.times);
                let sum = times.entry(item.node).or_default();
                *sum = sum.saturating_add(more);
                heap.insert(item.node);
            }
        }
        found
    }
}
