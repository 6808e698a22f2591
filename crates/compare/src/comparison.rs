//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use crate::attribute::Kind;
use crate::divergence::{Divergences, Side, first_divergence};
use crate::notes;
use crate::novelty::Novelty;
use crate::object::serialize_traces;
use crate::sequence::{Lens, Trees};
use crate::suspect::{Finding, Reason, Suspect, rank};
use crate::sweep::{self, Pair};
use crate::verdict::Case;
use crate::{Dendrogram, Error, Options, Row, Similarity};
use lockstep_calltree::{Projection, Trace};
use lockstep_loops::Names;
use lockstep_trace::{Run, TraceName};
use rayon::prelude::*;
use serde::Serialize;

/// What came of comparing a run with normal ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Whether they differ, by the rule of the command line.
    pub differs: bool,
    /// One sentence: who, where, what.
    pub verdict: String,
    /// Empirical p-value; `None` with one normal run.
    pub p: Option<f64>,
    /// Traces that differ, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// The ranking table, lowest B-score first.
    pub table: Vec<Row>,
    /// What could not be compared, or should be known when reading the rest.
    pub notes: Vec<String>,
    /// Traces of the normal run without a partner in the faulty one.
    #[serde(serialize_with = "serialize_traces")]
    pub missing: Vec<TraceName>,
    /// Traces of the faulty run without a partner in the normal one.
    #[serde(serialize_with = "serialize_traces")]
    pub extra: Vec<TraceName>,
    /// The matrices and trees under the given options (outside a sweep: its only row).
    pub view: View,
}

/// Both runs under one set of options: what the pictures show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// The filter in the papers' form.
    pub filter: String,
    /// Likeness of the normal run's traces.
    pub normal: Similarity,
    /// Likeness of the faulty run's traces.
    pub faulty: Similarity,
    /// Absolute difference of the two (JSM_D).
    pub difference: Similarity,
    /// Clustering of the normal run.
    pub normal_tree: Dendrogram,
    /// Clustering of the faulty run.
    pub faulty_tree: Dendrogram,
    /// Clustering of the difference.
    pub difference_tree: Dendrogram,
}

/// Compares a run with one or more normal ones. `progress` is told how many sets of options are done,
/// of how many, from any thread.
///
/// The first normal run is the one that similarities, pictures and notes refer to. The others widen
/// what is normal: what a trace does is accepted if one of them does it, and a p-value tells whether it
/// is more unusual than they are among themselves. Where they are too few for a p-value below the
/// level, structure alone decides, and a note says so.
///
/// # Errors
/// No normal run; a pattern that does not parse; a filter that keeps nothing; runs without a common
/// trace.
pub fn compare(
    normals: &[&Run],
    faulty: &Run,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, Error> {
    let Some(normal) = normals.first() else {
        return Err(Error::Nothing("expected a normal run, found none".into()));
    };
    let runs: Vec<&Run> = normals.iter().copied().chain([faulty]).collect();
    let last = runs.len() - 1;
    let mut trees = Trees::new(&runs, options)?;
    let missing = notes::unmatched(&trees, 0, last);
    let extra = notes::unmatched(&trees, last, 0);
    let compared = trees.runs[0].len() - missing.len();
    if compared == 0 {
        return Err(Error::Nothing(format!(
            "expected traces of the same names in both runs, found {} in the normal run and {} in the faulty one, with none in common",
            trees.runs[0].len(),
            trees.runs[last].len()
        )));
    }
    let mut findings = divergences(&mut trees, &runs, options);
    findings.extend(unmatched(&trees, &missing, &extra));

    let pairs: Vec<Pair> = sweep::lenses(options)
        .into_par_iter()
        .map(|lens| Pair::new(&trees, 0, last, lens))
        .filter(|pair| !pair.is_empty())
        .collect();
    let ranking = sweep::sweep(&pairs, options, progress);
    let given = Pair::new(&trees, 0, last, Lens::of(options));
    if given.is_empty() {
        return Err(given.lens.keeps_nothing());
    }
    let mpi = pairs.iter().find(|pair| pair.lens == sweep::mpi(options));
    for finding in &mut findings {
        let pair = mpi.filter(|_| finding.by_mpi).unwrap_or(&given);
        finding.part(pair, &trees);
    }
    let novelty = Novelty::new(&trees, options);
    let suspects = rank(&mut findings, &ranking, novelty.as_ref());

    let mut notes = notes::notes(normal, faulty, &missing, &extra);
    let changed = findings
        .iter()
        .any(|finding| finding.reason != Reason::Counts || options.counts);
    let differs = match &novelty {
        Some(novelty) if novelty.resolution() < options.level => {
            changed && novelty.smallest() < options.level
        }
        Some(novelty) => {
            notes.push(format!(
                "{} normal runs of {compared} traces can give no p-value below {:.3}: structure alone decides",
                normals.len(),
                novelty.resolution()
            ));
            changed
        }
        None => changed,
    };
    let verdict = Case {
        faulty,
        differs,
        findings: &findings,
        compared,
    }
    .sentence();
    Ok(Comparison {
        differs,
        verdict,
        p: novelty.map(|novelty| novelty.smallest()),
        suspects,
        table: ranking.rows,
        notes,
        missing,
        extra,
        view: view(&given, options),
    })
}

/// Where each trace of the last run leaves what it did in all the others, if it does.
fn divergences(trees: &mut Trees, runs: &[&Run], options: &Options) -> Vec<Finding> {
    // In a sweep the whole trace decides, else what the given filter leaves of it.
    let projection = if options.sweep {
        trees.everything()
    } else {
        trees.projection(&Lens::of(options))
    };
    let mut whole = Explained::new(trees, projection);
    let mut mpi = options.sweep.then(|| {
        let projection = trees.projection(&sweep::mpi(options));
        Explained::new(trees, projection)
    });
    let last = trees.runs.len() - 1;
    let mut findings = Vec::new();
    for place in 0..trees.runs[last].len() {
        let Some((found, normal)) = whole.nearest(trees, place) else {
            continue;
        };
        let Some(mut divergence) = found.structure.or(found.counts) else {
            continue;
        };
        let name = divergence.trace;
        if let (Some(run), Some(functions)) = (runs.last(), trees.functions.last())
            && let Some(thread) = run.trace(name)
        {
            divergence.locate(run, functions, thread);
        }
        let same = |found: Divergences| {
            let found = found.structure.or(found.counts)?;
            (found.event == divergence.event).then_some(found.loops)
        };
        let by_mpi = mpi
            .as_mut()
            .and_then(|mpi| mpi.nearest(trees, place))
            .and_then(|(found, _)| same(found));
        let events = trees.forest.node(normal.root).events.max(1);
        findings.push(Finding {
            trace: name,
            reason: Reason::of(divergence.kind),
            by_mpi: by_mpi.is_some(),
            loops: by_mpi.unwrap_or_else(|| divergence.loops.clone()),
            progress: divergence.normal_event as f64 / events as f64,
            divergence: Some(divergence),
            parting: None,
            unmatched: None,
        });
    }
    findings
}

/// All runs under one filter, to find where the last one leaves the others.
struct Explained {
    projection: Projection,
    sides: Vec<Vec<Side>>,
    names: Names,
}

impl Explained {
    fn new(trees: &mut Trees, mut projection: Projection) -> Self {
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
        Self {
            projection,
            sides,
            names,
        }
    }

    /// How a trace of the last run, given by its place, leaves the normal trace that explains most of
    /// it; and that trace.
    fn nearest(&mut self, trees: &Trees, place: usize) -> Option<(Divergences, Trace)> {
        let (last, normals) = trees.runs.split_last()?;
        let trace = last[place];
        let mut nearest: Option<(Divergences, Trace)> = None;
        for (run, traces) in normals.iter().enumerate() {
            let Ok(other) = traces.binary_search_by_key(&trace.name, |trace| trace.name) else {
                continue;
            };
            let found = first_divergence(
                &trees.forest,
                trace.name,
                self.sides[run][other],
                self.sides[normals.len()][place],
                Some(&mut self.projection),
                &self.names,
            );
            if nearest
                .as_ref()
                .is_none_or(|(nearest, _)| goes_further(&found, nearest))
            {
                nearest = Some((found, traces[other]));
            }
        }
        nearest
    }
}

/// Whether a trace is explained further by one normal run than by another.
fn goes_further(one: &Divergences, other: &Divergences) -> bool {
    let reach = |found: &Divergences| match (&found.structure, &found.counts) {
        (Some(divergence), _) => (0, divergence.event),
        (None, Some(divergence)) => (1, divergence.event),
        (None, None) => (2, 0),
    };
    reach(one) > reach(other)
}

/// Traces of one run only. Of several normal runs one that agrees is enough.
fn unmatched(trees: &Trees, missing: &[TraceName], extra: &[TraceName]) -> Vec<Finding> {
    let normals = &trees.runs[..trees.runs.len() - 1];
    let has = |run: &[Trace], name: TraceName| run.iter().any(|trace| trace.name == name);
    let missing = missing
        .iter()
        .filter(|name| normals.iter().all(|run| has(run, **name)))
        .map(|name| (*name, "is missing: the normal run has it"));
    let extra = extra
        .iter()
        .filter(|name| !normals.iter().any(|run| has(run, **name)))
        .map(|name| (*name, "is new: the normal run does not have it"));
    missing
        .chain(extra)
        .map(|(trace, what)| Finding {
            trace,
            reason: Reason::Unmatched,
            divergence: None,
            loops: Vec::new(),
            by_mpi: false,
            progress: 0.0,
            parting: None,
            unmatched: Some(what),
        })
        .collect()
}

fn view(pair: &Pair, options: &Options) -> View {
    let matrices = pair.matrices(Kind::of(options));
    let [normal_tree, faulty_tree, difference_tree] =
        sweep::trees(&matrices, options.linkage, options);
    let [normal, faulty, difference] = matrices.map(|matrix| matrix.named(&pair.names));
    View {
        filter: pair.lens.paper(),
        normal,
        faulty,
        difference,
        normal_tree,
        faulty_tree,
        difference_tree,
    }
}
