//! What of a run an export shows: a window in each trace, and how deep.

use lockstep_trace::FunctionId;
use std::collections::HashSet;

/// An end of a window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edge {
    /// A call of one of these functions.
    Call(HashSet<FunctionId>),
    /// A time, in nanoseconds since the run began on the trace's host; in logical time, events.
    Time(u64),
}

/// The calls of each trace that are exported: those that begin in a window, as they are, also if they end behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Where the window begins: with the first such call, or at that time.
    pub from: Option<Edge>,
    /// Where it ends: before the next such call, or at that time.
    pub to: Option<Edge>,
    /// How many calls deep: 1 has the outermost alone.
    pub depth: Option<u64>,
    /// Viewers get no call that began and ended between two times that were read: it would have no width.
    pub folds: bool,
}

impl View {
    /// Whether calls are left out by a window or a depth.
    #[must_use]
    pub fn is_part(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.depth.is_some()
    }

    /// The same calls, none folded.
    #[must_use]
    pub fn unfolded(&self) -> Self {
        Self {
            folds: false,
            ..self.clone()
        }
    }
}
