//! The Go toolchain that a module selects: asked in the module's own directory, for a `go` line may name another one
//! than that on the path.
//!
//! A toolchain that the go command fetched for such a line lies among the modules, whose files it lets nobody overlay. Such
//! a one is reached by a link from our cache:
//!
//! ```text
//! GOMODCACHE/golang.org/toolchain@v0.0.1-go1.27.3.linux-amd64  ◄── CACHE/go1.27.3   GOROOT of whatever we start
//! ```

use crate::build::cache;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A toolchain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// `GOROOT`, or the link to it.
    pub root: PathBuf,
    /// `go1.26.8`
    pub version: String,
    /// Where the sources of modules lie, which cannot be overlaid.
    pub modules: PathBuf,
    /// What the user builds everything with.
    pub flags: String,
    /// Second number of the version: 26.
    pub minor: u32,
    /// Whether it lies among the modules.
    is_linked: bool,
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
    /// The link to one among the modules could not be made.
    #[error("{} cannot be reached from outside the modules: {reason}", root.display())]
    Link {
        /// Its `GOROOT`.
        root: PathBuf,
        /// Why.
        reason: String,
    },
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
        let mut root = PathBuf::from(root);
        let is_linked = root.starts_with(&modules);
        if is_linked {
            root =
                linked(&root, &version).map_err(|reason| ToolchainError::Link { root, reason })?;
        }
        Ok(Self {
            root,
            version,
            modules,
            flags,
            minor,
            is_linked,
        })
    }

    /// The go command of this toolchain.
    pub(crate) fn go(&self) -> Command {
        let mut go = Command::new("go");
        self.equip(&mut go);
        go
    }

    /// Lets what a command starts find this toolchain, where the go command on the path would find its files among the modules.
    pub(crate) fn equip(&self, command: &mut Command) {
        if !self.is_linked {
            return;
        }
        let before = std::env::var_os("PATH").unwrap_or_default();
        let path = [self.root.join("bin")]
            .into_iter()
            .chain(std::env::split_paths(&before));
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        command
            .env("GOROOT", &self.root)
            .env("GOTOOLCHAIN", "local");
    }
}

/// A link in our cache to a toolchain among the modules.
fn linked(root: &Path, version: &str) -> Result<PathBuf, String> {
    let link = cache().map_err(|error| error.to_string())?.join(version);
    if std::fs::read_link(&link).is_ok_and(|it| it == root) {
        return Ok(link);
    }
    // Renamed into place, for somebody else may make it at the same time, or build with it.
    let draft = link.with_file_name(format!(".{version}-{}", std::process::id()));
    let make = || -> io::Result<()> {
        let _ = std::fs::remove_file(&draft);
        symlink(root, &draft)?;
        std::fs::rename(&draft, &link)
    };
    make().map_err(|error| format!("{}: {error}", link.display()))?;
    Ok(link)
}
