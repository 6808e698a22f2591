//! Why something cannot be written.

use std::io;
use std::path::{Path, PathBuf};

/// Why something cannot be written. Nothing half-written is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to write.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
    /// Something is there already.
    #[error("{}: expected a new path, found {found} (--force replaces it)", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
}

impl Error {
    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}
