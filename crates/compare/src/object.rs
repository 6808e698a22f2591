//! What is compared: a trace, or a piece of one.

use lockstep_trace::{ProcessName, TraceName};
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// `P.T`, or `P.T@k`: a trace, or its k-th piece (from 0) under [`crate::Part::split_at`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The trace.
    pub trace: TraceName,
    /// The piece, where traces are split.
    pub piece: Option<u32>,
}

impl FromStr for ObjectName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (trace, piece) = match text.split_once('@') {
            Some((trace, piece)) => (trace, Some(piece.parse().map_err(|_| ())?)),
            None => (text, None),
        };
        let trace = trace.parse()?;
        Ok(Self { trace, piece })
    }
}

impl From<TraceName> for ObjectName {
    fn from(trace: TraceName) -> Self {
        Self { trace, piece: None }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.trace)?;
        match self.piece {
            Some(piece) => write!(f, "@{piece}"),
            None => Ok(()),
        }
    }
}

impl Serialize for ObjectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A trace as its name.
pub(crate) fn serialize_trace<S: Serializer>(
    trace: &TraceName,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(trace)
}

/// A trace as its name, if there is one.
pub(crate) fn serialize_maybe_trace<S: Serializer>(
    trace: &Option<TraceName>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    trace.map(ObjectName::from).serialize(serializer)
}

/// Several traces as their names.
pub(crate) fn serialize_traces<S: Serializer>(
    traces: &[TraceName],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(traces.iter().map(ToString::to_string))
}

/// A process as an integer, or as its name where it is not just a rank.
pub(crate) fn serialize_process<S: Serializer>(
    process: &ProcessName,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Process(*process).serialize(serializer)
}

/// Several processes, each like [`serialize_process`].
pub(crate) fn serialize_processes<S: Serializer>(
    processes: &[ProcessName],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(processes.iter().copied().map(Process))
}

struct Process(ProcessName);

impl Serialize for Process {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == ProcessName::rank(self.0.rank) {
            serializer.serialize_u32(self.0.rank)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}
