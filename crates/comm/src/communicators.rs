//! Communicators across ranks, and the world ranks behind the ranks that MPI calls name.
//!
//! A handle means something in one process, for a while; a rank means something in one communicator.
//! From the recorded calls of all ranks follows what they stand for:
//!
//! ```text
//! each thread's calls ── local: handle ──► the call that made it ─┐
//!                                                                 ├─► matching: k-th call on the same
//! each process's Comm_rank, Comm_size ── what it was told ────────┘   parent = the same communicator
//! ```
//! *Guarantees*: a world rank that is given follows from the calls, and nothing that a process was told
//! contradicts it; else it is unknown: where ranks or arguments are missing (`--keep last`, a library's
//! own communicators), several threads made communicators of one parent, or calls do not show enough
//! (`MPI_Comm_spawn`).
//! *Costs*: one pass over the records of all MPI calls, in parallel over processes; memory for the
//! communicators and their members.
//! *Not for*: matching messages; this is what such a room begins with ([`Communicators::calls`]).

mod communicator;
mod events;
mod find;
mod group;
mod known;
mod local;
mod matching;
mod resolved;
mod text;

#[cfg(test)]
mod tests;

pub use communicator::{Communicator, CommunicatorId, Members, Origin};
pub use events::{EventsMark, EventsOf, HandlesMark, ResolvedEvents, Resolver};
pub use find::Following;
pub use group::Group;
pub use known::Communicators;
pub use resolved::{Meaning, Peer, Resolved, Unresolved};
pub use text::Shown;
