//! The shared call tree: what any number of threads did, equal subtrees stored once, loops folded.
//!
//! The principal type is [`Forest`]. A trace is a [`NodeId`] in it; so is every call, loop and
//! iteration. Equal behaviour is the same node, in whatever thread, rank or run it happened, so that
//! comparing two traces costs what differs, not what happened.
//!
//! ```text
//!  events of a thread                   its tree                      the nodes
//!  main f a a return ... (10^6 times)   main ─ L0^1000000 ─ f ─ L1^2 ─ a      main, loop, f, loop, a
//! ```
//!
//! Every frame folds its own child list ([`lockstep_loops`], bodies of up to [`K`] elements). Two
//! children are equal in that sense when their *shapes* are: the same calls in the same loops, whatever
//! the trip counts. The counts themselves stay in the nodes (a loop lists its iterations as runs of
//! equal nodes), so nothing is lost.
//!
//! * A call that was open at the end is marked, equal to no closed one, and part of no loop.
//! * A tail call is nested: the frame that handed over returns after it ([`Call::tail`] marks the
//!   callee, and is not part of the shape).
//! * A return without a call (a stack inherited by `fork`, damage) is a node of its own.
//!
//! Events are counted as `call` and `return`, from 0, in that nested view.
//!
//! *Guarantees*: the events can be given back exactly ([`Forest::tokens`]); the same event sequence
//! is the same node, and the same [`Forest::hash`] in whatever forest; projections fold as if the
//! other functions had never been there; no recursion on the depth of calls.
//! *Costs*: about 50 ns a call to build; memory for distinct behaviour, distinct combinations of trip
//! counts included, or no more than [`Forest::bounded`] allows: then [`left_out`] says what is not in the trees; queries
//! descend in O(depth x log list).
//! *Not for*: times and arguments.

mod build;
mod calls;
mod children;
mod filter;
mod forest;
mod function;
mod grown;
mod node;
mod outline;
mod pieces;
mod position;
mod sealing;
mod walk;

#[cfg(test)]
mod bounds_tests;

pub use build::Builder;
pub use calls::{CallEdge, Counts, FunctionCalls};
pub use filter::Projection;
pub use forest::{Forest, FunctionMap, Trace, left_out};
pub use function::{Function, FunctionKey};
pub use grown::Grown;
pub use node::{Call, Item, Label, Node, NodeId, Shape};
pub use outline::{OutlineLine, Trips};
pub use position::{LoopAt, Position, StackFrame};
pub use sealing::trees;
pub use walk::{Token, fold_tokens};

/// The longest loop body in a child list, in elements. Fixed: it is part of what a shape means.
pub const K: usize = 32;
