//! Threads that share work by a queue of their own: who does what is a matter of timing, what they do together is not.
//!
//! A team are threads of one process that began in the same function. Where runs divide the work of a team in other ways, and what it
//! does in all stays the same, what one member does may be what any other does:
//!
//! ```text
//!  normal   0.1 worker( take solve^5 take )     faulty   0.1 worker( take solve^3 take )      solve: 8 calls in both
//!           0.2 worker( take solve^3 take )              0.2 worker( take solve^5 take )
//! ```
//!
//! Counted is who calls whom how often; not counted are calls that depend on timing in themselves: what waits, what is asked once more
//! after it, and what those call. Threads that each do their own part (thread 3 of a grid, say) do the same in every run, and stay
//! compared with their own past alone.

use super::timing::Timing;
use crate::calls::{Calls, Edge, called, function};
use crate::difftrace::trees::{RunTrees, Trees};
use lockstep_calltree::{Forest, FunctionKey, NodeId, Trace};
use lockstep_trace::{ProcessName, ThreadName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A process, and in which function its threads began; none where that was not recorded.
type Team = (ProcessName, Option<FunctionKey>);

/// The members of a team in a run: their places among its traces.
type Members = Vec<usize>;

/// How often that is.
type Edges = BTreeMap<Edge, u64>;

/// The teams of the last of some runs that share work as those of the others do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Teams {
    /// For each place of the last run in such a team, the roots of its members in the other runs.
    own: FxHashMap<usize, Vec<NodeId>>,
    /// The roots of all members in all runs.
    roots: FxHashSet<NodeId>,
    /// The processes that they are of.
    processes: FxHashSet<ProcessName>,
    /// The functions in which they take one piece of work after another.
    loops: FxHashSet<FunctionKey>,
    /// The places of the last run whose members were still at work when the program ended, as those of normal runs were.
    open: FxHashSet<usize>,
}

impl Teams {
    /// Of runs with these traces and, for each of them, this root. O(nodes below roots of teams).
    pub(crate) fn of(trees: &Trees, roots: &[Vec<NodeId>]) -> Self {
        let mut found = Self::default();
        // Nobody shares anything alone.
        let mut threads = trees.last().traces.iter().filter(|it| is_member(it));
        if threads.nth(1).is_none() {
            return found;
        }
        let forest = &trees.forest;
        let timing = Timing::of(forest, &roots.concat());
        let teams = members(trees, roots, &timing);
        let (Some((last, normals)), Some(last_roots)) = (teams.split_last(), roots.last()) else {
            return found;
        };
        let mut counted: FxHashMap<NodeId, Edges> = FxHashMap::default();
        for (team, places) in last {
            let now = to_roots(places, last_roots);
            let before: Vec<Vec<NodeId>> = (normals.iter().zip(roots))
                .filter_map(|(teams, roots)| Some(to_roots(teams.get(team)?, roots)))
                .collect();
            if places.len() < 2 || before.is_empty() {
                continue;
            }
            let mut count = |root: &NodeId| {
                let edges = || work(forest, *root, &timing);
                counted.entry(*root).or_insert_with(edges).clone()
            };
            let each: Vec<Vec<Edges>> = (before.iter().chain([&now]))
                .map(|roots| roots.iter().map(&mut count).collect())
                .collect();
            let is_open = |root: &NodeId| !forest.open(*root).is_empty();
            let ends_open = |roots: &Vec<NodeId>| roots.iter().any(is_open);
            let all_open = before.iter().chain([&now]).all(ends_open);
            // Of what was broken off nobody knows whether it came to its last calls.
            let slack = if all_open { places.len() as u64 } else { 0 };
            // What takes a lock may be how members ask for work, and how they hand in what they did.
            let takes_no_lock = |(_, callee): &Edge| !timing.waits.contains(callee);
            if share(&each, slack, &|_| true) || share(&each, slack, &takes_no_lock) {
                if all_open {
                    found.open.extend(places);
                }
                let all = before.iter().chain([&now]).flatten();
                found
                    .loops
                    .extend(innermost(forest, all.copied().collect()));
                let own: Vec<NodeId> = before.into_iter().flatten().collect();
                found.roots.extend(own.iter().chain(&now));
                found.processes.insert(team.0);
                found
                    .own
                    .extend(places.iter().map(|place| (*place, own.clone())));
            }
        }
        found
    }

    /// The normal traces of the team that a trace of the last run is in, given by its place.
    pub(crate) fn own(&self, place: usize) -> Option<&[NodeId]> {
        self.own.get(&place).map(Vec::as_slice)
    }

    /// Whether none was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// Whether members take one piece of work after another in this function.
    pub(crate) fn takes_work(&self, function: FunctionKey) -> bool {
        self.loops.contains(&function)
    }

    /// Whether it is timing where the trace at this place of the last run was broken off.
    pub(crate) fn is_broken_off(&self, place: usize) -> bool {
        self.open.contains(&place)
    }

    /// Whether there is one in a process. Its other threads hand over the work and take the results, as far as these are there.
    pub(crate) fn is_in(&self, process: ProcessName) -> bool {
        self.processes.contains(&process)
    }

    /// Whether this is the root of a member, in whatever run.
    pub(crate) fn has(&self, root: NodeId) -> bool {
        self.roots.contains(&root)
    }
}

fn is_member(trace: &Trace) -> bool {
    trace.name.thread != ThreadName::Main(0)
}

/// The teams of each run.
fn members(trees: &Trees, roots: &[Vec<NodeId>], timing: &Timing) -> Vec<BTreeMap<Team, Members>> {
    let each = |(run, roots): (&RunTrees, &Vec<NodeId>)| -> Vec<_> {
        let each = run.traces.iter().zip(roots).enumerate();
        each.filter(|(_, (trace, _))| is_member(trace))
            .map(|(place, (trace, root))| (place, trace.name.process, called(&trees.forest, *root)))
            .collect()
    };
    let runs: Vec<Vec<_>> = trees.runs.iter().zip(roots).map(each).collect();
    // What stands beside other calls at some root is not what a thread begins in.
    let mut several: FxHashSet<(ProcessName, FunctionKey)> = FxHashSet::default();
    for (_, process, called) in runs.iter().flatten().filter(|it| it.2.len() > 1) {
        several.extend(called.iter().map(|it| (*process, *it)));
    }
    let teams = runs.into_iter().map(|run| {
        let mut teams: BTreeMap<Team, Members> = BTreeMap::new();
        for (place, process, called) in run {
            let began = match called.as_slice() {
                [one] if !timing.is_timed(*one) => Some(*one),
                _ => None,
            };
            let began = began.filter(|it| !several.contains(&(process, *it)));
            teams.entry((process, began)).or_default().push(place);
        }
        teams
    });
    teams.collect()
}

/// Whether the main threads of all processes share work, as a master and its workers do: the normal runs divide it in other ways, and
/// what all of them do in sum is in the last run what it is in those. `roots` has those of each run, the last one last.
///
/// They stay compared each with its own past; that one has more or less of the work is no more than chance. O(nodes below the roots).
pub(crate) fn processes_share(trees: &Trees, roots: &[Vec<NodeId>], timing: &Timing) -> bool {
    let main = |(run, roots): (&RunTrees, &Vec<NodeId>)| {
        let each = run.traces.iter().zip(roots);
        let main = each.filter(|(trace, _)| !is_member(trace));
        main.map(|(trace, root)| (trace.name.process, *root))
            .collect::<BTreeMap<ProcessName, NodeId>>()
    };
    let runs: Vec<_> = trees.runs.iter().zip(roots).map(main).collect();
    let is_same = runs.windows(2).all(|it| it[0].keys().eq(it[1].keys()));
    if runs.first().is_none_or(|it| it.len() < 3) || !is_same {
        return false;
    }
    let mut counted: FxHashMap<NodeId, Edges> = FxHashMap::default();
    let mut count = |root: &NodeId| {
        let edges = || work(&trees.forest, *root, timing);
        counted.entry(*root).or_insert_with(edges).clone()
    };
    let each: Vec<Vec<Edges>> = (runs.iter())
        .map(|run| run.values().map(&mut count).collect())
        .collect();
    let normals = each.split_last().map_or(&[][..], |(_, normals)| normals);
    normals.windows(2).any(|it| it[0] != it[1]) && share(&each, 0, &|_| true)
}

fn to_roots(places: &Members, roots: &[NodeId]) -> Vec<NodeId> {
    places.iter().map(|place| roots[*place]).collect()
}

/// Who calls whom how often in a trace, without calls that depend on timing in themselves.
fn work(forest: &Forest, root: NodeId, timing: &Timing) -> Edges {
    let edges = Calls::new(forest, root, &|it| timing.is_pause(forest, it)).edges;
    let edges = edges.into_iter();
    edges
        .filter(|((caller, callee), _)| timing.is_work(*caller, *callee))
        .collect()
}

/// Whether the last of some runs of a team does in all what the others do, and not all of them divide it in the same way.
/// `each`: the calls of every member of every run.
/// Of each call `slack` more or less make no difference.
fn share(each: &[Vec<Edges>], slack: u64, counts: &dyn Fn(&Edge) -> bool) -> bool {
    let Some((last, normals)) = each.split_last() else {
        return false;
    };
    if normals.iter().all(|members| members == last) {
        return false;
    }
    let normals: Vec<Edges> = normals.iter().map(|it| together(it, counts)).collect();
    let last = together(last, counts);
    !last.is_empty() && is_within(&normals, &last, slack)
}

/// Whether every call is made as often as in some of the normal runs, between them, or so many times more or less.
fn is_within(normals: &[Edges], last: &Edges, slack: u64) -> bool {
    let mut keys = normals.iter().chain([last]).flat_map(BTreeMap::keys);
    keys.all(|edge| {
        let times = |edges: &Edges| edges.get(edge).copied().unwrap_or(0);
        let now = times(last);
        let least = normals.iter().map(times).min();
        let most = normals.iter().map(times).max();
        least.is_some_and(|it| it <= now.saturating_add(slack))
            && most.is_some_and(|it| now <= it.saturating_add(slack))
    })
}

fn together(members: &[Edges], counts: &dyn Fn(&Edge) -> bool) -> Edges {
    let mut sum = Edges::new();
    for (edge, times) in members.iter().flatten().filter(|(edge, _)| counts(edge)) {
        let sum = sum.entry(*edge).or_default();
        *sum = sum.saturating_add(*times);
    }
    sum
}

/// The innermost function within which all that differs in these traces lies: `loop` of `_M_run( invoke( forward loop( ...`.
fn innermost(forest: &Forest, mut frames: Vec<NodeId>) -> Option<FunctionKey> {
    let mut found = None;
    while let Some((first, others)) = frames.split_first() {
        let items = |frame: &NodeId| forest.node(*frame).items;
        let count = items(first).len();
        if others.iter().any(|it| items(it).len() != count) {
            break;
        }
        let at = |place: usize| move |frame: &NodeId| items(frame)[place].node;
        let differs = |place: &usize| {
            let first = at(*place)(first);
            let mut others = others.iter().map(at(*place));
            others.any(|it| it != first && !forest.same_shape(it, first))
        };
        let mut differing = (0..count).filter(differs);
        let (Some(place), None) = (differing.next(), differing.next()) else {
            break;
        };
        let inner: Vec<NodeId> = frames.iter().map(at(place)).collect();
        let own = function(forest, inner[0]);
        if own.is_none() || inner.iter().any(|it| function(forest, *it) != own) {
            break;
        }
        found = own;
        frames = inner;
    }
    found
}
