//! What happened before what, across traces: a value that comes from whoever can match messages.

use lockstep_trace::{ProcessName, TraceName};
use std::collections::BTreeMap;

/// The causal order of a run's events. A trace that is not known is asked for nothing.
pub trait CausalOrder: Sync {
    /// The logical time of an event: later than that of every event which it can know of.
    fn time(&self, trace: TraceName, event: u64) -> u64;

    /// For each other trace the first event that can know of this one.
    fn heard_of(&self, trace: TraceName, event: u64) -> BTreeMap<TraceName, u64>;

    /// Processes that the others wait for, as far as that is known. Asked for only where traces end early.
    fn culprits(&self) -> Vec<Culprit> {
        Vec::new()
    }
}

/// A process that the others wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Culprit {
    /// Which.
    pub process: ProcessName,
    /// What it did that makes them wait (`sent rank 2 a message with tag 8 that nobody received`); none: it crashed, or does not
    /// wait itself.
    pub deed: Option<String>,
}
