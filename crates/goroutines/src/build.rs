//! Builds programs and test binaries with the overlay.

use crate::overlay::{Class, Overlay, OverlayError, prepare};
use crate::toolchain::{Toolchain, ToolchainError};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No toolchain that serves.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// No overlay for it.
    #[error(transparent)]
    Overlay(#[from] OverlayError),
    /// The go command said no; this is what it said.
    #[error("go {command} failed: {said}")]
    Failed {
        /// Its subcommand.
        command: String,
        /// What it said, whole.
        said: String,
    },
    /// The go command was not started.
    #[error("go was not started: {0}")]
    Start(String),
    /// A place to keep things could not be made.
    #[error("{}: {reason}", path.display())]
    Place {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// How programs of a module are built.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The module's toolchain.
    pub toolchain: Toolchain,
    overlay: Overlay,
    directory: PathBuf,
    flags: Vec<OsString>,
}

/// A package that has tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its import path.
    pub path: String,
    /// Its directory.
    pub directory: PathBuf,
    /// Its name: `main` of a program.
    pub name: String,
    /// Whether it has test files.
    pub has_tests: bool,
}

impl Builder {
    /// For the module around `directory`; `flags` are build flags of the go command.
    ///
    /// # Errors
    /// Where there is no toolchain, or no overlay for it.
    pub fn new(directory: &Path, flags: &[OsString]) -> Result<Self, BuildError> {
        let toolchain = Toolchain::of(directory)?;
        let place = cache()?;
        let (foreign, flags) = split_overlay(&toolchain.flags, flags);
        let foreign = foreign.map(|it| directory.join(it));
        let overlay = prepare(&toolchain, &place, foreign.as_deref())?;
        Ok(Self {
            toolchain,
            overlay,
            directory: directory.to_owned(),
            flags,
        })
    }

    /// Classes of events that this toolchain cannot have, and why.
    #[must_use]
    pub fn missing(&self) -> &[(Class, String)] {
        &self.overlay.missing
    }

    /// Builds the main package `package` as `file`.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn program(&self, package: &str, file: &Path) -> Result<(), BuildError> {
        self.go("build", &[], package, file)
    }

    /// Builds the test binary of `package` as `file`.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn test(&self, package: &str, file: &Path) -> Result<(), BuildError> {
        self.go("test", &["-c", "-vet=off"], package, file)
    }

    fn go(
        &self,
        command: &str,
        more: &[&str],
        package: &str,
        file: &Path,
    ) -> Result<(), BuildError> {
        let mut go = Command::new("go");
        go.arg(command).args(more).args(&self.flags);
        go.arg("-overlay").arg(&self.overlay.file);
        go.arg("-o").arg(file).arg(package);
        self.output(command, go).map(drop)
    }

    /// Builds the test binaries of all `packages` as `place/0`, `place/1`, ...: at once, where their names differ.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn tests(&self, packages: &[Package], place: &Path) -> Result<(), BuildError> {
        let together = place.join("together");
        let failed = |error: std::io::Error| BuildError::Place {
            path: together.clone(),
            reason: error.to_string(),
        };
        let base = |it: &Package| it.path.rsplit('/').next().unwrap_or_default().to_owned();
        let names: BTreeSet<String> = packages.iter().map(base).collect();
        if names.len() == packages.len() && packages.len() > 1 {
            std::fs::create_dir_all(&together).map_err(failed)?;
            let mut go = Command::new("go");
            go.args(["test", "-c", "-vet=off"]).args(&self.flags);
            go.arg("-overlay").arg(&self.overlay.file);
            go.arg("-o")
                .arg(together.join(""))
                .args(packages.iter().map(|it| &it.path));
            self.output("test", go)?;
        }
        for (index, package) in packages.iter().enumerate() {
            let file = place.join(index.to_string());
            let built = together.join(format!("{}.test", base(package)));
            if std::fs::rename(built, &file).is_err() {
                self.test(&package.path, &file)?;
            }
        }
        let _ = std::fs::remove_dir_all(&together);
        Ok(())
    }

    /// The packages that patterns name, in the order of the go command.
    ///
    /// # Errors
    /// What the go command said.
    pub fn packages(&self, patterns: &[String]) -> Result<Vec<Package>, BuildError> {
        const FORMAT: &str =
            "{{.ImportPath}}\t{{.Dir}}\t{{.Name}}\t{{len .TestGoFiles}}\t{{len .XTestGoFiles}}";
        let mut go = Command::new("go");
        go.arg("list")
            .args(&self.flags)
            .args(["-f", FORMAT, "--"])
            .args(patterns);
        let output = self.output("list", go)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let package = |line: &str| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().unwrap_or_default();
            Package {
                path: next().to_owned(),
                directory: PathBuf::from(next()),
                name: next().to_owned(),
                has_tests: [next(), next()].iter().any(|it| *it != "0"),
            }
        };
        Ok(text.lines().map(package).collect())
    }

    fn output(&self, name: &str, mut command: Command) -> Result<Output, BuildError> {
        let output = command
            .current_dir(&self.directory)
            .output()
            .map_err(|error| BuildError::Start(error.to_string()))?;
        if output.status.success() {
            return Ok(output);
        }
        let said = [&output.stderr[..], &output.stdout[..]].concat();
        Err(BuildError::Failed {
            command: name.to_owned(),
            said: String::from_utf8_lossy(&said).trim_end().to_owned(),
        })
    }
}

/// The user's own overlay, from flags or `GOFLAGS`, and the flags without it.
fn split_overlay(environment: &str, flags: &[OsString]) -> (Option<PathBuf>, Vec<OsString>) {
    let mut found = None;
    for word in environment.split_whitespace() {
        let word = word.trim_start_matches('-');
        if let Some(path) = word.strip_prefix("overlay=") {
            found = Some(PathBuf::from(path));
        }
    }
    let mut left = Vec::new();
    let mut flags = flags.iter();
    while let Some(flag) = flags.next() {
        let word = flag.to_string_lossy();
        match word.trim_start_matches('-') {
            "overlay" if word.starts_with('-') => found = flags.next().map(PathBuf::from),
            rest => match rest
                .strip_prefix("overlay=")
                .filter(|_| word.starts_with('-'))
            {
                Some(path) => found = Some(PathBuf::from(path)),
                None => left.push(flag.clone()),
            },
        }
    }
    (found, left)
}

/// Where overlays are kept: `$XDG_CACHE_HOME/lockstep/go`, else `~/.cache/lockstep/go`.
///
/// # Errors
/// Where there is no such place.
pub fn cache() -> Result<PathBuf, BuildError> {
    let absolute = |name: &str| {
        let path = std::env::var_os(name).map(PathBuf::from)?;
        path.is_absolute().then_some(path)
    };
    let base = absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    let place = base.join("lockstep/go");
    std::fs::create_dir_all(&place).map_err(|error| BuildError::Place {
        path: place.clone(),
        reason: error.to_string(),
    })?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overlay_of_the_users_is_found() {
        let flags = ["-race", "-overlay", "mine.json"].map(OsString::from);
        let (found, left) = split_overlay("-mod=mod -overlay=other.json", &flags);
        assert_eq!(found, Some(PathBuf::from("mine.json")));
        assert_eq!(left, [OsString::from("-race")]);
        let (found, _) = split_overlay("-overlay=other.json", &[]);
        assert_eq!(found, Some(PathBuf::from("other.json")));
    }
}
