//! The rules of the house, read from its source: how large things are, which imports make a circle,
//! and how long sentences are.
//!
//! *Guarantees*: reads the checkout only, and changes nothing.
//! *Costs*: parses every file, about two seconds.
//! *Not for*: what the compiler or clippy know. Limits stand in `limits.txt`; the test `house` compares.

pub mod circles;
pub mod lengths;
pub mod limits;
pub mod prose;
pub mod sizes;
mod source;

pub use source::{Source, sources};
