//! Findings: who differs, how, and in what order of suspicion.

pub(crate) mod causal_order;
mod clause;
pub(crate) mod comparison;
mod decision;
pub(crate) mod disagreement;
pub(crate) mod finding;
pub(crate) mod first;
pub(crate) mod notes;
mod passes;
mod remarks;
pub(crate) mod series;
pub(crate) mod steady;
pub(crate) mod suspect;
pub(crate) mod unended;
pub(crate) mod verdict;
pub(crate) mod wrong;
