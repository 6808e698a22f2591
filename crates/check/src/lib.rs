//! MPI's rules: what a task does that is wrong whatever the others do, what comes to nothing between two, and shares of a
//! collective operation that do not fit.
//!
//! ```text
//!  each call ──► RuleChecker ──► Usage          handles, epochs, buffers, arguments: while the calls are read
//!  all tasks ──► loose_ends, mismatches      messages, requests, collective operations: when all is known
//!           ──► races, taken, strays         receives from anybody, and messages that went elsewhere
//! ```
//!
//! *Guarantees*: what is told was seen; where a library may have done something unseen, it is told only of who did not come back
//! from the call. *Costs*: O(arguments) a call; O(parts) at the end. *Not for*: who waits for whom (`progress`).

mod arguments;
mod buffers;
mod chosen;
mod conflicts;
mod epochs;
mod freed;
mod loose;
mod loose_end;
mod mismatch;
mod of_calls;
mod partitions;
pub mod races;
mod rule_checker;
pub mod strays;
pub mod taken;
mod usage;

#[cfg(test)]
mod races_tests;

pub use chosen::Chosen;
pub use epochs::{Epochs, Needs};
pub use freed::settle;
pub use loose::{Loose, at_once, loose_ends, loose_ends_so_far, never_finalized, unfit};
pub use loose_end::LooseEnd;
pub use mismatch::{Aspect, Mismatch, mismatches, said};
pub use rule_checker::RuleChecker;
pub use usage::Usage;
