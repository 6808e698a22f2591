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
//!
//! With `--pack` the last of them puts all files into one, `RUN/processes/HOST-PID-START.pack`, and what is known of
//! their processes' ends into `RUN/ends/HOST-PID-START.pack`. What is packed is removed when the pack is on the disk.

use crate::Options;
use crate::directory::{self, MARKER};
use crate::error::Error;
use crate::kept;
use crate::own;
use crate::pack::{self, Input};
use crate::process::{self, FileName, host_in_names, redacted};
use crate::program::plain;
use crate::tally::ProcessFile;
use lockstep_format::buffer::FOLDER;
use lockstep_format::digest::Digest;
use lockstep_format::process::SUFFIX;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
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
    /// One file of all.
    packs: bool,
}

impl Buffer {
    /// Makes the directory in `parent`, unless another recorder of the job has.
    pub(crate) fn make(parent: &Path, run: &Path, options: &Options) -> Result<Self, Error> {
        let failed = |error: &io::Error| {
            Error::own(format!("--buffer {}: {}", parent.display(), plain(error)))
        };
        let parent = parent.canonicalize().map_err(|error| failed(&error))?;
        let marker = fs::read(run.join(MARKER)).map_err(|error| failed(&error))?;
        // A former run in the same place has another marker.
        let key = [run.as_os_str().as_bytes(), &marker].concat();
        let digest = Digest::of(&key);
        let place = parent.join(format!("lockstep-{}", String::from_utf8_lossy(&digest)));
        let host = if options.redact {
            redacted(&process::host())
        } else {
            host_in_names()
        };
        let buffer = Self {
            name: directory::own_name(options.redact),
            place,
            host,
            packs: options.pack,
        };
        buffer.enter(run).map_err(|error| failed(&error))?;
        Ok(buffer)
    }

    fn enter(&self, run: &Path) -> io::Result<()> {
        enter(&self.place, |place| {
            match own::create(&place.join(&self.name)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made.map(drop),
            }
        })?;
        enter(&run.join(FOLDER), |folder| {
            let draft = folder.join(format!(".{}", self.name));
            let path = self.place.as_os_str().as_bytes();
            own::put(&draft, &folder.join(&self.name), path)
        })
    }

    /// Where this node's process files are.
    pub(crate) fn place(&self) -> &Path {
        &self.place
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
        // Of recorders that pack and end at the same moment, one must know that it is the last.
        let lock = File::open(&self.place).ok().filter(|_| self.packs);
        let _ = lock
            .as_ref()
            .map(|it| flock(it, FlockOperation::LockExclusive));
        let has_others = recorders(&self.place)
            .iter()
            .any(|(name, recorder)| *name != self.name && recorder.is_alive());
        let left = match self.packs {
            true if has_others => Ok(0),
            true => pack_from(&self.place, run, &self.name),
            false => gather_from(&self.place, run),
        };
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
        match fs::symlink_metadata(place) {
            Ok(found) if found.is_dir() && own::is_trusted(found.uid(), found.mode()) => {}
            Ok(_) => {
                return Err(io::Error::other(format!(
                    "{} belongs to somebody else",
                    place.display()
                )));
            }
            // Removed meanwhile.
            Err(_) => continue,
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
        // It names a directory from which files are moved.
        let file = own::open_trusted(&entry.path()).ok()?;
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
    // What the recorder would have done at its end.
    kept::trim(run);
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

/// The files of processes that ended, and how many others there are.
fn ended(place: &Path) -> io::Result<(Vec<(FileName, Input)>, usize)> {
    let mut found = Vec::new();
    let mut running = 0;
    for entry in fs::read_dir(place)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = FileName::parse(&name) else {
            continue;
        };
        if process.is_alive() {
            running += 1;
            continue;
        }
        let path = entry.path();
        match used(&path) {
            Ok(length) => found.push((process, Input { name, path, length })),
            // Another recorder put it into the run.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    Ok((found, running))
}

/// Bytes that a process file uses.
fn used(path: &Path) -> io::Result<u64> {
    Ok(match ProcessFile::open(&path.to_owned().into())? {
        Some(file) => file.used(),
        // Damaged: readers say so.
        None => fs::metadata(path)?.len(),
    })
}

/// Moves the files of processes that ended; how many others there are. Another recorder may be doing
/// the same: then both copies are the same.
fn gather_from(place: &Path, run: &Path) -> io::Result<usize> {
    let (files, running) = ended(place)?;
    for (_, file) in files {
        match move_file(&file, run) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(running)
}

/// Packs them instead, under the name of this recorder.
fn pack_from(place: &Path, run: &Path, name: &str) -> io::Result<usize> {
    let (files, running) = ended(place)?;
    let (processes, files): (Vec<FileName>, Vec<Input>) = files.into_iter().unzip();
    let name = format!("{name}{}", lockstep_format::pack::SUFFIX);
    move_into(&files, &run.join("processes").join(&name))?;
    let folder = run.join("ends");
    let ends: BTreeSet<String> = processes.iter().map(FileName::end).collect();
    let ends = ends.into_iter().filter_map(|name| {
        let path = folder.join(&name);
        let length = fs::metadata(&path).ok()?.len();
        Some(Input { name, path, length })
    });
    // Where there is no room, they stay as they are.
    let _ = move_into(&ends.collect::<Vec<_>>(), &folder.join(&name));
    Ok(running)
}

fn move_into(files: &[Input], pack: &Path) -> io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    pack::write(files, pack)?;
    for file in files {
        let _ = fs::remove_file(&file.path);
    }
    Ok(())
}

/// Copies what is used of a process file; it is in the run as a whole or not at all.
fn move_file(file: &Input, run: &Path) -> io::Result<()> {
    let folder = run.join("processes");
    let draft = folder.join(format!(".{}.{}", file.name, std::process::id()));
    let copied = own::create_draft(&draft)
        .and_then(|mut to| io::copy(&mut own::open(&file.path)?.take(file.length), &mut to))
        .and_then(|_| fs::rename(&draft, folder.join(&file.name)));
    if copied.is_err() {
        let _ = fs::remove_file(&draft);
    }
    copied?;
    fs::remove_file(&file.path)
}
