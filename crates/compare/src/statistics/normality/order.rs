//! Orders of calls that no normal run has, where normal runs cannot tell whether that is more than timing.
//!
//! ```text
//!  normal runs   work( lock put unlock )   work( lock get unlock )      steps  lock put   put unlock   lock get   get unlock
//!  this run      work( put unlock )                                     of these `put` first of all is in no normal run
//! ```
//!
//! Where p says that normal runs are as unusual, such a step is no difference, and yet it may be a lock that was not taken: it is told.

use super::keys::Drafted;
use super::places::{lines, place};
use super::steps::Steps;
use crate::difftrace::trees::Trees;
use crate::structure::steps::Step;
use lockstep_calltree::FunctionKey;
use lockstep_trace::{TraceName, brief};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// How many are told; of the others only their number.
const TOLD: usize = 3;

/// A step within a function that no normal run has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewOrder {
    /// Whether normal runs have other steps in that function, each its own.
    wavers: bool,
    function: FunctionKey,
    step: Step,
    /// Who has it, in the order of their names.
    traces: Vec<TraceName>,
}

/// Those of the last run, those in functions of which normal runs all have the same steps first. What stands outside of all functions has
/// no place, and is left out. O(steps of all runs).
pub(super) fn new_orders(trees: &Trees, objects: &Drafted, steps: &[Steps]) -> Vec<NewOrder> {
    let Some((last, normals)) = objects.split_last() else {
        return Vec::new();
    };
    let of = |behaviour: usize| {
        let both = [&steps[behaviour].waiting, &steps[behaviour].others];
        let placed = both.into_iter().flat_map(FxHashMap::keys);
        placed.filter_map(|(function, step)| Some(((*function)?, *step)))
    };
    let mut runs_with: FxHashMap<(FunctionKey, Step), usize> = FxHashMap::default();
    for run in normals {
        let behaviours: FxHashSet<usize> = run.iter().map(|(_, behaviour)| *behaviour).collect();
        let of_run: FxHashSet<_> = behaviours.into_iter().flat_map(of).collect();
        for step in of_run {
            *runs_with.entry(step).or_default() += 1;
        }
    }
    let wavering: FxHashSet<FunctionKey> = (runs_with.iter())
        .filter(|(_, runs)| **runs < normals.len())
        .map(|((function, _), _)| *function)
        .collect();
    let mut found: BTreeMap<(bool, FunctionKey, Step), Vec<TraceName>> = BTreeMap::new();
    for (trace, (_, behaviour)) in trees.last().traces.iter().zip(last) {
        for (function, step) in of(*behaviour).filter(|it| !runs_with.contains_key(it)) {
            let key = (wavering.contains(&function), function, step);
            found.entry(key).or_default().push(trace.name);
        }
    }
    let each = found.into_iter();
    each.map(|((wavers, function, step), traces)| NewOrder {
        wavers,
        function,
        step,
        traces,
    })
    .collect()
}

/// A sentence for each, up to so many.
pub(super) fn told(orders: &[NewOrder], trees: &Trees) -> Vec<String> {
    let mut told: Vec<String> = (orders.iter().take(TOLD))
        .map(|order| order.told(trees))
        .collect();
    let more = orders.len().saturating_sub(TOLD);
    if more > 0 {
        told.push(format!(
            "{more} more steps from one call to the next are in no normal run, and no difference"
        ));
    }
    told
}

impl NewOrder {
    /// `trace 0.3 calls put first of all in work at queue.c:41, which no normal run does; ...`
    fn told(&self, trees: &Trees) -> String {
        let name = |function: FunctionKey| trees.forest.function(function).name.as_str();
        let does = match self.step {
            (Some(after), Some(next)) => {
                format!("calls {} right after {}", name(next), name(after))
            }
            (None, Some(next)) => format!("calls {} first of all", name(next)),
            (Some(after), None) => format!("returns right after {}", name(after)),
            (None, None) => "returns without any call".to_owned(),
        };
        let (after, next) = self.step;
        let place = next.or(after).map_or_else(String::new, |callee| {
            place(&lines(trees, self.function, callee))
        });
        let who = match self.traces.as_slice() {
            [] => String::new(),
            [one] => format!("trace {one}"),
            [one, others @ ..] => format!("trace {one} (and {} more)", others.len()),
        };
        let why = match self.wavers {
            true => "normal runs waver in the order of calls there, so that this may be timing"
                .to_owned(),
            false => format!(
                "{} normal runs are too few to tell it from timing",
                trees.normals().len()
            ),
        };
        let within = brief(name(self.function));
        format!("{who} {does} in {within}{place}, which no normal run does; {why}")
    }
}
