//! What an analysis found, as values: one shape for all of them, so that a test or a script need not read sentences.

use crate::model::SourceLine;
use crate::name::TraceName;
use schemars::JsonSchema;
use serde::Serialize;

/// One finding: what happened, in which traces, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fact {
    /// What was found, in one word: `deadlock`, `misdirected`, `never-freed`.
    pub kind: &'static str,
    /// Traces that the finding is about.
    pub who: Vec<TraceName>,
    /// The function that the traces are in, called wrongly or left out. Null if the finding is not about one function.
    pub function: Option<String>,
    /// Source lines of that call: one line, or all candidates. Empty if no line is known.
    pub lines: Vec<SourceLine>,
}
