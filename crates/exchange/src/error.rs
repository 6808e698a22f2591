//! Why something cannot be written or read.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// Byte, from 0.
    Byte(u64),
    /// Line, from 1, and the byte that it begins with.
    Line {
        /// Which one.
        number: u64,
        /// Where it begins, from 0.
        byte: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Byte(at) => write!(f, ", byte {at}"),
            Self::Line { number, byte } => write!(f, ", line {number} (byte {byte})"),
        }
    }
}

/// Why something cannot be written or read. Nothing half-written is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not what it should be.
    #[error("{}{place}: expected {expected}, found {found}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What should stand there.
        expected: String,
        /// What does.
        found: String,
    },
    /// The operating system refused to read.
    #[error("{}: {source}", path.display())]
    Read {
        /// What was to be read.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// More than a run, or this reader, has room for.
    #[error("{0}")]
    TooMuch(String),
    /// The operating system refused to write.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// Something is there already.
    #[error("{}: expected a new path, found {found} (--force replaces a file or a run, and nothing else)", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
}

impl Error {
    pub(crate) fn wrong(
        path: &Path,
        place: Place,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Wrong {
            path: path.to_owned(),
            place,
            expected: expected.into(),
            found: found.into(),
        }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}

impl From<lockstep_writer::Error> for Error {
    fn from(error: lockstep_writer::Error) -> Self {
        match error {
            lockstep_writer::Error::Write { path, source } => Self::Write { path, source },
            other => Self::TooMuch(other.to_string()),
        }
    }
}
