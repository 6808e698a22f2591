//! Formal contexts, their concept lattices, and the bit matrices under them.
//!
//! The principal type is [`Context`] (objects, attributes, and which object has which attribute);
//! [`Lattice`] holds its concepts and their order.
//!
//! *Guarantees*: equal contexts give equal lattices, bit for bit, whatever the algorithm and the order
//! of insertion. *Costs*: a lattice may have exponentially many concepts, so every construction takes
//! a limit and refuses politely; memory is one bit an object and an attribute for each concept.
//! *Not for*: what objects and attributes mean.

mod bits;
mod close_by_one;
mod context;
pub mod csv;
pub mod cxt;
mod enumerate;
mod godin;
mod lattice;
mod order;
mod poset;

pub use bits::{BitMatrix, and_count, is_subset, ones};
pub use context::Context;
pub use enumerate::{count, intents};
pub use lattice::{Algorithm, Lattice, TooManyConcepts};
