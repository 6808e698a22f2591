//! Directories for one test.

use std::ffi::OsStr;
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
            std::fs::remove_dir_all(&path).expect("a stale scratch directory can be removed");
        }
        std::fs::create_dir_all(&path).expect("a scratch directory can be made");
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
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            crate::tools::note(&format!("kept for a look: {}", self.path.display()));
        } else {
            // What cannot be removed stays in a temporary directory.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
