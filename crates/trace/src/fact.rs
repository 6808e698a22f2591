//! What an analysis found, as values: one shape for all of them, so that a test or a script need not read sentences.

use crate::model::SourceLine;
use crate::name::TraceName;
use serde::{Serialize, Serializer};

/// One finding: who did what, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What was found: `deadlock`, `misdirected`, `never-freed`.
    pub kind: &'static str,
    /// The traces that it is about.
    #[serde(serialize_with = "names")]
    pub who: Vec<TraceName>,
    /// The function that they are in, called wrongly or left out; `None` where it is no matter of one.
    pub function: Option<String>,
    /// The lines where it was called, or candidates; none where that is not known.
    #[serde(serialize_with = "places")]
    pub lines: Vec<SourceLine>,
}

fn names<S: Serializer>(who: &[TraceName], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(who.iter().map(ToString::to_string))
}

fn places<S: Serializer>(lines: &[SourceLine], serializer: S) -> Result<S::Ok, S::Error> {
    let text = |line: &SourceLine| format!("{}:{}", line.file, line.line);
    serializer.collect_seq(lines.iter().map(text))
}
