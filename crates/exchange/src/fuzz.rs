//! Bodies for hostile input, one a reader: called by tests with random and mutated bytes, and by a fuzz target.
//!
//! A format of several files is one text here: files divided by [`DIVIDER`], in the order that the function says. What a reader
//! accepts must be a run without damage; what it refuses must say something; both within a bound of events.

use crate::error::Error;
use crate::{Origin, read};
use lockstep_trace::Run;
use lockstep_writer::Builder;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Between files.
pub const DIVIDER: &[u8] = b"\n--8<--\n";
/// Events that a reader may give.
const MOST_EVENTS: u64 = 1 << 16;

/// A directory that is gone with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockstep-fuzz-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The parts of `input`, the last of `names` taking all that is left.
fn lay_out(input: &[u8], names: &[&str], directory: &Path) -> std::io::Result<()> {
    let mut rest = input;
    for (index, name) in names.iter().enumerate() {
        let at = rest
            .windows(DIVIDER.len())
            .position(|window| window == DIVIDER)
            .filter(|_| index + 1 < names.len());
        let (file, later) = match at {
            Some(at) => (&rest[..at], &rest[at + DIVIDER.len()..]),
            None => (rest, &[][..]),
        };
        let path = directory.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, file)?;
        rest = later;
    }
    Ok(())
}

/// Reads `input` laid out as `names`; `None` where it was refused, else the number of events.
fn body(
    origin: Origin,
    input: &[u8],
    names: &[&str],
    is_file: bool,
) -> Result<Option<u64>, String> {
    let scratch = Scratch::new().map_err(|error| error.to_string())?;
    let source = scratch.0.join("source");
    let output = scratch.0.join("run");
    let prepared = fs::create_dir(&source)
        .and_then(|()| fs::create_dir(&output))
        .and_then(|()| lay_out(input, names, &source));
    prepared.map_err(|error| error.to_string())?;
    let path = match names {
        [name] if is_file => source.join(name),
        _ => source,
    };
    let result = Builder::new(&output)
        .map_err(Error::from)
        .and_then(|mut run| {
            run.bound(MOST_EVENTS);
            read(origin, &path, &mut run)?;
            Ok(run.finish(&serde_json::json!({}))?)
        });
    match result {
        Ok(()) => {}
        Err(Error::Write { path, source }) => return Err(format!("{}: {source}", path.display())),
        Err(error) if error.to_string().is_empty() => return Err("no message".to_owned()),
        Err(_) => return Ok(None),
    }
    let run = Run::open(&output).map_err(|error| error.to_string())?;
    let notes = run
        .notes
        .iter()
        .filter(|note| *note != "no process was recorded");
    let notes: Vec<&str> = notes.map(String::as_str).collect();
    if !notes.is_empty() {
        return Err(notes.join("; "));
    }
    let events = run.traces().map(|thread| thread.events().count() as u64);
    Ok(Some(events.sum()))
}

/// Names, then the stream of one thread.
///
/// # Errors
/// What a reader must not do.
pub fn parlot(input: &[u8]) -> Result<Option<u64>, String> {
    body(
        Origin::Parlot,
        input,
        &["p.host.7.info", "p.host.7.0"],
        false,
    )
}

/// `info`, `task.txt`, a map, symbols, and the records of one thread.
///
/// # Errors
/// What a reader must not do.
pub fn uftrace(input: &[u8]) -> Result<Option<u64>, String> {
    let names = ["info", "task.txt", "sid-1.map", "app.sym", "7.dat"];
    body(Origin::Uftrace, input, &names, false)
}

/// The document.
///
/// # Errors
/// What a reader must not do.
pub fn chrome(input: &[u8]) -> Result<Option<u64>, String> {
    body(Origin::Chrome, input, &["trace.json"], true)
}

/// The anchor, global definitions, and the events of location 0.
///
/// # Errors
/// What a reader must not do.
pub fn otf2(input: &[u8]) -> Result<Option<u64>, String> {
    let names = ["traces.otf2", "traces.def", "traces/0.evt"];
    body(Origin::Otf2, input, &names, false)
}
