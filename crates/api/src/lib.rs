//! What functions of other libraries mean: tables of MPI, of threads and of calls that wait.
//!
//! This is the one place that knows a function by its name. Who asks what a call does gets a typed
//! answer ([`mpi::Meaning`]) and matches on that. To teach `lockstep` a new
//! function is to add its row.
//!
//! *Guarantees*: no allocation, no dependency, no `unsafe`; a function has one row; every prototype of
//! an installed `mpi.h` has a row with as many parameters (a test asks).
//! *Costs*: a name is found by a binary search or a short scan, so ask once for each function of a run, not for each call.
//! *Not for*: what a program's own functions do, and arguments of a call that was made (that is `trace`).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod mpi;
pub mod threads;
pub mod waits;
