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

use crate::normality::tree_edges;
use crate::sequence::Trees;
use crate::timing::{Timing, called};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId, Trace};
use lockstep_trace::{ProcessName, ThreadName};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A process, and in which function its threads began; none where that was not recorded.
type Team = (ProcessName, Option<FunctionKey>);

/// The members of a team in a run: their places among its traces.
type Members = Vec<usize>;

/// Who calls whom; none: at the root of a trace.
type Edge = (Option<FunctionKey>, FunctionKey);

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
        let is_member = |trace: &Trace| !matches!(trace.name.thread, ThreadName::Main(0));
        let mut found = Self::default();
        let Some(((last, last_roots), normals)) = (trees.runs.last().zip(roots.last()))
            .map(|last| (last, trees.runs.iter().zip(roots).take(roots.len() - 1)))
        else {
            return found;
        };
        // Nobody shares anything alone.
        if last.iter().filter(|it| is_member(it)).nth(1).is_none() {
            return found;
        }
        let forest = &trees.forest;
        let all: Vec<NodeId> = roots.iter().flatten().copied().collect();
        let timing = Timing::of(forest, &all);
        let each = |(traces, roots): (&'_ Vec<Trace>, &'_ Vec<NodeId>)| -> Vec<_> {
            let each = traces.iter().zip(roots).enumerate();
            each.filter(|(_, (trace, _))| is_member(trace))
                .map(|(place, (trace, root))| (place, trace.name.process, called(forest, *root)))
                .collect()
        };
        // What stands beside other calls at some root is not what a thread begins in.
        let mut several: FxHashSet<(ProcessName, FunctionKey)> = FxHashSet::default();
        for (_, process, called) in (trees.runs.iter().zip(roots)).flat_map(each) {
            if called.len() > 1 {
                several.extend(called.into_iter().map(|it| (process, it)));
            }
        }
        let members = |run| {
            let mut teams: BTreeMap<Team, Members> = BTreeMap::new();
            for (place, process, called) in each(run) {
                let began = match called.as_slice() {
                    [one] if !timing.is_timed(*one) => Some(*one),
                    _ => None,
                };
                let began = began.filter(|it| !several.contains(&(process, *it)));
                teams.entry((process, began)).or_default().push(place);
            }
            teams
        };
        let before: Vec<_> = (normals.clone())
            .map(|it| (members(it), it.1.as_slice()))
            .collect();
        let mut counted: FxHashMap<NodeId, Edges> = FxHashMap::default();
        for (team, places) in members((last, last_roots)) {
            let now = to_roots(&places, last_roots);
            let before: Vec<Vec<NodeId>> = (before.iter())
                .filter_map(|(teams, roots)| Some(to_roots(teams.get(&team)?, roots)))
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
                    found.open.extend(&places);
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
                    .extend(places.into_iter().map(|place| (place, own.clone())));
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

/// Whether the main threads of all processes share work, as a master and its workers do: the normal runs divide it in other ways, and
/// what all of them do in sum is in the last run what it is in those. `roots` has those of each run, the last one last.
///
/// They stay compared each with its own past; that one has more or less of the work is no more than chance. O(nodes below the roots).
pub(crate) fn processes_share(trees: &Trees, roots: &[Vec<NodeId>], timing: &Timing) -> bool {
    let mut counted: FxHashMap<NodeId, Edges> = FxHashMap::default();
    let mut each: Vec<BTreeMap<ProcessName, NodeId>> = Vec::new();
    for (traces, roots) in trees.runs.iter().zip(roots) {
        let main = traces.iter().zip(roots);
        let main = main.filter(|(trace, _)| trace.name.thread == ThreadName::Main(0));
        each.push(
            main.map(|(trace, root)| (trace.name.process, *root))
                .collect(),
        );
    }
    let Some((last, normals)) = each.split_last() else {
        return false;
    };
    let is_same = |run: &BTreeMap<ProcessName, NodeId>| run.keys().eq(last.keys());
    if last.len() < 3 || !normals.iter().all(is_same) {
        return false;
    }
    for root in each.iter().flat_map(BTreeMap::values) {
        let edges = || work(&trees.forest, *root, timing);
        counted.entry(*root).or_insert_with(edges);
    }
    let wavers = |process: &ProcessName| {
        let mut edges = normals.iter().map(|run| &counted[&run[process]]);
        let first = edges.next();
        edges.any(|it| Some(it) != first)
    };
    if !last.keys().any(wavers) {
        return false;
    }
    let sum = |run: &BTreeMap<ProcessName, NodeId>| {
        let mut sum = Edges::new();
        for (edge, times) in run.values().flat_map(|root| &counted[root]) {
            let sum = sum.entry(*edge).or_default();
            *sum = sum.saturating_add(*times);
        }
        sum
    };
    let normals: Vec<Edges> = normals.iter().map(sum).collect();
    is_within(&normals, &sum(last), 0)
}

fn to_roots(places: &Members, roots: &[NodeId]) -> Vec<NodeId> {
    places.iter().map(|place| roots[*place]).collect()
}

/// Who calls whom how often in a trace, without calls that depend on timing in themselves.
fn work(forest: &Forest, root: NodeId, timing: &Timing) -> Edges {
    let edges = tree_edges(forest, root, timing).into_iter();
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
        let function = |node: NodeId| match forest.node(node).label {
            Label::Call(call) => Some(call.function),
            _ => None,
        };
        let inner: Vec<NodeId> = frames.iter().map(at(place)).collect();
        let own = function(inner[0]);
        if own.is_none() || inner.iter().any(|it| function(*it) != own) {
            break;
        }
        found = own;
        frames = inner;
    }
    found
}
