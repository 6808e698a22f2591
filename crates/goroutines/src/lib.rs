//! Concurrent Go programs: what their goroutines did, whether that can end, and what of it a test has covered
//! (GoAT), with an untouched toolchain.
//!
//! ```text
//!  usages ─► what there is to cover        overlay ─► build ─► run, under a schedule ─► ring
//!                                                                                        │
//!  report ◄─ coverage ◄─ verdict ◄─ waits ◄─ goroutine tree ◄─────────── Execution ◄─────┘
//!                                    foresight: orders of turns that are near ◄──┤ ─► run again, in that order
//!                                    script: its own order, and its clock     ◄──┘ ─► the same run again
//! ```
//!
//! The one type that both halves share is [`Execution`]: capturing makes it, analysis takes it.
//!
//! *Guarantees*: a verdict follows from states, never from a timeout alone; no committed record of a killed
//! program is lost; the user's sources and toolchain are not touched.
//! *Not for*: programs that are not built from source, other systems than Linux on x86-64.

pub mod build;
pub mod campaign;
pub mod capture;
mod clock;
pub mod coverage;
pub mod doctor;
pub mod dot;
pub mod execution;
pub mod foresight;
pub mod fuzz;
mod known;
pub mod launch;
mod livelock;
mod network;
pub mod output;
mod outside;
pub mod overlay;
pub mod paths;
pub mod prediction;
mod race;
mod replay;
pub mod ring;
pub mod schedule;
pub mod script;
pub mod shiviz;
mod sources;
pub mod store;
pub mod symbols;
pub mod toolchain;
pub mod trace;
mod tree;
pub mod usages;
pub mod verdict;
mod waits;
mod words;

pub use coverage::Coverage;
pub use execution::Execution;
pub use prediction::{predict, predict_with};
pub use race::{Access, accesses};
pub use replay::Hold;
pub use tree::{Node, NodeId, Place, Tree};
pub use verdict::{Concerned, Judgement, Verdict, WaitsFor, judge, waits};
pub use waits::{Need, Wait, Waiting, Way};

#[cfg(test)]
mod sample;
