//! Facts about an ELF file: what kind of program it is, its functions and their ranges, what it
//! imports and through which slots, names for people, source lines.
//!
//! The principal type is [`Image`]: parsed headers over the bytes of a file, each further fact
//! computed when asked for.
//!
//! *Guarantees*: pure over bytes (no file is opened, nothing is mapped), no `unsafe`, no panic and
//! no allocation beyond a small multiple of the file's size on any input. Addresses are those of
//! the file (bias 0). A file that lies about one thing (a symbol table beyond its end, say) still
//! gives the other facts.
//! *Costs*: [`Image::parse`] reads headers only; [`Image::ranges`] is linear in `.eh_frame` and the
//! symbol tables (some 20 ms for 20,000 functions); [`Lines`] parses debug information unit by unit.
//! *Not for*: decoding instructions, or deciding what to do with a function (that is `patch`).
#![forbid(unsafe_code)]

mod built;
mod debug;
mod frames;
mod image;
mod imports;
mod lines;
mod name;
mod program;
mod ranges;
mod unwind;

pub use built::Built;
pub use debug::debug_file;
pub use frames::{DebugSections, Frame, Frames};
pub use image::{Image, Section, Segment};
pub use imports::Import;
pub use lines::{Lines, is_of_the_system};
pub use name::{
    base_name, brief, c_name, display_name, fold_long, fold_templates, is_standard, original_name,
};
pub use program::{Kind, Unsuitable, check_program};
pub use ranges::{CodeRange, FunctionSymbol, RangeKind};
