//! The ranking table: one row for each set of options.

use crate::object::{serialize_processes, serialize_traces};
use crate::{Attributes, Frequency, Linkage};
use lockstep_trace::{ProcessName, TraceName};
use serde::Serialize;

/// One set of options, and whom it suspects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The filter in the papers' form: `11.mpi.0K10`.
    pub filter: String,
    /// What attributes are made of.
    pub attributes: Attributes,
    /// What of their frequency they carry.
    pub frequency: Frequency,
    /// The linkage.
    pub linkage: Linkage,
    /// Number of clusters.
    pub clusters: usize,
    /// Likeness of the two runs' clusterings, 0..1; NaN (`null`) where it is undefined.
    pub b_score: f64,
    /// Sizes of the clusters of the JSM_D, largest first.
    pub cluster_sizes: Vec<usize>,
    /// Candidate processes: those whose traces lie in the smallest clusters.
    #[serde(serialize_with = "serialize_processes")]
    pub processes: Vec<ProcessName>,
    /// Candidate threads: the members of the smallest clusters.
    #[serde(serialize_with = "serialize_traces")]
    pub threads: Vec<TraceName>,
}
