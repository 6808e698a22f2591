//! The traces of the last run, each explained as far as the normal runs go.

use super::divergence::usual::{Accepted, Usual};
use super::divergence::{Divergence, DivergenceKind, Divergences, Side, beside};
use super::teams::Teams;
use crate::Options;
use crate::calls::below;
use crate::difftrace::sequence::Lens;
use crate::difftrace::trees::Trees;
use lockstep_calltree::{Forest, NodeId, Projection, Trace};
use lockstep_loops::{BodyId, Names};
use lockstep_trace::{ProcessName, Run, ThreadName};
use regex::Regex;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What reads arguments, environment and settings. Where a trace has nobody to share such a divergence
/// with (the main thread of a single process), it is still no sign of a fault while there is another.
static SETTINGS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"^(__)?(isoc\d+_)?(str|wcs|ato[ilfq]|sscanf)|getenv|getopt|getarg|get_command_argument|compare_string",
    )
    .ok()
});

/// How a trace differs from the normal trace that explains most of it.
pub(crate) struct Found {
    divergences: Divergences,
    pub(crate) normal: Trace,
    /// The normal run that it is of.
    pub(crate) run: usize,
}

impl Found {
    /// The first difference of structure.
    pub(crate) fn structure(&self) -> Option<&Divergence> {
        self.divergences.structure.as_ref()
    }

    /// The first difference of any kind.
    pub(crate) fn any(&self) -> Option<&Divergence> {
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
    pub(crate) found: Vec<Option<Found>>,
    /// Events of both runs' traces that are explained, all in all.
    pub(crate) events: u64,
}

impl Explained {
    /// In a sweep whole traces are looked at, else what the given filter leaves of them; without the
    /// functions of these names.
    pub(crate) fn new(trees: &mut Trees, options: &Options, left_out: &[String]) -> Self {
        let lens = (!options.sweep).then(|| Lens::of(options));
        let mut projection = trees.way(lens.as_ref(), left_out);
        let whole = trees.roots_of_runs();
        let roots = trees.projected(&mut projection);
        let each = whole.iter().zip(&roots).map(|(whole, roots)| {
            let sides = whole.iter().zip(roots);
            sides
                .map(|(whole, root)| Side {
                    whole: *whole,
                    root: *root,
                })
                .collect()
        });
        let sides: Vec<Vec<Side>> = each.collect();
        let mut names = Names::new();
        for root in roots.iter().flatten() {
            trees.forest.name_loops(*root, &mut names);
        }
        let normals = roots[..roots.len() - 1].concat();
        let usual = Usual::of(&trees.forest, &normals, Teams::of(trees, &roots));
        let last = &trees.last().traces;
        let mut found = (0..last.len())
            .map(|place| nearest(trees, &sides, place, &mut projection, (&names, &usual)))
            .collect::<Vec<Option<Found>>>();
        tell_loops(&trees.forest, roots.concat(), &mut found);
        let events = |root: NodeId| trees.forest.node(root).events + 1;
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
    pub(crate) fn commons(&self, run: &Run) -> Vec<Divergence> {
        let mut programs: FxHashMap<ProcessName, &str> = FxHashMap::default();
        for process in &run.processes {
            programs.insert(process.name, &process.program);
        }
        // Whoever started these processes runs another program.
        let mut kinds: BTreeMap<(ThreadName, &str), Vec<Option<&Divergence>>> = BTreeMap::new();
        for found in self.found.iter().flatten() {
            let name = found.normal.name;
            let program = programs.get(&name.process).copied().unwrap_or_default();
            let divergence = found
                .structure()
                .filter(|it| matches!(it.kind, DivergenceKind::OtherCall | DivergenceKind::GoesOn));
            kinds
                .entry((name.thread, program))
                .or_default()
                .push(divergence);
        }
        let is_setting = |name: &Option<String>| {
            let name = name.as_deref().unwrap_or_default();
            (SETTINGS.as_ref()).is_some_and(|settings| settings.is_match(name))
        };
        let of_kind = |divergences: &Vec<Option<&Divergence>>| {
            let first = divergences.first().copied().flatten()?;
            let all = (divergences.iter()).all(|it| it.is_some_and(|it| it.is_alike(first)));
            let sets = is_setting(&first.faulty) || is_setting(&first.normal);
            (all && (divergences.len() > 1 || sets)).then(|| first.clone())
        };
        kinds.values().filter_map(of_kind).collect()
    }
}

/// Says of the loops around divergences what they call. O(nodes), if there are any.
fn tell_loops(forest: &Forest, roots: Vec<NodeId>, found: &mut [Option<Found>]) {
    let in_loops = |it: &&mut Divergence| !it.bodies().is_empty();
    let divergences = found.iter_mut().flatten().flat_map(|found| {
        let Divergences { structure, counts } = &mut found.divergences;
        [structure, counts].into_iter().flatten()
    });
    let told: Vec<&mut Divergence> = divergences.filter(in_loops).collect();
    if told.is_empty() {
        return;
    }
    let mut examples: FxHashMap<BodyId, NodeId> = FxHashMap::default();
    below(forest, roots, &mut |id| {
        if let Some(body) = forest.body(id) {
            examples.entry(body).or_insert(id);
        }
    });
    for divergence in told {
        divergence.tell_loops(forest, &examples);
    }
}

/// How a trace of the last run, given by its place, leaves the normal trace that explains most of it.
fn nearest(
    trees: &Trees,
    sides: &[Vec<Side>],
    place: usize,
    projection: &mut Projection,
    (names, usual): (&Names, &Usual),
) -> Option<Found> {
    let name = trees.last().traces[place].name;
    let normals = trees.normals();
    // What another one of its team did is as good as what it did itself.
    let own: Vec<NodeId> = match usual.teams.own(place) {
        Some(own) => own.to_vec(),
        None => (normals.iter().zip(sides))
            .filter_map(|(run, sides)| Some(sides[run.place(name)?].root))
            .collect(),
    };
    let mut nearest: Option<Found> = None;
    for (run, of_run) in normals.iter().enumerate() {
        let Some(other) = of_run.place(name) else {
            continue;
        };
        let (normal, faulty) = (sides[run][other], sides[normals.len()][place]);
        let found = Found {
            divergences: beside(
                &trees.forest,
                name,
                (normal, faulty),
                Some(&mut *projection),
                names,
                Some(Accepted {
                    usual,
                    own: &own,
                    is_broken_off: usual.teams.is_broken_off(place),
                }),
            ),
            normal: of_run.traces[other],
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
