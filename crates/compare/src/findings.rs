//! Where each trace leaves the normal runs, with what all traces have in common taken away first.
//!
//! A faulty run is often started otherwise (an option that turns the fault on, another input), and then
//! every trace differs from the first line on, the culprit no more than the others. The papers take the
//! similarity that all traces share out of a comparison; here it is the divergence that they share:
//! while all traces diverge in the same way, the call that makes the difference is left out of all trees
//! and the next divergence is looked for.

use crate::divergence::usual::{Accepted, Usual};
use crate::divergence::{Divergences, Side, beside};
use crate::sequence::{Lens, Trees};
use crate::suspect::{Finding, Reason, Stuck};
use crate::teams::Teams;
use crate::{Divergence, DivergenceKind, Options, sweep};
use lockstep_calltree::{Forest, NodeId, Projection, Trace};
use lockstep_loops::{BodyId, Names};
use lockstep_trace::{ProcessName, Run, ThreadName, TraceName};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// How many calls are left out at most.
const ROUNDS: usize = 16;

/// What reads arguments, environment and settings. Where a trace has nobody to share such a divergence
/// with (the main thread of a single process), it is still no sign of a fault while there is another.
static SETTINGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(__)?(isoc\d+_)?(str|wcs|ato[ilfq]|sscanf)|getenv|getopt|getarg|get_command_argument|compare_string",
    )
    .ok()
});

/// Where the last run of `trees` leaves all the others, trace by trace, in the order of their names.
/// And what all of them do otherwise, one divergence for each call that was left out.
pub(crate) fn findings(
    trees: &mut Trees,
    runs: &[&Run],
    options: &Options,
) -> (Vec<Finding>, Vec<Common>) {
    let mut left_out: Vec<String> = Vec::new();
    let mut shared: BTreeMap<TraceName, Found> = BTreeMap::new();
    let mut commons = Vec::new();
    let mut now = Explained::new(trees, options, &left_out);
    let programs = Programs::of(runs);
    let roots = trees.roots();
    let mut calls: FxHashMap<String, u64> = FxHashMap::default();
    for function in trees.forest.calls(&roots) {
        *calls.entry(function.name).or_default() += function.calls;
    }
    for _ in 0..ROUNDS {
        // What the first kind of threads shares may be no call that can be left out; another's may.
        let helped = now.commons(&programs).into_iter().find_map(|common| {
            // The call may be more than was, or less: that which is made less often is not what the program is about.
            let candidates = [common.faulty.clone(), common.normal.clone()];
            let next = candidates
                .into_iter()
                .flatten()
                .filter(|name| name != "return" && !left_out.contains(name))
                .map(|name| {
                    let calls = calls.get(&name).copied().unwrap_or(0);
                    let names: Vec<String> = left_out.iter().cloned().chain([name]).collect();
                    (Explained::new(trees, options, &names), names, calls)
                })
                .filter(|(next, ..)| next.events > now.events)
                .max_by_key(|(next, _, calls)| (next.is_all(), Reverse(*calls), next.events));
            let (next, names, _) = next?;
            Some((common, next, names))
        });
        let Some((common, next, names)) = helped else {
            break;
        };
        let mut traces = 0;
        for found in now.found.into_iter().flatten() {
            if found
                .structure()
                .is_some_and(|divergence| key(divergence) == key(&common))
            {
                traces += 1;
                shared.entry(found.normal.name).or_insert(found);
            }
        }
        commons.push(Common {
            divergence: common,
            traces,
            left_out: names.last().cloned().unwrap_or_default(),
        });
        (now, left_out) = (next, names);
    }
    let mpi = options.sweep.then(|| {
        let mut options = options.clone();
        let lens = sweep::mpi(&options);
        (options.sweep, options.filter) = (false, lens.filter);
        (options.keep_returns, options.keep_plt) = (lens.keep_returns, lens.keep_plt);
        Explained::new(trees, &options, &left_out)
    });
    let mut findings = Vec::new();
    for (place, found) in now.found.into_iter().enumerate() {
        let Some(found) = found else { continue };
        let name = found.normal.name;
        let residue = found.structure().is_some();
        let (found, is_shared) = match shared.remove(&name) {
            Some(shared) if !residue => (shared, true),
            _ => (found, false),
        };
        let Some(mut divergence) = found.any().cloned() else {
            continue;
        };
        locate(&mut divergence, trees, runs);
        let by_mpi = mpi
            .as_ref()
            .and_then(|mpi| mpi.found[place].as_ref()?.any())
            .filter(|by_mpi| is_within(trees, place, by_mpi.event, divergence.event))
            .cloned();
        let last = trees.runs.len() - 1;
        let thread = runs.last().and_then(|run| run.trace(name));
        // What is open at the end of a trace is not at the end of a part of it.
        let ends = trees.cut(last, name).is_some_and(|cut| cut.ends);
        let stuck = thread
            .filter(|_| !ends)
            .and_then(|thread| Some(Stuck::of(runs.last()?, thread.open.last()?)));
        let events = trees.forest.node(found.normal.root).events.max(1);
        findings.push(Finding {
            changes: Vec::new(),
            shared: is_shared,
            by_mpi,
            stuck,
            progress: divergence.normal_event as f64 / events as f64,
            nearest: found.run,
            ..Finding::new(name, Reason::of(divergence.kind), Some(divergence))
        });
    }
    for Common { divergence, .. } in &mut commons {
        locate(divergence, trees, runs);
        if let Some(cut) = trees.cut(trees.runs.len() - 1, divergence.trace) {
            divergence.event = cut.of_trace(divergence.event);
        }
        if let Some(run) = runs.last() {
            divergence.tell_apart(run);
        }
    }
    (findings, commons)
}

/// Whether an event of a trace of the last run, given by its place, is a call, or lies within that call.
fn is_within(trees: &Trees, place: usize, event: u64, call: u64) -> bool {
    let root = trees.runs.last().map(|run| run[place].root);
    let stack = |event| Some(trees.forest.position(root?, event)?.stack);
    match (stack(call), stack(event)) {
        (Some(call_stack), Some(stack)) => call <= event && stack.starts_with(&call_stack),
        // The end of a trace is no event.
        (None, None) => call == event,
        _ => false,
    }
}

/// Looks up the line of a divergence in the last run.
fn locate(divergence: &mut Divergence, trees: &Trees, runs: &[&Run]) {
    if let (Some(run), Some(functions)) = (runs.last(), trees.functions.last())
        && let Some(thread) = run.trace(divergence.trace)
    {
        divergence.locate(run, functions, thread);
    }
    if let (true, Some(run), Some(functions)) = (
        divergence.source.is_empty(),
        runs.first(),
        trees.functions.first(),
    ) {
        divergence.locate_missed(run, functions);
    }
}

/// A divergence that was left out of the search.
pub(crate) struct Common {
    /// As the first of the traces has it.
    pub(crate) divergence: Divergence,
    /// How many have it.
    pub(crate) traces: usize,
    /// The function that was left out of the search for it.
    pub(crate) left_out: String,
}

/// Traces that may do the same: those of one thread, in processes of one program. Whoever started these runs another one.
type Kind<'a> = (ThreadName, &'a str);

/// The program of each process of the last run.
struct Programs<'a>(FxHashMap<ProcessName, &'a str>);

impl<'a> Programs<'a> {
    fn of(runs: &[&'a Run]) -> Self {
        let processes = runs.last().map_or(&[][..], |it| it.processes.as_slice());
        Self(
            processes
                .iter()
                .map(|it| (it.name, it.program.as_str()))
                .collect(),
        )
    }

    fn kind(&self, trace: TraceName) -> Kind<'a> {
        let program = self.0.get(&trace.process).copied();
        (trace.thread, program.unwrap_or_default())
    }
}

/// How a trace differs from the normal trace that explains most of it.
struct Found {
    divergences: Divergences,
    normal: Trace,
    /// The normal run that it is of.
    run: usize,
}

impl Found {
    fn structure(&self) -> Option<&Divergence> {
        self.divergences.structure.as_ref()
    }

    /// The first difference of any kind.
    fn any(&self) -> Option<&Divergence> {
        self.structure().or(self.divergences.counts.as_ref())
    }

    /// Whether it is explained further than by another normal trace.
    fn goes_further(&self, other: &Self) -> bool {
        let reach = |found: &Divergences| match (&found.structure, &found.counts) {
            (Some(divergence), _) => (0, divergence.event),
            (None, Some(divergence)) => (1, divergence.event),
            (None, None) => (2, 0),
        };
        reach(&self.divergences) > reach(&other.divergences)
    }
}

/// All traces of the last run, each explained as far as the normal runs go, under one filter.
pub(crate) struct Explained {
    /// One for each trace; `None` where no normal run has it.
    found: Vec<Option<Found>>,
    /// Events of both runs' traces that are explained, all in all.
    pub(crate) events: u64,
}

impl Explained {
    /// In a sweep whole traces are looked at, else what the given filter leaves of them; without the
    /// functions of these names.
    pub(crate) fn new(trees: &mut Trees, options: &Options, left_out: &[String]) -> Self {
        let lens = (!options.sweep).then(|| Lens::of(options));
        let mut projection = trees.way(lens.as_ref(), left_out);
        let forest = &mut trees.forest;
        let mut side = |trace: &Trace| Side::projected(forest, trace.root, &mut projection);
        let sides: Vec<Vec<Side>> = trees
            .runs
            .iter()
            .map(|run| run.iter().map(&mut side).collect())
            .collect();
        let mut names = Names::new();
        for side in sides.iter().flatten() {
            trees.forest.name_loops(side.root, &mut names);
        }
        let normals = sides.split_last().map_or(&[][..], |(_, normals)| normals);
        let roots: Vec<NodeId> = normals.iter().flatten().map(|side| side.root).collect();
        let all: Vec<Vec<NodeId>> = (sides.iter())
            .map(|run| run.iter().map(|side| side.root).collect())
            .collect();
        let usual = Usual::of(&trees.forest, &roots, Teams::of(trees, &all));
        let places = 0..trees.runs.last().map_or(0, Vec::len);
        let mut found = places
            .map(|place| nearest(trees, &sides, place, &mut projection, (&names, &usual)))
            .collect::<Vec<Option<Found>>>();
        tell_loops(&trees.forest, &sides, &mut found);
        let events = |root: NodeId| trees.forest.node(root).events + 1;
        let last = trees.runs.last().map_or(&[][..], Vec::as_slice);
        let explained = found.iter().zip(last).filter_map(|(found, faulty)| {
            let found = found.as_ref()?;
            Some(match found.structure() {
                Some(divergence) => divergence.normal_event + divergence.event,
                None => events(found.normal.root) + events(faulty.root),
            })
        });
        Self {
            events: explained.sum(),
            found,
        }
    }

    /// Whether no trace differs in structure.
    pub(crate) fn is_all(&self) -> bool {
        self.structures().next().is_none()
    }

    /// The first difference of structure of each trace that has one.
    pub(crate) fn structures(&self) -> impl Iterator<Item = &Divergence> {
        self.found.iter().flatten().filter_map(Found::structure)
    }

    /// Divergences that all traces of a kind (the main threads of one program, say) have in common, or that come from
    /// other settings: one a kind at most.
    fn commons(&self, programs: &Programs<'_>) -> Vec<Divergence> {
        let mut kinds: FxHashMap<Kind<'_>, Vec<Option<&Divergence>>> = FxHashMap::default();
        for found in self.found.iter().flatten() {
            let divergence = found.structure().filter(|divergence| {
                matches!(
                    divergence.kind,
                    DivergenceKind::OtherCall | DivergenceKind::GoesOn
                )
            });
            kinds
                .entry(programs.kind(found.normal.name))
                .or_default()
                .push(divergence);
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by_key(|(kind, _)| *kind);
        let is_setting = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or_default();
            (SETTINGS.as_ref()).is_some_and(|settings| settings.is_match(name))
        };
        let of_kind = |(_, divergences): &(_, Vec<Option<&Divergence>>)| {
            let first = divergences.first().copied().flatten()?;
            let alone = divergences.len() == 1;
            let all = divergences
                .iter()
                .all(|other| other.is_some_and(|other| key(other) == key(first)));
            let sets = is_setting(&first.faulty) || is_setting(&first.normal);
            (all && (!alone || sets)).then(|| first.clone())
        };
        kinds.iter().filter_map(of_kind).collect()
    }
}

/// Says of the loops around divergences what they call. O(nodes), if there are any.
fn tell_loops(forest: &Forest, sides: &[Vec<Side>], found: &mut [Option<Found>]) {
    let in_loops = |it: &&mut Divergence| !it.bodies().is_empty();
    let divergences = found.iter_mut().flatten().flat_map(|found| {
        let Divergences { structure, counts } = &mut found.divergences;
        [structure, counts].into_iter().flatten()
    });
    let told: Vec<&mut Divergence> = divergences.filter(in_loops).collect();
    if told.is_empty() {
        return;
    }
    let roots: Vec<NodeId> = sides.iter().flatten().map(|it| it.root).collect();
    let mut examples: FxHashMap<BodyId, NodeId> = FxHashMap::default();
    let mut seen: FxHashSet<NodeId> = FxHashSet::default();
    let mut open = roots;
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            if let Some(body) = forest.body(id) {
                examples.entry(body).or_insert(id);
            }
            open.extend(forest.node(id).items.iter().map(|item| item.node));
        }
    }
    for divergence in told {
        divergence.tell_loops(forest, &examples);
    }
}

/// What makes two divergences the same one in two traces.
fn key(divergence: &Divergence) -> (&[String], Option<&str>, Option<&str>) {
    (
        &divergence.stack,
        divergence.normal.as_deref(),
        divergence.faulty.as_deref(),
    )
}

/// How a trace of the last run, given by its place, leaves the normal trace that explains most of it.
fn nearest(
    trees: &Trees,
    sides: &[Vec<Side>],
    place: usize,
    projection: &mut Projection,
    (names, usual): (&Names, &Usual),
) -> Option<Found> {
    let (last, normals) = trees.runs.split_last()?;
    let trace = last[place];
    let of_name = |(run, traces): (usize, &Vec<Trace>)| {
        let other = traces.binary_search_by_key(&trace.name, |it| it.name);
        Some(sides[run][other.ok()?].root)
    };
    // What another one of its team did is as good as what it did itself.
    let own: Vec<NodeId> = match usual.teams.own(place) {
        Some(own) => own.to_vec(),
        None => normals.iter().enumerate().filter_map(of_name).collect(),
    };
    let mut nearest: Option<Found> = None;
    for (run, traces) in normals.iter().enumerate() {
        let Ok(other) = traces.binary_search_by_key(&trace.name, |trace| trace.name) else {
            continue;
        };
        let (normal, faulty) = (sides[run][other], sides[normals.len()][place]);
        let found = Found {
            divergences: beside(
                &trees.forest,
                trace.name,
                (normal, faulty),
                Some(&mut *projection),
                names,
                Some(Accepted {
                    usual,
                    own: &own,
                    is_broken_off: usual.teams.is_broken_off(place),
                }),
            ),
            normal: traces[other],
            run,
        };
        let is_all = found.any().is_none();
        if nearest
            .as_ref()
            .is_none_or(|nearest| found.goes_further(nearest))
        {
            nearest = Some(found);
        }
        if is_all {
            break;
        }
    }
    nearest
}
