//! `lockstep compare`: whether a run differs from normal ones, who fell out of step, and why.

use crate::attribute::Kind;
use crate::object::{serialize_process, serialize_trace, serialize_traces};
use crate::sequence::{Lens, Trees};
use crate::sweep::{self, Pair};
use crate::{Dendrogram, Error, Options, Row, Similarity};
use lockstep_trace::{ProcessName, Run, TraceName};
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
    let Some((normal, _others)) = normals.split_first() else {
        return Err(Error::Nothing(
            "compare: expected a normal run, found none".into(),
        ));
    };
    let trees = Trees::new(&[*normal, faulty], options)?;
    let pairs: Vec<Pair> = sweep::lenses(options)
        .into_par_iter()
        .map(|lens| Pair::new(&trees, 0, 1, lens))
        .filter(|pair| !pair.is_empty())
        .collect();
    let ranking = sweep::sweep(&pairs, options, progress);
    let view = view(&Pair::new(&trees, 0, 1, Lens::of(options)), options);
    // Until the first divergence is known: whom the similarities single out.
    let top = ranking.row_sums.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let differs = top.is_some_and(|(_, sum)| *sum > 0.0);
    Ok(Comparison {
        differs,
        verdict: match top {
            Some((name, _)) if differs => format!("trace {name} changed most"),
            _ => "no trace changed".into(),
        },
        p: None,
        suspects: Vec::new(),
        table: ranking.rows,
        notes: Vec::new(),
        missing: Vec::new(),
        extra: Vec::new(),
        view,
    })
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
