//! Opens a run and gives its processes, threads, functions and events.
//!
//! The principal type is [`Run`]. A run is read as it lies: finished, killed, still growing, cut off
//! or damaged; what could not be read is said in [`Run::notes`] and in the thread it concerns.
//!
//! ```no_run
//! # fn main() -> Result<(), lockstep_trace::Error> {
//! use lockstep_trace::{Event, Run};
//! let run = Run::open("lockstep-runs/app-1".as_ref())?;
//! for trace in run.traces() {
//!     let calls = trace.events().filter(|event| matches!(event, Event::Call(_)));
//!     let calls = calls.count();
//!     let within = trace.open.last().map(|frame| &run.function(frame.function).name);
//!     assert!(within.is_none() || calls > 0);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! *Guarantees*: nothing in a run directory is followed (no links out of it) or executed; no panic on
//! any content; no event differs from what was recorded without a note that says so.
//! *Costs*: files are mapped, or copied where their streams are short (8 KiB) and not kept; opening decodes every stream once, in parallel (about 10 ns an event and
//! core), and keeps no events; each pass over a trace decodes it again. A run that is opened again and again while it
//! grows ([`Live`]) is decoded where it grew.
//! *Not for*: analysis (`calltree` and above). A file that somebody shortens while it is mapped ends
//! the reader (SIGBUS); recorders never shorten one.

mod arguments;
mod catalogue;
mod code;
mod container;
mod ends;
mod error;
mod fact;
mod frames;
mod handles;
mod holds;
mod inferred;
mod json;
mod live;
mod load;
mod map;
mod mirror;
mod model;
mod name;
mod naming;
mod open;
mod outline;
mod pack;
mod printable;
mod recent;
mod scans;
pub mod sealed;
mod select;
mod site;
mod stack;
mod stream;
mod symbols;
mod times;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod live_tests;
#[cfg(test)]
mod only_tests;
#[cfg(test)]
mod open_tests;
#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod writer;

pub use arguments::{
    Annotated, Argument, Arguments, ArgumentsMark, Buffer, Handle, Lap, Record, RecordKey, Records,
    RecordsMark, Value,
};
pub use code::Code;
pub use error::Error;
pub use fact::Fact;
pub use frames::{Frames, Open};
pub use holds::{Hold, HoldState, Holds};
pub use live::Live;
/// What is known of MPI functions: kinds of parameters.
pub use lockstep_api::{mpi, threads};
pub use lockstep_binary::{
    base_name, brief, c_name, fold_long, fold_templates, is_standard, original_name,
};
pub use model::{
    Compiled, Coverage, End, EndKind, Event, Frame, Function, FunctionId, Process, Refused, Run,
    SourceLine, Thread,
};
pub use name::{ProcessName, ThreadName, TraceName};
pub use open::Sealable;
pub use outline::{Outline, Outlined};
pub use printable::{is_hidden, printable, printable_but};
pub use select::{NotASelection, Selection, Selections, in_short, names_in_short, ranges};
pub use site::Site;
pub use stream::{Bookmark, Events, Round, StreamId};
pub use times::{Timeline, Times, When};

/// The file that makes a directory a run.
pub const MARKER: &str = "lockstep.json";
/// Version of the run directory's layout; any other is refused.
pub const VERSION: u32 = lockstep_format::process::VERSION;
