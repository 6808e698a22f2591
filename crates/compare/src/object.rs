//! What is compared: a trace, or a piece of one.

use lockstep_trace::TraceName;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
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

impl JsonSchema for ObjectName {
    fn schema_name() -> Cow<'static, str> {
        "TraceOrPiece".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A trace, such as `6.4`; with `--split-at`, a piece of it, from 0: `6.4@3`.",
        })
    }
}
