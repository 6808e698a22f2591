//! The steps of the functions of a trace.

use super::keys::Drafted;
use crate::calls::{add, frames};
use crate::difftrace::trees::Trees;
use crate::structure::steps::{Step, changes};
use crate::structure::timing::Timing;
use lockstep_calltree::{Forest, FunctionKey, NodeId};
use lockstep_trace::TraceName;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

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
        let nodes = forest.occurrences_without(&[root], &|it| timing.is_pause(forest, it));
        for (id, function, times) in frames(forest, nodes) {
            let waits = match function {
                Some(it) => timing.waits.contains(&it) && !timing.through.contains(&it),
                None => timing.is_team(forest, id),
            };
            let to = match waits {
                true => &mut steps.waiting,
                false => &mut steps.others,
            };
            for step in changes(forest, id) {
                add(to, (function, step), times);
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
    let Some((last, normals)) = objects.split_last() else {
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
    let each = trees.last().traces.iter().zip(last);
    each.map(|(trace, (_, behaviour))| (trace.name, of(*behaviour)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Calls;
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
        let edges = |root, timing: &Timing| {
            Calls::new(&forest, root, &|it| timing.is_pause(&forest, it)).edges
        };
        assert_eq!(edges(last, &timing), edges(other, &timing));
        assert_eq!(edges(last, &timing).len(), 1);
        assert_eq!(edges(last, &Timing::default()).len(), 3);
    }
}
