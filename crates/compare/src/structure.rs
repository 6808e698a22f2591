//! Structure: where the call trees of two traces part, what timing or another build of the program explains, and what calls were given.

pub(crate) mod arguments;
pub(crate) mod builds;
pub(crate) mod diff;
pub(crate) mod divergence;
pub(crate) mod explained;
pub(crate) mod list;
pub(crate) mod phases;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod teams;
pub(crate) mod timing;
pub(crate) mod totals;
