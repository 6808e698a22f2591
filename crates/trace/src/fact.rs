//! What an analysis found, as values: one shape for all of them, so that a test or a script need not read sentences.

use crate::model::SourceLine;
use crate::name::TraceName;
use schemars::JsonSchema;
use serde::Serialize;

/// One finding: who did what, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// What was found: `deadlock`, `misdirected`, `never-freed`.
    pub kind: &'static str,
    /// The traces that it is about.
    pub who: Vec<TraceName>,
    /// The function that they are in, called wrongly or left out; `None` where it is no matter of one.
    pub function: Option<String>,
    /// The lines where it was called, or candidates; none where that is not known.
    pub lines: Vec<SourceLine>,
}
