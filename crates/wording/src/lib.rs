//! Every sentence about a run's progress: words from the typed values of `lockstep_progress` and `lockstep_check`.
//!
//! [`verdict`] is the answer in one sentence. The other functions say its parts: who waits for what ([`waits`]), what a task did
//! ([`caused`]), which operations do not fit ([`mismatched`], [`potential`], [`loose`]).
//!
//! A value knows what is to be said, and in which order; this crate knows how. Names of tasks and of communicators come from the
//! [`Progress`](lockstep_progress::Progress) that the value is of.
//!
//! *Guarantees*: the same value gives the same words; a clause names its subject. *Costs*: O(what is said); no event is read.
//! *Not for*: deciding anything. Whoever compares two findings compares their values.

mod amiss;
mod call;
mod deed;
mod loose;
mod place;
mod reason;
mod verdict;
mod who;

pub use call::{mismatched, potential};
pub use deed::{caused, suspects};
pub use loose::loose;
pub use reason::{reason, reasons, waits};
pub use verdict::{mistakes, verdict};
pub use who::{unseen, who, word};
