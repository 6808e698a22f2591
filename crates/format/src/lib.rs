//! The bytes that `lockstep` writes: the process file of a traced process, the codecs of its event
//! streams, and the patch plan of an image.
//!
//! The crate is the one thing that the probe (which lives inside somebody else's process) and the
//! readers share. `docs/trace-format.md` is the normative text; a test compares its byte tables with
//! the constants here.
//!
//! *Guarantees*: no allocation, no dependency, no `unsafe`, no panic on any input.
//! *Costs*: offsets instead of structs; everything is little endian.
//! *Not for*: opening files or deciding what a run means (that is `trace`).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod arithmetic;
pub mod budget;
pub mod buffer;
pub mod bytes;
pub mod capture;
pub mod check;
pub mod codec;
pub mod digest;
pub mod fault;
pub mod hold;
pub mod launcher;
pub mod pack;
pub mod plan;
pub mod process;
pub mod sealed;
pub mod side;
pub mod stamp;
pub mod stat;
pub mod symbol;
