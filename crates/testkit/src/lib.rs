//! For tests only: builds the traced programs, the probe and `lockstep`, runs them, and says what a
//! program's events should have been.
//!
//! A test reads like this:
//!
//! ```no_run
//! use lockstep_testkit::{Recipe, Scratch, record};
//!
//! let program = Recipe::new("c/leaf_calls.c").flag("-O2").build();
//! let scratch = Scratch::new("leaf-calls");
//! let run = record(&scratch, &[], &[program.as_os_str()]);
//! assert_eq!(run.outcome.status, 0);
//! assert!(run.text(&["events", "-t", "0.0"]).starts_with("call main"));
//! ```
//!
//! Principal types: [`Recipe`] (a program to build), [`Recording`] (a run just recorded), and
//! [`stepper`]'s event sequences.
//!
//! *Guarantees*: whatever is built is built once (kept under `target/testkit`, named by a hash of
//! source and command) and put in place by a rename, so that tests may run at the same time; every
//! process that is started has a time limit; a missing tool is said on stderr, past the test
//! harness' capture ([`tools::require`]).
//!
//! *Costs*: the first call of [`artifacts::lockstep`] in a process runs `cargo build`, which is quick where
//! nothing has changed; single-stepping runs a program about a thousand times slower.
//!
//! *Not for* the product: it panics where something is wrong, as tests do.

pub mod artifacts;
pub mod command;
pub mod elf;
pub mod facts;
pub mod gate;
pub mod generate;
pub mod hang;
pub mod hazard;
pub mod inject;
pub mod kill;
pub mod mpi;
mod recipe;
pub mod recording;
pub mod reports;
mod scratch;
pub mod starts;
pub mod statistics;
pub mod stepper;
pub mod suite;
pub mod tools;
pub mod zoo;

pub use hazard::{Hazard, Unharmed};
pub use recipe::Recipe;
pub use recording::{Recording, lockstep, record, record_ended};
pub use scratch::{Scratch, copy};
