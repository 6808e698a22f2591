//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use crate::attribute::Kind;
use crate::findings::findings;
use crate::notes;
use crate::novelty::Novelty;
use crate::object::serialize_traces;
use crate::sequence::{Lens, Trees};
use crate::suspect::{Finding, Reason, Suspect, rank};
use crate::sweep::{self, Pair};
use crate::verdict::Case;
use crate::{Dendrogram, Error, Options, Row, Similarity};
use lockstep_calltree::Trace;
use lockstep_trace::{Run, TraceName};
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
    /// Functions that were left out of the search for the first divergence, since all traces call them
    /// otherwise in the same way (see `notes`).
    pub left_out: Vec<String>,
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
    let (mut findings, commons) = findings(&mut trees, &runs, options);
    findings.extend(unmatched(&trees, &missing, &extra));

    let ranking = sweep::sweep(&trees, (0, last), options, progress);
    let given = Pair::new(&trees, 0, last, Lens::of(options));
    if given.is_empty() {
        return Err(given.lens.keeps_nothing());
    }
    let by_mpi = findings.iter().any(|finding| finding.by_mpi.is_some());
    let mpi = by_mpi.then(|| Pair::new(&trees, 0, last, sweep::mpi(options)));
    for finding in &mut findings {
        match mpi.as_ref().filter(|_| finding.by_mpi.is_some()) {
            Some(mpi) => finding.part(mpi, &trees),
            // The given filter shows what all traces share before it shows what this one does.
            None if commons.is_empty() || finding.shared => finding.part(&given, &trees),
            None => {}
        }
    }
    let novelty = Novelty::new(&trees, options);
    let some_alone = findings.iter().any(|finding| !finding.shared);
    findings.retain(|finding| !(finding.shared && some_alone));
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
    let case = Case {
        faulty,
        differs,
        findings: &findings,
        compared,
    };
    let verdict = case.sentence();
    if some_alone {
        notes.splice(0..0, commons.iter().map(|common| case.common(common)));
    }
    Ok(Comparison {
        differs,
        verdict,
        p: novelty.map(|novelty| novelty.smallest()),
        suspects,
        table: ranking.rows,
        notes,
        left_out: commons.into_iter().map(|common| common.left_out).collect(),
        missing,
        extra,
        view: view(&given, options),
    })
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
            by_mpi: None,
            stuck: None,
            shared: false,
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
