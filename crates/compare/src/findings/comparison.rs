//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use super::decision::decide;
use super::first::findings;
use super::notes;
use super::passes::{describe, pass_arguments, shared_work, unmatched};
use super::remarks::remarks;
use super::suspect::fact::fact;
use super::suspect::order::rank;
use super::suspect::{Suspect, weigh};
use super::verdict::Case;
use crate::difftrace::sequence::Lens;
use crate::difftrace::sweep::{self, Pair, Top};
use crate::difftrace::trees::Trees;
use crate::statistics::normality::Normality;
use crate::statistics::normality::roles::Role;
use crate::structure::builds::{self, Builds};
use crate::{CausalOrder, Dendrogram, Error, Options, Row, Similarity};
use lockstep_trace::{Fact, Run, TraceName};
use schemars::JsonSchema;
use serde::Serialize;

/// The result of comparing a run with normal runs.
// Long: its fields are the keys of the JSON, which are a contract.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Whether the run differs, by the rule of the command line (exit status 1).
    pub differs: bool,
    /// The answer in one sentence: which trace differs, where and how.
    pub verdict: String,
    /// The findings as values, most suspicious first; at most 64.
    pub facts: Vec<Fact>,
    /// The smallest `p` of all traces. Null with a single normal run.
    pub p: Option<f64>,
    /// The roles of the traces, found from the normal runs. Empty with a single normal run.
    pub roles: Vec<Role>,
    /// Traces that differ, most suspicious first.
    pub suspects: Vec<Suspect>,
    /// The ranking table: one row for each set of options, lowest B-score first.
    pub table: Vec<Row>,
    /// The closing row of the table: the candidates in most rows.
    pub top: Top,
    /// Sentences about what was not compared, and what else the reader should know.
    pub notes: Vec<String>,
    /// Functions that the search for the first divergence left out, because all traces differ in them in the same way
    /// (see `notes`).
    pub left_out: Vec<String>,
    /// How two builds of the program were compared. Null if there is only one build.
    pub builds: Option<Builds>,
    /// Traces of the first normal run that the faulty run does not have.
    pub missing: Vec<TraceName>,
    /// Traces of the faulty run that the first normal run does not have.
    pub extra: Vec<TraceName>,
    /// Matrices and trees under the given options. Absent for more than 1,024 traces, because a matrix has a number for
    /// each pair.
    #[serde(skip_serializing_if = "View::is_large")]
    pub view: View,
}

/// So many traces are told of as values: where a call was made is looked up for each.
const FACTS: usize = 64;

/// Traces whose matrices are written.
const WRITTEN: usize = 1024;

impl View {
    fn is_large(&self) -> bool {
        self.normal.traces.len() > WRITTEN
    }
}

/// The first normal run and the faulty run under one set of options.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct View {
    /// The filter, as the papers write it: `11.mpi.0K10`.
    pub filter: String,
    /// How similar the normal run's traces are (JSM).
    pub normal: Similarity,
    /// How similar the faulty run's traces are (JSM).
    pub faulty: Similarity,
    /// Absolute difference of these two matrices (JSM_D).
    pub difference: Similarity,
    /// Clustering of `normal`.
    pub normal_tree: Dendrogram,
    /// Clustering of `faulty`.
    pub faulty_tree: Dendrogram,
    /// Clustering of `difference`.
    pub difference_tree: Dendrogram,
}

/// Compares a run with one or more normal ones. `progress` is told how many sets of options are done,
/// of how many, from any thread.
///
/// The first normal run is the one that similarities, pictures and notes refer to. The others widen
/// what is normal: what a trace does is accepted if one of them does it, and a p-value tells whether it
/// is more unusual than they are among themselves, in what it calls, how often, in what order, and in
/// what its MPI calls are given. Then that value decides, not structure.
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
    compare_in_order(normals, faulty, options, None, progress)
}

/// [`compare`], with the causal order of the faulty run's events: of traces that differ in the same way
/// the earliest in that order comes first, and those that can have heard of it are called its
/// consequences.
///
/// # Errors
/// As [`compare`].
pub fn compare_in_order(
    normals: &[&Run],
    faulty: &Run,
    options: &Options,
    order: Option<&dyn CausalOrder>,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, Error> {
    let Some(normal) = normals.first() else {
        return Err(Error::Nothing("expected a normal run, found none".into()));
    };
    let runs: Vec<&Run> = normals.iter().copied().chain([faulty]).collect();
    let mut trees = Trees::new(&runs, options)?;
    let builds = builds::leave_out(&mut trees, options);
    let (missing, extra) = without_partner(&trees)?;
    let (mut findings, commons) = findings(&mut trees, options);
    findings.extend(unmatched(&trees, &missing, &extra));
    let mismatch = pass_arguments(&mut findings, &trees);

    let last = trees.runs.len() - 1;
    let ranking = sweep::sweep(&trees, (0, last), options, progress)?;
    let given = Pair::new(&trees, 0, last, Lens::of(options));
    if given.is_empty() {
        return Err(given.lens.keeps_nothing());
    }
    let some_alone = findings.iter().any(|finding| !finding.shared);
    findings.retain(|finding| !(finding.shared && some_alone));
    let left_out: Vec<String> = commons.iter().map(|it| it.left_out.clone()).collect();
    let shared = shared_work(&findings, &trees);
    // What all traces do otherwise is no sign of one of them, and all that there is if there is no other.
    let without = if some_alone { left_out.as_slice() } else { &[] };
    let normality = Normality::new(&mut trees, options, without, shared);
    if let Some(normality) = &normality {
        weigh(&mut findings, normality, &trees, options.level);
    }
    describe(&mut findings, &trees, &given, !commons.is_empty(), options);
    let decision = decide(&mut findings, &trees, normality.as_ref(), mismatch, options)?;
    let suspects = rank(&mut findings, &ranking, order, faulty);
    let case = Case {
        faulty,
        differs: decision.differs,
        findings: &findings,
        compared: trees.runs[0].traces.len() - missing.len(),
    };
    let mut notes = notes::notes(normal, faulty, &missing, &extra, builds.as_ref());
    notes.extend(remarks(
        &case,
        &trees,
        &decision,
        normality.as_ref(),
        options,
    ));
    if some_alone {
        let strangers = builds.as_ref().and_then(|it| it.strangers);
        let at = usize::from(strangers.is_some());
        notes.splice(at..at, commons.iter().map(|common| case.common(common)));
    }
    let mut verdict = case.sentence();
    if !case.differs && trees.left_out().is_some() {
        verdict.push_str(" (as far as was looked at: see the notes)");
    }
    let view = view(&trees, &given, options)?;
    if view.is_large() {
        notes.push(format!(
            "of more than {WRITTEN} traces the matrices (`view`) are not in the JSON"
        ));
    }
    let told = findings.iter().take(FACTS);
    Ok(Comparison {
        differs: decision.differs,
        verdict,
        facts: told.map(|it| fact(it, faulty)).collect(),
        p: decision.p,
        roles: normality.map_or_else(Vec::new, |it| it.roles),
        suspects,
        top: Top::of(&ranking.rows),
        table: ranking.rows,
        notes,
        left_out,
        builds,
        missing,
        extra,
        view,
    })
}

/// Traces of the first normal run without a partner in the faulty one, and the other way round.
fn without_partner(trees: &Trees) -> Result<(Vec<TraceName>, Vec<TraceName>), Error> {
    let (normal, faulty) = (&trees.runs[0], trees.last());
    let (missing, extra) = (normal.without(faulty), faulty.without(normal));
    let [of_normal, of_faulty] = [normal, faulty].map(|it| it.traces.len());
    match missing.len() == of_normal {
        true => Err(Error::Nothing(format!(
            "expected traces of the same names in both runs, found {of_normal} in the normal run and {of_faulty} in the faulty one, with none in common",
        ))),
        false => Ok((missing, extra)),
    }
}

fn view(trees: &Trees, pair: &Pair, options: &Options) -> Result<View, Error> {
    let subjects = pair.subjects(trees, options.attributes)?;
    let matrices = pair.matrices(&subjects, options.frequency);
    let [normal_tree, faulty_tree, difference_tree] =
        sweep::trees(&matrices, options.linkage, options).map(|tree| tree.dendrogram());
    let [normal, faulty, difference] = matrices.map(|matrix| matrix.named(&pair.names));
    Ok(View {
        filter: pair.lens.paper(),
        normal,
        faulty,
        difference,
        normal_tree,
        faulty_tree,
        difference_tree,
    })
}
