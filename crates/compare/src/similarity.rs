//! `lockstep similarity`: the Jaccard similarity matrix (JSM), and the difference of two (JSM_D).

use crate::{Error, ObjectName, Options};
use lockstep_trace::Run;
use serde::Serialize;

/// A symmetric matrix over traces, entries in 0..1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Similarity {
    /// The traces, in order.
    pub traces: Vec<ObjectName>,
    /// One row a trace.
    pub matrix: Vec<Vec<f64>>,
}

/// How alike the traces of a run are.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn similarity(run: &Run, options: &Options) -> Result<Similarity, Error> {
    let _ = (run, options);
    Err(Error::Nothing("similarity: not built yet".into()))
}

impl Similarity {
    /// As comma-separated values: a header of names, then a row a trace with its name first.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::from("trace");
        for trace in &self.traces {
            text.push_str(&format!(",{trace}"));
        }
        text.push('\n');
        for (trace, row) in self.traces.iter().zip(&self.matrix) {
            text.push_str(&trace.to_string());
            for value in row {
                text.push_str(&format!(",{value}"));
            }
            text.push('\n');
        }
        text
    }

    /// The sum of each row: in a difference, how much a trace's relations to all others changed.
    #[must_use]
    pub fn row_sums(&self) -> Vec<f64> {
        self.matrix.iter().map(|row| row.iter().sum()).collect()
    }
}
