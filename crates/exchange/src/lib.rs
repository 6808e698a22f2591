//! Runs in other tools' formats. One file a foreign format.
//!
//! The principal functions are [`export`], with [`Target`] naming the format.
//!
//! | format | | what it shows | from |
//! |---|---|---|---|
//! | callgrind | out | calls by function and caller, wall time where it was recorded | the folded tree |
//! | collapsed | out | calls by stack | the folded tree |
//! | dot | out | the call graph | the folded tree |
//! | speedscope | out | timelines | events |
//! | json | out | all events with arguments and times | events |
//!
//! *Guarantees*: a file appears whole or not at all; what a format cannot show is told in the notes that come
//! back. *Costs*: formats that show events are written as events are decoded, in memory of the open calls;
//! formats that sum up need the folded tree. *Not for*: analysis; terminals.

mod callgrind;
mod collapsed;
mod dot;
mod draft;
mod error;
mod json;
mod profile;
mod spans;
mod speedscope;
mod text;

pub use error::Error;

use draft::Draft;
use lockstep_trace::{Run, Thread};
use profile::Folded;
use spans::Clock;
use std::io::{self, Write};
use std::path::Path;

/// A format to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Callgrind's profile.
    Callgrind,
    /// speedscope's evented profiles.
    Speedscope,
    /// Stacks for flame graphs.
    Collapsed,
    /// The call graph for Graphviz.
    Dot,
    /// All events.
    Json,
}

/// Writes the traces `threads` of `run` into a new file at `path`. What should be known about it comes back,
/// in sentences.
///
/// # Errors
/// Where something is at `path` (a file may be, where `replace`), or it cannot be written; then nothing is
/// left behind.
pub fn export(
    run: &Run,
    threads: &[&Thread],
    target: Target,
    path: &Path,
    replace: bool,
) -> Result<Vec<String>, Error> {
    let draft = Draft::new(path, replace)?;
    let notes = draft.file(|out| write(run, threads, target, out))?;
    draft.keep()?;
    Ok(notes)
}

/// The same into `out`.
///
/// # Errors
/// Those of `out`.
pub fn write(
    run: &Run,
    threads: &[&Thread],
    target: Target,
    out: &mut impl Write,
) -> io::Result<Vec<String>> {
    let clock = || Clock::of(threads);
    let folded = || Folded::new(run, threads);
    let mut notes = Vec::new();
    match target {
        Target::Callgrind => {
            if callgrind::write(&folded(), threads, out)? == Clock::Recorded {
                notes.push("costs are calls, and wall time as far as it was read".to_owned());
            } else {
                notes.push(
                    "costs are calls: no times were recorded for all of these traces".to_owned(),
                );
            }
        }
        Target::Collapsed => {
            notes.push("counts are calls".to_owned());
            let cut = collapsed::write(&folded(), out)?;
            if cut > 0 {
                notes.push(format!(
                    "stacks were cut where they are 4096 deep: {cut} calls below count there"
                ));
            }
        }
        Target::Dot => dot::write(&folded(), out)?,
        Target::Speedscope => {
            let clock = clock();
            speedscope::write(run, threads, clock, out)?;
            notes.push(clock.sentence().to_owned());
        }
        Target::Json => {
            let clock = clock();
            json::write(run, threads, clock, out)?;
            notes.push(clock.sentence().to_owned());
        }
    }
    Ok(notes)
}
