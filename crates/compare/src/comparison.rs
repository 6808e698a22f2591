//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use crate::object::{serialize_process, serialize_trace, serialize_traces};
use crate::{Dendrogram, Error, Options, Row, Similarity};
use lockstep_trace::{ProcessName, Run, TraceName};
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

/// A trace that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suspect {
    /// The trace.
    #[serde(serialize_with = "serialize_trace")]
    pub trace: TraceName,
    /// Its process.
    #[serde(serialize_with = "serialize_process")]
    pub process: ProcessName,
    /// 0..1: how far it stands out from the next suspect of its kind; see `docs`.
    pub confidence: f64,
    /// Why, strongest first, in sentences.
    pub reasons: Vec<String>,
    /// The kind of the strongest reason.
    pub reason: Reason,
    /// Sum of its JSM_D rows, mean over the table's sets of options.
    pub row_sum: f64,
}

/// In what way a trace differs; earlier ones are more suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It makes another call than before.
    OtherCall,
    /// It exists in one run only.
    Unmatched,
    /// It ends early: perhaps a victim of another.
    EndsEarly,
    /// Only trip counts differ.
    Counts,
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
/// # Errors
/// No normal run; a pattern that does not parse; a filter that keeps nothing; runs without a common
/// trace.
pub fn compare(
    normals: &[&Run],
    faulty: &Run,
    options: &Options,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Comparison, Error> {
    let _ = (normals, faulty, options, progress);
    Err(Error::Nothing("compare: not built yet".into()))
}
