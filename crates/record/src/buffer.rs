//! Node-local capture (`--buffer`): process files are written to a directory of the node, in memory
//! say, and put into the run when their processes have ended.
//!
//! ```text
//! RUN/buffers/HOST-PID-START         the directory's path; while this recorder runs
//! DIR/lockstep-DIGEST/HOST-PID-START                    empty; likewise
//! DIR/lockstep-DIGEST/HOST-PID-START-K.lockstep         a process file, on its way to RUN/processes
//! ```
//! The recorders of a job on a node share the directory. Where one of them was killed, both of its
//! entries stay, so that readers find what was recorded, and [`gather`] can still put it into the run.

use crate::directory::MARKER;
use crate::error::Error;
use crate::process::{self, FileName, host_in_names, redacted};
use crate::program::plain;
use crate::tally::ProcessFile;
use lockstep_format::buffer::FOLDER;
use lockstep_format::digest::Digest;
use lockstep_format::process::SUFFIX;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A path is not longer.
const MOST_PATH: u64 = 4096;

/// This recorder's share of a directory on its node.
#[derive(Debug)]
pub(crate) struct Buffer {
    place: PathBuf,
    /// Of this recorder's entries.
    name: String,
    host: String,
}

impl Buffer {
    /// Makes the directory in `parent`, unless another recorder of the job has.
    pub(crate) fn make(parent: &Path, run: &Path, redact: bool) -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            Error::own(format!("--buffer {}: {}", parent.display(), plain(error)))
        };
        let parent = parent.canonicalize().map_err(|error| failed(&error))?;
        let marker = fs::read(run.join(MARKER)).map_err(|error| failed(&error))?;
        // A former run in the same place has another marker.
        let key = [run.as_os_str().as_bytes(), &marker].concat();
        let digest = Digest::of(&key);
        let place = parent.join(format!("lockstep-{}", String::from_utf8_lossy(&digest)));
        let host = if redact {
            redacted(&process::host())
        } else {
            host_in_names()
        };
        let pid = std::process::id();
        let start = process::start_time(pid.cast_signed()).unwrap_or(0);
        let buffer = Self {
            name: format!("{host}-{pid}-{start}"),
            place,
            host,
        };
        buffer.enter(run).map_err(|error| failed(&error))?;
        Ok(buffer)
    }

    fn enter(&self, run: &Path) -> io::Result<()> {
        enter(&self.place, |place| {
            File::create(place.join(&self.name)).map(drop)
        })?;
        enter(&run.join(FOLDER), |folder| {
            let draft = folder.join(format!(".{}", self.name));
            let path = self.place.as_os_str().as_bytes();
            crate::put(&draft, &folder.join(&self.name), path)
        })
    }

    /// What the probe is told: host and directory. A process on another host, which this recorder
    /// cannot see, writes into the run.
    pub(crate) fn variable(&self) -> OsString {
        let mut value = OsString::from(&self.host);
        value.push(&self.place);
        value
    }

    /// When the command has ended: puts what is there into the run and leaves the directory. What
    /// cannot be put there stays, and is told.
    pub(crate) fn leave(&self, run: &Path) -> Option<String> {
        let has_others = recorders(&self.place)
            .iter()
            .any(|(name, recorder)| *name != self.name && recorder.is_alive());
        let left = gather_from(&self.place, run);
        let _ = fs::remove_file(self.place.join(&self.name));
        match left {
            // What still runs is for a recorder to gather that was here before we looked.
            Ok(running) if running == 0 || has_others => {
                let _ = fs::remove_file(run.join(FOLDER).join(&self.name));
                let _ = fs::remove_dir(run.join(FOLDER));
                let _ = fs::remove_dir(&self.place);
                None
            }
            Ok(running) => Some(format!(
                "{}: of {running} processes that are still running, events stay there; `lockstep seal` gathers them later",
                self.place.display()
            )),
            Err(error) => Some(format!(
                "{}: events stay there, since they could not be put into the run: {}; `lockstep seal` tries again",
                self.place.display(),
                plain(&error)
            )),
        }
    }
}

/// Makes a directory unless it is there, and an entry in it: the last of the other recorders may remove the
/// directory in between.
fn enter(place: &Path, make: impl Fn(&Path) -> io::Result<()>) -> io::Result<()> {
    loop {
        match fs::DirBuilder::new().mode(0o700).create(place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        match make(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            made => return made,
        }
    }
}

/// The directories of this run in which process files may be, on this node.
pub(crate) fn places(run: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(run.join(FOLDER)).into_iter().flatten();
    let paths = entries.flatten().filter_map(|entry| {
        let mut path = Vec::new();
        let file = File::open(entry.path()).ok()?;
        file.take(MOST_PATH).read_to_end(&mut path).ok()?;
        Some(PathBuf::from(OsString::from_vec(path)))
    });
    paths.filter(|path| path.is_absolute()).collect()
}

/// Puts into the run what recorders that were killed have left on this node.
///
/// # Errors
/// If something could not be put there, or belongs to a process that is still running.
pub fn gather(run: &Path) -> Result<(), Error> {
    for place in places(run).iter().filter(|place| place.is_dir()) {
        let failed = |text: &str| Error::own(format!("{}: {text}", place.display()));
        match gather_from(place, run) {
            Ok(0) => {}
            Ok(_) => return Err(failed("processes of the run are still running")),
            Err(error) => return Err(failed(&plain(&error))),
        }
        remove_entries(place, &run.join(FOLDER));
        let _ = fs::remove_dir(run.join(FOLDER));
        let _ = fs::remove_dir(place);
    }
    Ok(())
}

/// The recorders that have an entry in a directory, by its name.
fn recorders(place: &Path) -> Vec<(String, FileName)> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names
        .filter_map(|name| {
            let process = FileName::parse(&format!("{name}-0{SUFFIX}"))?;
            Some((name, process))
        })
        .collect()
}

/// Removes the entries of recorders that are gone.
fn remove_entries(place: &Path, folder: &Path) {
    for (name, recorder) in recorders(place) {
        if !recorder.is_alive() {
            let _ = fs::remove_file(folder.join(&name));
            let _ = fs::remove_file(place.join(&name));
        }
    }
}

/// Moves the files of processes that ended; how many others there are. Another recorder may be doing
/// the same: then both copies are the same.
fn gather_from(place: &Path, run: &Path) -> io::Result<usize> {
    let mut running = 0;
    for entry in fs::read_dir(place)?.flatten() {
        let name = entry.file_name();
        match name.to_str().and_then(FileName::parse) {
            Some(process) if process.is_alive() => running += 1,
            Some(_) => match move_file(&entry.path(), run, &name) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            },
            None => {}
        }
    }
    Ok(running)
}

/// Copies what is used of a process file; it is in the run as a whole or not at all.
fn move_file(from: &Path, run: &Path, name: &OsStr) -> io::Result<()> {
    let length = match ProcessFile::open(from)? {
        Some(file) => file.used(),
        // Damaged: readers say so.
        None => fs::metadata(from)?.len(),
    };
    let folder = run.join("processes");
    let mut draft = OsString::from(".");
    draft.push(name);
    draft.push(format!(".{}", std::process::id()));
    let draft = folder.join(draft);
    let copied = File::create(&draft)
        .and_then(|mut to| io::copy(&mut File::open(from)?.take(length), &mut to))
        .and_then(|_| fs::rename(&draft, folder.join(name)));
    if copied.is_err() {
        let _ = fs::remove_file(&draft);
    }
    copied?;
    fs::remove_file(from)
}
