//! Why a run cannot be opened, or a trace not be found in it.

use crate::map::Shortage;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run cannot be opened at all. What is damaged *inside* a run is no error but a note
/// ([`crate::Run::notes`]), and the rest is read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No run lies there.
    #[error("{}: expected a run (a directory with {marker}), found {found}", path.display(), marker = crate::MARKER)]
    NotARun {
        /// Where we looked.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// A run of another format version.
    #[error("{}: expected a run of a format version from {oldest} to {expected}, found version {found}{written_by}", path.display(), oldest = lockstep_format::process::OLDEST)]
    Version {
        /// The marker file.
        path: PathBuf,
        /// The latest version that this build reads.
        expected: u32,
        /// The version that stands there.
        found: String,
        /// ` of lockstep 0.2.0`, where the marker says what wrote the run.
        written_by: String,
    },
    /// The run is sealed, and its file does not hold.
    #[error("{}: {text}", path.display())]
    Sealed {
        /// The file.
        path: PathBuf,
        /// The place, what was expected there, and what was found.
        text: String,
    },
    /// Not all of it could be opened, as this process, or the system, may not have more open files.
    #[error("{}: expected a free file descriptor to open it with, found none ({limit})", path.display())]
    Descriptors {
        /// What was to be opened.
        path: PathBuf,
        /// Which limit it was.
        limit: String,
    },
    /// The operating system refused to read.
    #[error("{}: {source}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
}

impl Error {
    /// The error of a file that could not be opened or read.
    pub(crate) fn reading(path: &Path, source: io::Error) -> Self {
        match Shortage::of(&source) {
            Some(shortage) => Self::short(path, shortage),
            None => Self::Read {
                path: path.to_owned(),
                source,
            },
        }
    }

    pub(crate) fn short(path: &Path, shortage: Shortage) -> Self {
        Self::Descriptors {
            path: path.to_owned(),
            limit: shortage.to_string(),
        }
    }
}
