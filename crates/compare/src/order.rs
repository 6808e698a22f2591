//! What happened before what, across traces: a value that comes from whoever can match messages.

use lockstep_trace::{ProcessName, TraceName};
use std::collections::BTreeMap;

/// The causal order of a run's events. A trace that is not known is asked for nothing.
pub trait CausalOrder: Sync {
    /// The logical time of an event: later than that of every event which it can know of.
    fn time(&self, trace: TraceName, event: u64) -> u64;

    /// For each other trace the first event that can know of this one.
    fn heard_of(&self, trace: TraceName, event: u64) -> BTreeMap<TraceName, u64>;

    /// Processes that the others wait for, as far as that is known: they crashed, or do not wait themselves. Asked for only
    /// where traces end early.
    fn culprits(&self) -> Vec<ProcessName> {
        Vec::new()
    }
}
