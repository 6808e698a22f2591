//! Opens a run and gives its processes, threads, functions and events.
//!
//! The principal type is [`Run`]. A run is read as it lies: finished, killed, still growing, cut off
//! or damaged; what could not be read is said in [`Run::notes`] and in the thread it concerns.
//!
//! *Guarantees*: nothing in a run directory is followed (no links out of it) or executed; no panic on
//! any content. *Costs*: files are mapped, events are decoded as they are asked for.
//! *Not for*: analysis (`calltree` and above).

mod calls;
mod catalogue;
mod container;
mod ends;
mod error;
mod frames;
mod map;
mod mirror;
mod model;
mod name;
mod naming;
mod open;
mod select;
mod stream;
mod symbols;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod writer;

pub use error::Error;
pub use frames::{Frames, Open};
pub use model::{
    Coverage, End, EndKind, Event, Frame, Function, FunctionId, Process, Refused, Run, SourceLine,
    Thread,
};
pub use name::{ProcessName, ThreadName, TraceName};
pub use select::{NotASelection, Selection, in_short, ranges};
pub use stream::Events;

/// The file that makes a directory a run.
pub const MARKER: &str = "lockstep.json";
/// Version of the run directory's layout; any other is refused.
pub const VERSION: u32 = lockstep_format::process::VERSION;
