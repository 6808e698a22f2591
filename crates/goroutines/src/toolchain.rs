//! The Go toolchain that a module selects: asked in the module's own directory, for a `go` line may name another one
//! than that on the path.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// `GOROOT`
    pub root: PathBuf,
    /// `go1.26.8`
    pub version: String,
    /// Where the sources of modules lie, which cannot be overlaid.
    pub modules: PathBuf,
    /// What the user builds everything with.
    pub flags: String,
    /// Second number of the version: 26.
    pub minor: u32,
}

/// The oldest that the overlay was written for.
pub const OLDEST: u32 = 25;

/// Why there is no toolchain.
#[derive(Debug, thiserror::Error)]
pub enum ToolchainError {
    /// There is no `go`.
    #[error("expected the go command on PATH, found none: {0}")]
    None(String),
    /// `go env` failed.
    #[error("go env failed in {}: {said}", directory.display())]
    Failed {
        /// Where it was asked.
        directory: PathBuf,
        /// What it said.
        said: String,
    },
    /// It is too old, or for another machine.
    #[error("expected Go 1.{OLDEST} or later for linux/amd64, found {0}")]
    Unsupported(String),
}

impl Toolchain {
    /// The toolchain of the module around `directory`.
    ///
    /// # Errors
    /// Where there is none that serves.
    pub fn of(directory: &Path) -> Result<Self, ToolchainError> {
        let output = Command::new("go")
            .args([
                "env",
                "GOROOT",
                "GOVERSION",
                "GOFLAGS",
                "GOOS",
                "GOARCH",
                "GOMODCACHE",
            ])
            .current_dir(directory)
            .output()
            .map_err(|error| ToolchainError::None(error.to_string()))?;
        if !output.status.success() {
            return Err(ToolchainError::Failed {
                directory: directory.to_owned(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            });
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (root, version, flags) = (next(), next(), next());
        let (system, machine) = (next(), next());
        let modules = PathBuf::from(next());
        let minor = version
            .strip_prefix("go1.")
            .map(|rest| {
                rest.chars()
                    .take_while(char::is_ascii_digit)
                    .collect::<String>()
            })
            .and_then(|digits| digits.parse().ok())
            .unwrap_or(0);
        if minor < OLDEST || system != "linux" || machine != "amd64" {
            return Err(ToolchainError::Unsupported(format!(
                "{version} for {system}/{machine}"
            )));
        }
        Ok(Self {
            root: PathBuf::from(root),
            version,
            modules,
            flags,
            minor,
        })
    }
}
