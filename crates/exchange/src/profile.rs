//! Traces summed up: how often each function was called, and by whom. From the folded tree, so that it
//! costs distinct behaviour and not events.

use crate::spans::{Clock, Span, each_span};
use crate::view::View;
use lockstep_calltree::{Builder, Forest, FunctionKey, FunctionMap, Item, Label, NodeId, left_out};
use lockstep_trace::{FunctionId, Run, Thread};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io;

/// The folded trees of the chosen traces.
pub(crate) struct Folded<'a> {
    pub run: &'a Run,
    pub forest: Forest,
    pub functions: FunctionMap,
    pub roots: Vec<NodeId>,
    /// What is not in them, in a sentence.
    pub left_out: Option<String>,
    ids: FxHashMap<FunctionKey, FunctionId>,
}

/// Calls of one function by another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Edge {
    pub calls: u64,
    /// These calls and all within them.
    pub inclusive: u64,
}

/// The tree of the calls of a trace that `view` has.
fn part(
    forest: &mut Forest,
    functions: &FunctionMap,
    thread: &Thread,
    view: &View,
) -> io::Result<NodeId> {
    let clock = Clock::for_windows(thread);
    let mut builder = Builder::new(forest);
    each_span(thread, &clock, &view.unfolded(), |_, span, _| {
        match span {
            Span::Open(function, _) => builder.call(functions.key(function)),
            Span::Close(..) => builder.ret(),
        }
        Ok(())
    })?;
    Ok(builder.finish())
}

/// All traces summed up.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub functions: BTreeMap<FunctionKey, u64>,
    pub edges: BTreeMap<(FunctionKey, FunctionKey), Edge>,
    pub total: u64,
}

impl<'a> Folded<'a> {
    pub fn new(run: &'a Run, threads: &[&Thread], view: &View) -> io::Result<Self> {
        let mut forest = Forest::new();
        let functions = forest.add_functions(run);
        let (roots, left_out) = if view.is_part() {
            let roots = threads.iter();
            let roots = roots.map(|thread| part(&mut forest, &functions, thread, view));
            (roots.collect::<io::Result<_>>()?, None)
        } else {
            let traces = forest.bounded(threads.len(), |forest| {
                forest.add_traces(&functions, threads)
            });
            let roots = traces.iter().map(|trace| trace.root).collect();
            (roots, left_out(&traces))
        };
        let mut ids = FxHashMap::default();
        for id in 0..u32::try_from(run.functions.len()).unwrap_or(u32::MAX) {
            let id = FunctionId(id);
            ids.entry(functions.key(id)).or_insert(id);
        }
        Ok(Self {
            run,
            left_out,
            roots,
            forest,
            functions,
            ids,
        })
    }

    /// The run's function.
    pub fn function(&self, key: FunctionKey) -> Option<&'a lockstep_trace::Function> {
        let run: &'a Run = self.run;
        let id = self.ids.get(&key)?;
        run.functions.get(id.0 as usize)
    }

    pub fn name(&self, key: FunctionKey) -> &str {
        &self.forest.function(key).name
    }

    /// By node: how many calls it is, those within it included.
    pub fn inclusive(&self) -> Vec<u64> {
        let mut inclusive = Vec::with_capacity(self.forest.len());
        for id in 0..self.forest.len() {
            let node = self.forest.node(NodeId(id as u32));
            let own = u64::from(matches!(node.label, Label::Call(_)));
            // Children have smaller ids.
            let sum = node.items.iter().fold(own, |sum: u64, item| {
                let each: u64 = inclusive.get(item.node.0 as usize).copied().unwrap_or(0);
                sum.saturating_add(each.saturating_mul(item.times))
            });
            inclusive.push(sum);
        }
        inclusive
    }

    /// Gives the calls right below `node` to `each`, with how often they stand there: through loops, not
    /// into calls.
    pub fn each_call(
        &self,
        node: NodeId,
        times: u64,
        each: &mut dyn FnMut(FunctionKey, NodeId, u64),
    ) {
        let mut open = vec![(node, times)];
        while let Some((around, times)) = open.pop() {
            for Item { node, times: more } in self.forest.node(around).items {
                let times = times.saturating_mul(*more);
                match self.forest.node(*node).label {
                    Label::Call(call) => each(call.function, *node, times),
                    Label::Loop(_) | Label::Iteration => open.push((*node, times)),
                    Label::Trace | Label::Return => {}
                }
            }
        }
    }

    pub fn profile(&self) -> Profile {
        let inclusive = self.inclusive();
        let mut times = vec![0u64; self.forest.len()];
        for root in &self.roots {
            times[root.0 as usize] += 1;
        }
        let mut profile = Profile::default();
        // Parents have greater ids: when a node comes, all that it stands in were there.
        for id in (0..self.forest.len()).rev() {
            let count = times[id];
            if count == 0 {
                continue;
            }
            let here = NodeId(id as u32);
            let node = self.forest.node(here);
            for item in node.items {
                let below = &mut times[item.node.0 as usize];
                *below = below.saturating_add(count.saturating_mul(item.times));
            }
            let Label::Call(caller) = node.label else {
                continue;
            };
            *profile.functions.entry(caller.function).or_default() += count;
            profile.total = profile.total.saturating_add(count);
            self.each_call(here, count, &mut |callee, node, times| {
                let edge = profile.edges.entry((caller.function, callee)).or_default();
                edge.calls = edge.calls.saturating_add(times);
                let within = inclusive[node.0 as usize].saturating_mul(times);
                edge.inclusive = edge.inclusive.saturating_add(within);
            });
        }
        profile
    }
}
