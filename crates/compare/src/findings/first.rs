//! Where each trace leaves the normal runs, with what all traces have in common taken away first.
//!
//! A faulty run is often started otherwise (an option that turns the fault on, another input), and then
//! every trace differs from the first line on, the culprit no more than the others. The papers take the
//! similarity that all traces share out of a comparison; here it is the divergence that they share:
//! while all traces diverge in the same way, the call that makes the difference is left out of all trees
//! and the next divergence is looked for.

use super::finding::{Finding, Parted, Reason, Stuck};
use crate::difftrace::sweep;
use crate::difftrace::trees::Trees;
use crate::structure::explained::{Explained, Found};
use crate::{Divergence, Options};
use lockstep_trace::TraceName;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// How many calls are left out at most.
const ROUNDS: usize = 16;

/// A divergence that was left out of the search.
pub(crate) struct Common {
    /// As the first of the traces has it.
    pub(crate) divergence: Divergence,
    /// How many have it.
    pub(crate) traces: usize,
    /// The function that was left out of the search for it.
    pub(crate) left_out: String,
}

/// Where the last run of `trees` leaves all the others, trace by trace, in the order of their names.
/// And what all of them do otherwise, one divergence for each call that was left out.
pub(crate) fn findings(trees: &mut Trees, options: &Options) -> (Vec<Finding>, Vec<Common>) {
    let mut search = Search::new(trees, options);
    for _ in 0..ROUNDS {
        if !search.leave_out(trees, options) {
            break;
        }
    }
    let Search {
        now,
        mut shared,
        mut commons,
        ..
    } = search;
    let left_out: Vec<String> = commons.iter().map(|it| it.left_out.clone()).collect();
    let mpi = options.sweep.then(|| {
        let lens = sweep::mpi(options);
        let options = Options {
            sweep: false,
            filter: lens.filter,
            keep_returns: lens.keep_returns,
            keep_plt: lens.keep_plt,
            ..options.clone()
        };
        Explained::new(trees, &options, &left_out)
    });
    let mut findings = Vec::new();
    for (place, found) in now.found.into_iter().enumerate() {
        let Some(found) = found else { continue };
        let residue = found.structure().is_some();
        let (found, is_shared) = match shared.remove(&found.normal.name) {
            Some(shared) if !residue => (shared, true),
            _ => (found, false),
        };
        let by_mpi = mpi.as_ref().and_then(|it| it.found[place].as_ref()?.any());
        findings.extend(finding(trees, place, &found, by_mpi, is_shared));
    }
    for Common { divergence, .. } in &mut commons {
        locate(divergence, trees);
        divergence.event = (trees.last()).of_trace(divergence.trace, divergence.event);
        divergence.tell_apart(trees.last().run);
    }
    (findings, commons)
}

/// What is explained once some calls are left out.
struct Search {
    now: Explained,
    /// Where traces part by what is left out.
    shared: BTreeMap<TraceName, Found>,
    commons: Vec<Common>,
    /// How often functions are called in all traces.
    calls: FxHashMap<String, u64>,
}

impl Search {
    fn new(trees: &mut Trees, options: &Options) -> Self {
        let mut calls: FxHashMap<String, u64> = FxHashMap::default();
        for function in trees.forest.calls(&trees.roots()) {
            *calls.entry(function.name).or_default() += function.calls;
        }
        Self {
            now: Explained::new(trees, options, &[]),
            shared: BTreeMap::new(),
            commons: Vec::new(),
            calls,
        }
    }

    /// Leaves out the call by which all traces of a kind part, if more is explained without it.
    fn leave_out(&mut self, trees: &mut Trees, options: &Options) -> bool {
        // What the first kind of threads shares may be no call that can be left out; another's may.
        let mut commons = self.now.commons(trees.last().run).into_iter();
        let helped = commons.find_map(|it| {
            let (next, left_out) = self.without(trees, options, &it)?;
            Some((it, next, left_out))
        });
        let Some((divergence, next, left_out)) = helped else {
            return false;
        };
        let mut traces = 0;
        for found in std::mem::replace(&mut self.now, next)
            .found
            .into_iter()
            .flatten()
        {
            if found.structure().is_some_and(|it| it.is_alike(&divergence)) {
                traces += 1;
                self.shared.entry(found.normal.name).or_insert(found);
            }
        }
        self.commons.push(Common {
            divergence,
            traces,
            left_out,
        });
        true
    }

    /// What is explained without the call that a divergence is about, and which that is. It may be more than was, or less: that which
    /// is made less often is not what the program is about.
    fn without(
        &self,
        trees: &mut Trees,
        options: &Options,
        common: &Divergence,
    ) -> Option<(Explained, String)> {
        let left_out: Vec<String> = self.commons.iter().map(|it| it.left_out.clone()).collect();
        let candidates = [&common.faulty, &common.normal].into_iter().flatten();
        candidates
            .filter(|name| *name != "return" && !left_out.contains(name))
            .map(|name| {
                let names = [left_out.as_slice(), std::slice::from_ref(name)].concat();
                (Explained::new(trees, options, &names), name)
            })
            .filter(|(next, _)| next.events > self.now.events)
            .max_by_key(|(next, name)| {
                let calls = self.calls.get(*name).copied().unwrap_or(0);
                (next.is_all(), Reverse(calls), next.events)
            })
            .map(|(next, name)| (next, name.clone()))
    }
}

/// A trace of the last run, given by its place, that leaves the normal ones; `by_mpi` is where it does so under the MPI filter.
fn finding(
    trees: &Trees,
    place: usize,
    found: &Found,
    by_mpi: Option<&Divergence>,
    is_shared: bool,
) -> Option<Finding> {
    let mut divergence = found.any()?.clone();
    locate(&mut divergence, trees);
    let name = found.normal.name;
    let last = trees.last();
    // What is open at the end of a trace is not at the end of a part of it.
    let ends = last.cut(name).is_some_and(|cut| cut.ends);
    let open = last.run.trace(name).filter(|_| !ends);
    let open = open.and_then(|thread| thread.open.last());
    let events = trees.forest.node(found.normal.root).events.max(1);
    let reason = Reason::of(divergence.kind);
    let parted = Parted {
        by_mpi: by_mpi
            .filter(|it| is_within(trees, place, it.event, divergence.event))
            .cloned(),
        stuck: open.map(|frame| Stuck::of(last.run, frame)),
        progress: divergence.normal_event as f64 / events as f64,
        nearest: found.run,
        divergence,
    };
    Some(Finding {
        shared: is_shared,
        parted: Some(parted),
        ..Finding::new(name, reason)
    })
}

/// Whether an event of a trace of the last run, given by its place, is a call, or lies within that call.
fn is_within(trees: &Trees, place: usize, event: u64, call: u64) -> bool {
    let root = trees.last().traces[place].root;
    let stack = |event| Some(trees.forest.position(root, event)?.stack);
    match (stack(call), stack(event)) {
        (Some(call_stack), Some(stack)) => call <= event && stack.starts_with(&call_stack),
        // The end of a trace is no event.
        (None, None) => call == event,
        _ => false,
    }
}

/// Looks up the line of a divergence in the last run, or where the first one makes the call that is missed.
fn locate(divergence: &mut Divergence, trees: &Trees) {
    let last = trees.last();
    if let Some(thread) = last.run.trace(divergence.trace) {
        divergence.locate(last.run, &last.functions, thread);
    }
    if divergence.source.is_empty()
        && let Some(first) = trees.runs.first()
    {
        divergence.locate_missed(first.run, &first.functions);
    }
}
