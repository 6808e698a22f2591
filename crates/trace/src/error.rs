//! Why a run cannot be opened, or a trace not be found in it.

use std::io;
use std::path::PathBuf;

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
    #[error("{}: expected a run of format version {expected}, found version {found}", path.display())]
    Version {
        /// The marker file.
        path: PathBuf,
        /// The version that this build reads.
        expected: u32,
        /// The version that stands there.
        found: String,
    },
    /// The run is sealed, and its file does not hold.
    #[error("{}: {text}", path.display())]
    Sealed {
        /// The file.
        path: PathBuf,
        /// The place, what was expected there, and what was found.
        text: String,
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
