//! Builds programs and test binaries with the overlay.

use crate::coverage::Usage;
use crate::overlay::{Class, Overlay, OverlayError, prepare, read_overlay};
use crate::paths::Paths;
use crate::sources;
use crate::toolchain::{Toolchain, ToolchainError};
use crate::usages;
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

/// How `go test` builds and does not run. What `go vet` says is not ours to say.
const TEST: &[&str] = &["-c", "-vet=off"];

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
    /// What the go command is told to mean it: its path, but for files and for packages outside any module.
    words: Vec<String>,
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
        let words = [package.to_owned()];
        self.with_places(&words, file, |overlay| {
            self.go_or_plain("build", &[], overlay, &words, file)
        })
    }

    /// Builds the test binary of `package` as `file`.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn test(&self, package: &str, file: &Path) -> Result<(), BuildError> {
        let words = [package.to_owned()];
        self.with_places(&words, file, |overlay| {
            self.go_or_plain("test", TEST, overlay, &words, file)
        })
    }

    /// Builds with an overlay in which the sources of what `words` names call functions that are places for delays.
    /// It is there, beside `file`, for as long as `build` needs it.
    fn with_places<T>(
        &self,
        words: &[String],
        file: &Path,
        build: impl FnOnce(&Path) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        let plain = &self.overlay.file;
        if self.missing().iter().any(|it| it.0 == Class::Atomics) {
            return build(plain);
        }
        let place = file.with_file_name(format!(".sources-{}", std::process::id()));
        let failed = |error: std::io::Error| BuildError::Place {
            path: place.clone(),
            reason: error.to_string(),
        };
        let mut replace = read_overlay(plain)?;
        let mut edited = 0;
        for own in self.sources(words) {
            let now = replace.get(&own).unwrap_or(&own);
            let source = std::fs::read_to_string(now).ok();
            let Some(text) = source.and_then(|it| sources::with_places(&it)) else {
                continue;
            };
            std::fs::create_dir_all(&place).map_err(failed)?;
            let path = place.join(format!("{edited}.go"));
            std::fs::write(&path, text).map_err(failed)?;
            replace.insert(own, path.to_string_lossy().into_owned());
            edited += 1;
        }
        if edited == 0 {
            return build(plain);
        }
        let overlay = place.join("overlay.json");
        let json = serde_json::json!({ "Replace": replace });
        std::fs::write(&overlay, json.to_string()).map_err(failed)?;
        let built = build(&overlay);
        let _ = std::fs::remove_dir_all(&place);
        built
    }

    /// The Go files that a build of `words` compiles and that may be overlaid: those of the module, of a workspace's
    /// other modules, and vendored ones; none that cgo reads. Empty where the go command does not say; the build will.
    fn sources(&self, words: &[String]) -> BTreeSet<String> {
        const FORMAT: &str =
            "{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}\n{{end}}{{end}}";
        let mut go = self.toolchain.go();
        go.args(["list", "-e", "-deps", "-test"]).args(&self.flags);
        go.args(["-f", FORMAT, "--"]).args(words);
        let Ok(output) = self.output("list", go) else {
            return BTreeSet::new();
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let may_be = |it: &&str| !Path::new(it).starts_with(&self.toolchain.modules);
        text.lines().filter(may_be).map(str::to_owned).collect()
    }

    fn go(
        &self,
        command: &str,
        more: &[&str],
        overlay: &Path,
        words: &[String],
        file: &Path,
    ) -> Result<(), BuildError> {
        let mut go = self.toolchain.go();
        go.arg(command).args(more).args(&self.flags);
        go.arg("-overlay").arg(overlay);
        go.arg("-o").arg(file).args(words);
        self.output(command, go).map(drop)
    }

    /// Builds without places in the user's sources where it cannot be done with them: what the compiler says of the
    /// sources is said of them as they are.
    fn go_or_plain(
        &self,
        command: &str,
        more: &[&str],
        overlay: &Path,
        words: &[String],
        file: &Path,
    ) -> Result<(), BuildError> {
        let plain = &self.overlay.file;
        match self.go(command, more, overlay, words, file) {
            Err(BuildError::Failed { .. }) if overlay != plain => {
                self.go(command, more, plain, words, file)
            }
            other => other,
        }
    }

    /// Builds the test binaries of all `packages` as `place/0`, `place/1`, ...: at once, where their names differ.
    /// One that does not build keeps none of the others from it: what the compiler said stands in its place.
    ///
    /// # Errors
    /// Where the go command was not started, or there is no room for what it builds.
    pub fn tests(
        &self,
        packages: &[Package],
        place: &Path,
    ) -> Result<Vec<Result<(), BuildError>>, BuildError> {
        let words: Vec<String> = packages.iter().flat_map(|it| it.words.clone()).collect();
        self.with_places(&words, &place.join("0"), |overlay| {
            self.tests_with(overlay, packages, place)
        })
    }

    fn tests_with(
        &self,
        overlay: &Path,
        packages: &[Package],
        place: &Path,
    ) -> Result<Vec<Result<(), BuildError>>, BuildError> {
        let together = place.join("together");
        let failed = |error: std::io::Error| BuildError::Place {
            path: together.clone(),
            reason: error.to_string(),
        };
        let base = |it: &Package| it.path.rsplit('/').next().unwrap_or_default().to_owned();
        let names: BTreeSet<String> = packages.iter().map(base).collect();
        if names.len() == packages.len() && packages.len() > 1 {
            std::fs::create_dir_all(&together).map_err(failed)?;
            let words: Vec<String> = packages.iter().flat_map(|it| it.words.clone()).collect();
            // Who fails is asked below, one by one.
            match self.go("test", TEST, overlay, &words, &together.join("")) {
                Err(BuildError::Failed { .. }) | Ok(()) => {}
                Err(other) => return Err(other),
            }
        }
        let one = |(index, package): (usize, &Package)| {
            let file = place.join(index.to_string());
            let built = together.join(format!("{}.test", base(package)));
            if std::fs::rename(built, &file).is_ok() {
                return Ok(Ok(()));
            }
            match self.go_or_plain("test", TEST, overlay, &package.words, &file) {
                Err(it @ BuildError::Failed { .. }) => Ok(Err(it)),
                Err(other) => Err(other),
                Ok(()) => Ok(Ok(())),
            }
        };
        let built = packages.iter().enumerate().map(one).collect();
        let _ = std::fs::remove_dir_all(&together);
        built
    }

    /// What the sources of packages say: the usages of those that `words` name, which runs may come to; and what they
    /// and others of their module do with locks.
    ///
    /// # Errors
    /// What the go command said.
    pub fn read(&self, words: &[String]) -> Result<(Vec<Usage>, Paths), BuildError> {
        // What was built is in the cache under this overlay.
        let mut flags = vec!["-overlay".into(), self.overlay.file.clone().into()];
        flags.extend(self.flags.iter().cloned());
        let (found, functions) =
            usages::usages_and_locks(&self.directory, &self.toolchain, &flags, words)?;
        let usages = found.iter().filter_map(Usage::in_source).collect();
        Ok((usages, Paths::of(&functions)))
    }

    /// The packages that patterns name, in the order of the go command.
    ///
    /// # Errors
    /// What the go command said.
    pub fn packages(&self, patterns: &[String]) -> Result<Vec<Package>, BuildError> {
        const FORMAT: &str = "{{.ImportPath}}\t{{.Dir}}\t{{.Name}}\t{{len .TestGoFiles}}\t{{len .XTestGoFiles}}{{with .Error}}\t1{{end}}";
        let list = |more: &[&str]| {
            let mut go = self.toolchain.go();
            go.arg("list").args(more).args(&self.flags);
            go.args(["-f", FORMAT, "--"]).args(patterns);
            self.output("list", go)
        };
        // One that cannot be read is told when it is built; the others are there.
        let output = list(&[]).or_else(|error| match list(&["-e"]) {
            Ok(output) if output.stdout.iter().filter(|it| **it == b'\n').count() > 1 => Ok(output),
            _ => Err(error),
        })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let package = |line: &str| {
            let mut fields = line.split('\t');
            let mut next = || fields.next().unwrap_or_default();
            let path = next().to_owned();
            let directory = PathBuf::from(next());
            Package {
                name: next().to_owned(),
                has_tests: [next(), next()].iter().any(|it| *it != "0") || next() == "1",
                words: self.words(&path, &directory, patterns),
                path,
                directory,
            }
        };
        Ok(text.lines().map(package).collect())
    }

    fn words(&self, path: &str, directory: &Path, patterns: &[String]) -> Vec<String> {
        if path == "command-line-arguments" {
            return patterns.to_vec();
        }
        // `_/home/me/x`: a directory outside any module and `GOPATH`.
        let relative = directory.strip_prefix(&self.directory);
        match relative {
            Ok(relative) if path.starts_with("_/") => vec![format!("./{}", relative.display())],
            _ => vec![path.to_owned()],
        }
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
