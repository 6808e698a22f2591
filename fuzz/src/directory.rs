//! A run directory for one input.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Gone with this value.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Nothing in it.
    ///
    /// # Panics
    /// Where temporary files cannot be written.
    pub(crate) fn empty() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("lockstep-fuzz-run-{}-{number}", std::process::id());
        let directory = Self(std::env::temp_dir().join(name));
        fs::create_dir(&directory.0).expect("a temporary directory can be made");
        directory
    }

    /// A run without processes.
    ///
    /// # Panics
    /// As above.
    pub(crate) fn new(codec: &str) -> Self {
        let directory = Self::empty();
        for part in ["processes", "plans", "lines", "ends"] {
            let made = fs::create_dir(directory.0.join(part));
            made.expect("a temporary directory can be made");
        }
        let marker = format!(
            r#"{{"version":{},"codec":"{codec}"}}"#,
            lockstep_trace::VERSION
        );
        directory.write(lockstep_trace::MARKER, marker.as_bytes());
        directory
    }

    /// Puts a file there.
    ///
    /// # Panics
    /// As above.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).expect("a temporary file can be written");
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed stays in a temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}
