//! What the tree of a trace has: the steps of its functions, who calls whom, its loops and its call paths.

use super::features::{Drafted, Key, Numbered};
use crate::divergence::usual::{self, Step};
use crate::sequence::Trees;
use crate::timing::Timing;
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_trace::TraceName;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

/// Places on call paths that are looked at in a trace; beyond them its paths are not compared.
const PATHS: usize = 1 << 16;

/// A step, and the function in which it is; none: outside of all.
type Placed = (Option<FunctionKey>, Step);

/// The steps of a trace, and about how often (a step in a loop counts twice a call, in nested ones a few times).
pub(super) struct Steps {
    pub(super) waiting: FxHashMap<Placed, u64>,
    pub(super) others: FxHashMap<Placed, u64>,
}

impl Steps {
    /// Of the traces with these roots.
    pub(super) fn of(forest: &Forest, roots: &[NodeId], timing: &Timing) -> Vec<Self> {
        let each = roots
            .par_iter()
            .map(|root| Self::new(forest, *root, timing));
        each.collect()
    }

    fn new(forest: &Forest, root: NodeId, timing: &Timing) -> Self {
        let mut steps = Self {
            waiting: FxHashMap::default(),
            others: FxHashMap::default(),
        };
        let occurrences = forest.occurrences_without(&[root], &|it| timing.is_pause(forest, it));
        for (id, times) in occurrences {
            let function = match forest.node(id).label {
                Label::Call(call) => Some(call.function),
                Label::Trace => None,
                Label::Loop(_) | Label::Iteration | Label::Return => continue,
            };
            let waits = match function {
                Some(it) => timing.waits.contains(&it) && !timing.through.contains(&it),
                None => timing.is_team(forest, id),
            };
            let to = match waits {
                true => &mut steps.waiting,
                false => &mut steps.others,
            };
            // Once more of the same is a trip count.
            let found = usual::steps(forest, id).into_iter();
            for step in found.filter(|(after, next)| after.is_none() || after != next) {
                let sum: &mut u64 = to.entry((function, step)).or_default();
                *sum = sum.saturating_add(times);
            }
        }
        steps
    }
}

/// How many steps in functions that wait each trace of the last run has which no trace of the others has.
pub(super) fn new_steps(
    trees: &Trees,
    objects: &Drafted,
    steps: &[Steps],
) -> FxHashMap<TraceName, u64> {
    let (Some((last, normals)), Some(names)) = (objects.split_last(), trees.runs.last()) else {
        return FxHashMap::default();
    };
    let before = normals.iter().flatten();
    let known: FxHashSet<_> = before
        .flat_map(|(_, behaviour)| steps[*behaviour].waiting.keys())
        .collect();
    let of = |behaviour: usize| {
        let waiting = steps[behaviour].waiting.iter();
        let new = waiting.filter(|(step, _)| !known.contains(step));
        new.map(|(_, times)| *times).sum::<u64>()
    };
    let each = names.iter().zip(last);
    each.map(|(trace, (_, behaviour))| (trace.name, of(*behaviour)))
        .collect()
}

/// Who calls whom in a trace, and how often; and its loops, each by the function around it.
pub(super) struct Calls {
    pub(super) edges: FxHashMap<(Option<FunctionKey>, FunctionKey), u64>,
    pub(super) loops: FxHashSet<(Option<FunctionKey>, NodeId)>,
}

impl Calls {
    /// Without what is there or not by timing alone.
    pub(super) fn new(forest: &Forest, root: NodeId, timing: &Timing) -> Self {
        let (mut edges, mut loops) = (FxHashMap::default(), FxHashSet::default());
        let occurrences = forest.occurrences_without(&[root], &|it| timing.is_pause(forest, it));
        for (id, times) in occurrences {
            let caller = match forest.node(id).label {
                Label::Call(caller) => Some(caller.function),
                Label::Trace => None,
                Label::Loop(_) | Label::Iteration | Label::Return => continue,
            };
            forest.within(id, times, |node, times| match forest.node(node).label {
                Label::Call(_) if timing.is_pause(forest, node) => {}
                Label::Call(callee) => {
                    let sum: &mut u64 = edges.entry((caller, callee.function)).or_default();
                    *sum = sum.saturating_add(times);
                }
                _ => {
                    loops.insert((caller, node));
                }
            });
        }
        Self { edges, loops }
    }
}

/// Who calls whom in a trace, and how often, but for what is there or not by timing alone; without a caller, at its root.
pub(crate) fn tree_edges(
    forest: &Forest,
    root: NodeId,
    timing: &Timing,
) -> FxHashMap<(Option<FunctionKey>, FunctionKey), u64> {
    Calls::new(forest, root, timing).edges
}

/// Who calls whom in some trees; without a caller, at the root of a trace.
pub(crate) fn tree_calls(
    forest: &Forest,
    roots: &[NodeId],
) -> FxHashSet<(Option<FunctionKey>, FunctionKey)> {
    let each = roots.iter().collect::<FxHashSet<_>>().into_iter();
    let timing = Timing::default();
    each.flat_map(|root| Calls::new(forest, *root, &timing).edges.into_keys())
        .collect()
}

/// The call paths of a trace; a call of a function that is open already goes on from there, so that
/// recursion has no depth; without those to what is there or not by timing alone. None where there are too many.
pub(super) fn call_paths(
    forest: &Forest,
    root: NodeId,
    timing: &Timing,
    paths: &mut Numbered<(Option<u32>, FunctionKey)>,
) -> Vec<Key> {
    let mut seen: FxHashSet<(NodeId, Option<u32>)> = FxHashSet::default();
    let mut found = FxHashSet::default();
    let mut open: Vec<(NodeId, Option<u32>)> = vec![(root, None)];
    while let Some((id, above)) = open.pop() {
        if !seen.insert((id, above)) {
            continue;
        }
        if seen.len() > PATHS {
            return Vec::new();
        }
        let path = match forest.node(id).label {
            Label::Call(call) => {
                let mut before = above;
                while let Some(number) = before
                    && paths.items[number as usize].1 != call.function
                {
                    before = paths.items[number as usize].0;
                }
                let path = before.unwrap_or_else(|| paths.number((above, call.function)));
                found.insert(path);
                Some(path)
            }
            _ => above,
        };
        let inner = forest.node(id).items.iter().map(|item| item.node);
        let inner = inner.filter(|it| !timing.is_pause(forest, *it));
        open.extend(inner.map(|it| (it, path)));
    }
    found.into_iter().map(Key::Path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_calltree::{Builder, Function};

    const RELEASE: &str = "release";
    const DISPOSE: &str = "std::_Sp_counted_ptr_inplace<Task>::_M_dispose()";

    /// A thread that drops its reference to a task; perhaps the last one, so that it ends the task.
    fn release(forest: &mut Forest, is_last: bool) -> NodeId {
        let mut function = |name: &str| {
            forest.add_function(Function {
                name: name.to_owned(),
                linkage: name.to_owned(),
                image: String::new(),
                imported: false,
            })
        };
        let [release, dispose, end] = [RELEASE, DISPOSE, "end"].map(&mut function);
        let mut builder = Builder::new(forest);
        builder.call(release);
        if is_last {
            for call in [dispose, end] {
                builder.call(call);
            }
            (0..2).for_each(|_| builder.ret());
        }
        builder.ret();
        builder.finish()
    }

    #[test]
    fn what_the_last_one_does_is_no_call_of_its_own() {
        let mut forest = Forest::new();
        let [last, other] = [true, false].map(|is_last| release(&mut forest, is_last));
        let timing = Timing::of(&forest, &[last, other]);
        let edges = |root, timing: &Timing| Calls::new(&forest, root, timing).edges;
        assert_eq!(edges(last, &timing), edges(other, &timing));
        assert_eq!(edges(last, &timing).len(), 1);
        assert_eq!(edges(last, &Timing::default()).len(), 3);
    }
}
