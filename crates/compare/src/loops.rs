//! `lockstep loops`: each trace as a nested loop representation, and the loop table.

use crate::{Error, ObjectName, Options};
use lockstep_trace::Run;
use serde::Serialize;

/// The traces of a run with their loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loops {
    /// Every loop body, in the order of its name.
    pub loops: Vec<LoopBody>,
    /// Every trace, in order.
    pub traces: Vec<TraceLoops>,
}

/// A loop body: equal bodies have equal ids in every trace and run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopBody {
    /// Content address, 32 hexadecimal digits.
    pub id: String,
    /// Name for people: L0, L1... in order of first occurrence.
    pub name: String,
    /// Its elements: names of functions and loops.
    pub body: Vec<String>,
    /// Id that a body shares with its rotations.
    pub family: String,
}

/// One trace with its loops folded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceLoops {
    /// The trace, or its piece.
    pub trace: ObjectName,
    /// Its elements: `MPI_Init`, or `L0^4` for a loop of four iterations.
    pub tokens: Vec<String>,
    /// Calls that pass the filter and never returned, outermost first.
    pub open: Vec<String>,
    /// Number of entries before folding.
    pub entries: u64,
}

/// Folds the loops of every trace of a run.
///
/// # Errors
/// A pattern that does not parse; a filter that keeps nothing.
pub fn loops(run: &Run, options: &Options) -> Result<Loops, Error> {
    let _ = (run, options);
    Err(Error::Nothing("loops: not built yet".into()))
}
