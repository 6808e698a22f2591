//! Runs in other tools' formats, and other tools' traces as runs. One file a foreign format.
//!
//! The principal functions are [`export`] and [`import`], with [`Target`] and [`Origin`] naming the format.
//!
//! | format | | what it shows | from |
//! |---|---|---|---|
//! | callgrind | out | calls by function and caller, wall time where it was recorded | the folded tree |
//! | collapsed | out | calls by stack | the folded tree |
//! | dot | out | the call graph | the folded tree |
//! | speedscope | out | timelines | events |
//! | perfetto | out | timelines, with arguments of MPI calls, and an arrow for each message | events |
//! | json | out | all events with arguments and times | events |
//! | parquet | out | a table of all calls with arguments and times; other tables that are handed over | events |
//! | otf2 | both | timelines: enter and leave; out: messages and collective operations | events |
//! | parlot | in | the original tool's files | |
//! | uftrace | in | its data directory, with times | |
//! | chrome | in | trace events B, E, X, with times | |
//!
//! *Guarantees*: a file appears whole or not at all; what a format cannot show is told in the notes that come
//! back; no panic and no hang on any input, and no more memory than each reader's first page says. *Costs*: formats that show events are written as events are decoded, in memory of the open calls;
//! formats that sum up need the folded tree. *Not for*: analysis; terminals.

mod along;
mod callgrind;
mod chrome;
mod collapsed;
mod dot;
mod draft;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod json;
mod kept;
mod lines;
mod measured;
mod otf2;
mod parlot;
mod parquet;
mod perfetto;
mod placed;
mod profile;
mod protobuf;
mod spans;
mod speedscope;
mod table;
mod text;
mod uftrace;
mod view;

pub use draft::Draft;
pub use error::{Error, Place};
pub use measured::{Measured, measured};
pub use table::{Column, Table, Value};
pub use view::{Edge, View};

use lockstep_comm::Talk;
use lockstep_trace::{Run, Thread};
use lockstep_writer::Builder;
use profile::Folded;
use spans::Clock;
use std::fs::File;
use std::io::{self, BufWriter, Write};
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
    /// Perfetto's trace packets.
    Perfetto,
    /// An archive of OTF2.
    Otf2,
    /// All events.
    Json,
    /// A table of all calls.
    Parquet,
}

/// Writes the traces `threads` of `run` into a new file (of OTF2: a directory) at `path`. What should be known about it comes back,
/// in sentences. A device or a pipe that is at `path` is written to, and stays there; a link to a file stays, and its file is replaced.
///
/// # Errors
/// Where something else is at `path` (a file may be, where `replace`), or it cannot be written; then nothing is
/// left behind.
pub fn export(
    run: &Run,
    threads: &[&Thread],
    (target, view): (Target, &View),
    path: &Path,
    replace: bool,
) -> Result<Vec<String>, Error> {
    if target != Target::Otf2 {
        return put(path, replace, |out| {
            write(run, threads, (target, view), out)
        });
    }
    let draft = Draft::new(path, false)?;
    let talk = Talk::new(run, threads);
    let clock = Clock::by(&talk, threads);
    draft.directory()?;
    let how = (&clock, &view.unfolded());
    let written = otf2::write::write(run, threads, how, &talk, draft.path());
    let left_out = written.map_err(|error| Error::write(path, error))?;
    draft.keep()?;
    let notes = [clock.sentence()].into_iter();
    Ok(notes.chain(untold(&talk, left_out)).collect())
}

/// Writes a table as a file of Parquet, likewise.
///
/// # Errors
/// As those of [`export`].
pub fn export_table(table: &Table, path: &Path, replace: bool) -> Result<(), Error> {
    put(path, replace, |out| table.write(out))
}

/// The same into `out`.
///
/// # Errors
/// Those of `out`.
pub fn write_table(table: &Table, out: &mut impl Write) -> io::Result<()> {
    table.write(out)
}

/// Fills the file at `path`.
fn put<T>(
    path: &Path,
    replace: bool,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T, Error> {
    if is_stream(path) {
        let failed = |error| Error::write(path, error);
        let file = File::options().write(true).open(path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let filled = fill(&mut out).map_err(failed)?;
        out.flush().map_err(failed)?;
        return Ok(filled);
    }
    let place = path.canonicalize().ok().filter(|_| replace);
    let draft = Draft::new(place.as_deref().unwrap_or(path), replace)?;
    let filled = draft.file(fill)?;
    draft.keep()?;
    Ok(filled)
}

/// Whether bytes that are written there go on to somebody else: to a device, a pipe, what `>(...)` of a shell stands for.
fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The same into `out`.
///
/// # Errors
/// Those of `out`; and of OTF2, which is several files.
pub fn write(
    run: &Run,
    threads: &[&Thread],
    (target, view): (Target, &View),
    out: &mut impl Write,
) -> io::Result<Vec<String>> {
    let clock = || Clock::of(run, threads);
    let mut notes = Vec::new();
    let is_summed = matches!(target, Target::Callgrind | Target::Collapsed | Target::Dot);
    let folded = Folded::new(run, if is_summed { threads } else { &[] }, view)?;
    notes.extend(folded.left_out.clone());
    match target {
        Target::Callgrind => {
            if callgrind::write(&folded, threads, view, out)? {
                let text = "costs are calls, and wall time: what lies between two times that were read counts for the \
                            function that was open all the while";
                notes.push(text.to_owned());
            } else {
                notes.push(
                    "costs are calls: no times were recorded for all of these traces".to_owned(),
                );
            }
        }
        Target::Collapsed => {
            notes.push("counts are calls".to_owned());
            let cut = collapsed::write(&folded, out)?;
            if cut > 0 {
                notes.push(format!(
                    "stacks were cut where they are 4096 deep: {cut} calls below count there"
                ));
            }
        }
        Target::Otf2 => {
            let text = "expected one file, found an archive of several";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Target::Dot => dot::write(&folded, out)?,
        Target::Speedscope => {
            let clock = clock();
            let left_out = speedscope::write(run, threads, (&clock, view), out)?;
            notes.push(clock.sentence());
            notes.extend(folds(left_out));
        }
        Target::Perfetto => {
            let talk = Talk::new(run, threads);
            let clock = Clock::by(&talk, threads);
            let left_out = perfetto::write(run, threads, (&clock, view), &talk, out)?;
            notes.push(clock.sentence());
            notes.extend(untold(&talk, 0));
            notes.extend(folds(left_out));
        }
        Target::Json => {
            let clock = clock();
            json::write(run, threads, (&clock, view), out)?;
            notes.push(clock.sentence());
        }
        Target::Parquet => {
            let clock = clock();
            parquet::write(run, threads, (&clock, &view.unfolded()), out)?;
            notes.push(clock.sentence());
        }
    }
    Ok(notes)
}

/// What is said of messages and shares of collective operations that are not told.
fn untold(talk: &Talk, left_out: u64) -> Option<String> {
    let too_much = || {
        format!(
            "no message is told: the ranks have more than {} sends, receives and shares of collective operations",
            lockstep_comm::talk::MOST
        )
    };
    let left_out = (left_out > 0).then(|| {
        format!(
            "{left_out} sends, receives and shares of collective operations have no record: the other end, the length or \
             the members of the communicator are not known, or not exported"
        )
    });
    left_out.or_else(|| talk.is_too_much().then(too_much))
}

/// What is said of calls that a viewer does not get.
fn folds(left_out: u64) -> Option<String> {
    (left_out > 0).then(|| {
        format!(
            "{left_out} calls are left out that began and ended between two times that were read: --every-call shows them, \
             without width"
        )
    })
}

/// A format to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Files of the original tool.
    Parlot,
    /// A data directory of uftrace.
    Uftrace,
    /// Chrome's trace events.
    Chrome,
    /// An archive of OTF2.
    Otf2,
}

/// A run that was read, and is put into its place by [`Draft::keep`].
#[derive(Debug)]
pub struct Imported {
    /// The run.
    pub draft: Draft,
    /// What should be known about it, in sentences.
    pub notes: Vec<String>,
}

/// Reads `path` into a run beside `output`, where it is put when it is kept. Where `replace`, something may be at
/// `output`, and the caller removes it before.
///
/// # Errors
/// Where `path` is not what it should be, or the run cannot be written; then nothing is left behind.
pub fn import(
    origin: Origin,
    path: &Path,
    output: &Path,
    replace: bool,
) -> Result<Imported, Error> {
    let draft = if replace {
        Draft::in_place_of(output)?
    } else {
        Draft::new(output, false)?
    };
    draft.directory()?;
    let mut run = Builder::new(draft.path())?;
    let notes = read(origin, path, &mut run)?;
    run.finish(&serde_json::json!({"from": origin.name(), "path": path.to_string_lossy()}))?;
    Ok(Imported { draft, notes })
}

fn read(origin: Origin, path: &Path, run: &mut Builder) -> Result<Vec<String>, Error> {
    match origin {
        Origin::Parlot => parlot::read(path, run),
        Origin::Uftrace => uftrace::read(path, run),
        Origin::Chrome => chrome::read(path, run),
        Origin::Otf2 => otf2::read::read(path, run),
    }
}

impl Origin {
    /// Its name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parlot => "parlot",
            Self::Uftrace => "uftrace",
            Self::Chrome => "chrome",
            Self::Otf2 => "otf2",
        }
    }
}
