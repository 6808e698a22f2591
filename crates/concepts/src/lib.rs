//! Formal contexts, their concept lattices, and the bit matrices under them.
//!
//! The principal type is [`Context`]: objects, attributes, and which object has which attribute.
//!
//! *Guarantees*: equal contexts give equal lattices, whatever the order of insertion. *Costs*: a
//! lattice may have exponentially many concepts, so every construction takes a limit and refuses
//! politely. *Not for*: what objects and attributes mean.

mod context;

pub use context::Context;
