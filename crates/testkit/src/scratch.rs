//! Directories for one test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// An empty directory that is removed with this value, unless the test fails: then it is kept and
/// its path is said.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A directory with `name` in its name, under the system's temporary directory.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::below(&std::env::temp_dir(), name)
    }

    /// The same under `parent`.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn below(parent: &Path, name: &str) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!(
            "lockstep-test-{name}-{}-{number}",
            std::process::id()
        ));
        if path.exists() {
            fs::remove_dir_all(&path).expect("a stale scratch directory can be removed");
        }
        fs::create_dir_all(&path).expect("a scratch directory can be made");
        Self { path }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// A directory in it for `record --buffer`, and its path as text.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn buffer(&self) -> (PathBuf, String) {
        let buffer = self.join("node-local");
        fs::create_dir_all(&buffer).expect("scratch can be written");
        let shown = buffer.display().to_string();
        (buffer, shown)
    }
}

/// Copies a directory with all that is in it.
///
/// # Panics
/// If it cannot be read or written.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("scratch can be written");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("scratch can be written");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::tools::note(&format!("kept for a look: {}", self.path.display()));
        } else {
            // What cannot be removed stays in a temporary directory.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
