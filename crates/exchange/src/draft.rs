//! Files and directories that appear whole or not at all: written under another name beside their
//! place, and renamed into it.

use crate::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Something that is being written. Dropped before [`Draft::keep`], it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    target: PathBuf,
    path: PathBuf,
    is_kept: bool,
}

impl Draft {
    /// Checks the place, and chooses a name beside it. Where `replace`, a file (not a directory) may be there.
    pub(crate) fn new(target: &Path, replace: bool) -> Result<Self, Error> {
        if let Ok(found) = fs::symlink_metadata(target) {
            let is_directory = found.is_dir();
            if !replace || is_directory {
                return Err(Error::Exists {
                    path: target.to_owned(),
                    found: if is_directory {
                        "a directory"
                    } else {
                        "a file"
                    },
                });
            }
        }
        Self::in_place_of(target)
    }

    /// The same whatever is there; it must be gone before [`Draft::keep`].
    pub(crate) fn in_place_of(target: &Path) -> Result<Self, Error> {
        let name = target.file_name().ok_or_else(|| {
            let no_name = io::Error::new(io::ErrorKind::InvalidInput, "no file name");
            Error::write(target, no_name)
        })?;
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}", std::process::id()));
        Ok(Self {
            target: target.to_owned(),
            path: target.with_file_name(beside),
            is_kept: false,
        })
    }

    /// Where it is being written.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it a directory.
    pub(crate) fn directory(&self) -> Result<(), Error> {
        fs::create_dir(&self.path).map_err(|error| Error::write(&self.target, error))
    }

    /// Lets `write` write a file.
    pub(crate) fn file<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> Result<T, Error> {
        let failed = |error| Error::write(&self.target, error);
        let file = File::create_new(&self.path).map_err(failed)?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let told = write(&mut out).map_err(failed)?;
        out.flush().map_err(failed)?;
        Ok(told)
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// Where the operating system refuses; then it is gone.
    pub fn keep(mut self) -> Result<(), Error> {
        fs::rename(&self.path, &self.target).map_err(|error| Error::write(&self.target, error))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept {
            // One of the two fails; what cannot be removed stays.
            let _ = fs::remove_file(&self.path);
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
