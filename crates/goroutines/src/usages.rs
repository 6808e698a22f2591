//! The static table of concurrency usages, and what functions do with locks, by a helper in Go that the user's own
//! toolchain builds and runs: it knows build tags, cgo, generics, vendoring and test variants as the compiler does.
//!
//! *Costs*: the helper is compiled once for a toolchain; `go list -export` compiles what is not in the build cache.

use crate::build::BuildError;
use crate::paths::Function;
use crate::toolchain::Toolchain;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [(&str, &str); 2] = [
    ("main.go", include_str!("usages/main.go.txt")),
    ("locks.go", include_str!("usages/locks.go.txt")),
];

/// One case of a `select`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Case {
    /// `send` or `receive`.
    pub kind: String,
    /// The channel, as written in the source.
    pub object: String,
    /// Source line of the case, from 1.
    pub line: u32,
}

/// A concurrency usage in the source: a channel operation, lock, wait, `go` statement or similar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The source file.
    pub file: String,
    /// The source line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
    /// What the usage does: `send`, `lock`, `go`, `atomic`, `cancel`, ...
    pub kind: String,
    /// How the source writes it, if `kind` does not show it: `range` for a receive, `Go` for an add. Absent otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub form: String,
    /// The object, as written in the source.
    pub object: String,
    /// The object's type, such as `chan int` or `sync.Mutex`; for `go`, the function's type. Absent if it is unknown.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub of_type: String,
    /// The function that contains the usage.
    pub function: String,
    /// The package that contains the usage.
    pub package: String,
    /// True if the usage is deferred with `defer`; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deferred: bool,
    /// True if it is a `select` with a `default`; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
    /// Cases of a `select`, without `default`. Absent for other usages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
}

impl Usage {
    /// As what a run records it, and at which line: a `select` of one case is compiled as that send or receive, or as
    /// its attempt. `None` of a `select` without cases, of which there is nothing to record.
    #[must_use]
    pub fn recorded(&self) -> Option<(&str, u32)> {
        match (self.kind.as_str(), self.cases.as_slice()) {
            ("select", []) => None,
            ("select", [case]) if self.default => Some(("select", case.line)),
            ("select", [case]) => Some((&case.kind, case.line)),
            (kind, _) => Some((kind, self.line)),
        }
    }
}

/// The usages of packages, tests included, in the module around `directory`, whose toolchain is given.
///
/// # Errors
/// What the go command said.
pub fn usages(
    directory: &Path,
    toolchain: &Toolchain,
    flags: &[OsString],
    packages: &[String],
) -> Result<Vec<Usage>, BuildError> {
    let mut found: Vec<Usage> = ask(directory, toolchain, &[], flags, packages)?;
    found.sort_by(|a, b| {
        (&a.file, a.line, a.column, &a.kind).cmp(&(&b.file, b.line, b.column, &b.kind))
    });
    Ok(found)
}

/// A line of the helper's.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Function(Function),
    Usage(Usage),
}

/// The same, and what functions of packages, and of others of their module that they use, do with locks.
///
/// # Errors
/// What the go command said.
pub fn usages_and_locks(
    directory: &Path,
    toolchain: &Toolchain,
    flags: &[OsString],
    packages: &[String],
) -> Result<(Vec<Usage>, Vec<Function>), BuildError> {
    let (mut found, mut functions) = (Vec::new(), Vec::new());
    for line in ask(directory, toolchain, &["locks"], flags, packages)? {
        match line {
            Line::Function(it) => functions.push(it),
            Line::Usage(it) => found.push(it),
        }
    }
    Ok((found, functions))
}

/// What the helper says, one object a line.
fn ask<T: DeserializeOwned>(
    directory: &Path,
    toolchain: &Toolchain,
    what: &[&str],
    flags: &[OsString],
    packages: &[String],
) -> Result<Vec<T>, BuildError> {
    let mut command = Command::new(helper(toolchain)?);
    toolchain.equip(&mut command);
    let output = command
        .args(what)
        .args(flags)
        .arg("--")
        .args(packages)
        .current_dir(directory)
        .output()
        .map_err(|error| BuildError::Start(error.to_string()))?;
    let failed = |said: String| BuildError::Failed {
        command: "list".to_owned(),
        said,
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(failed(said.trim_end().to_owned()));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).map_err(|error| failed(error.to_string())))
        .collect()
}

/// The helper of this toolchain, built where it was not.
fn helper(toolchain: &Toolchain) -> Result<PathBuf, BuildError> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (SOURCES, &toolchain.version).hash(&mut hasher);
    let place = crate::build::cache()?.join(format!("usages-{:016x}", hasher.finish()));
    let file = place.join("usages");
    if file.is_file() {
        return Ok(file);
    }
    let failed = |path: &Path, error: std::io::Error| BuildError::Place {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    fs::create_dir_all(&place).map_err(|error| failed(&place, error))?;
    let module = ("go.mod", "module lockstep/usages\n\ngo 1.25\n");
    for (name, text) in SOURCES.into_iter().chain([module]) {
        let path = place.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    let draft = place.join(format!("draft-{}", std::process::id()));
    let mut go = toolchain.go();
    let output = go
        .args(["build", "-o"])
        .arg(&draft)
        .arg(".")
        .env("GOFLAGS", "")
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .current_dir(&place)
        .output()
        .map_err(|error| BuildError::Start(error.to_string()))?;
    if !output.status.success() {
        return Err(BuildError::Failed {
            command: "build".to_owned(),
            said: String::from_utf8_lossy(&output.stderr)
                .trim_end()
                .to_owned(),
        });
    }
    fs::rename(&draft, &file).map_err(|error| failed(&file, error))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_select_of_one_case_is_recorded_as_that() {
        let case = |kind: &str, line| Case {
            kind: kind.to_owned(),
            object: "c".to_owned(),
            line,
        };
        let recorded = |default, cases| {
            let usage = Usage {
                file: "main.go".to_owned(),
                line: 10,
                column: 2,
                kind: "select".to_owned(),
                form: String::new(),
                object: String::new(),
                of_type: String::new(),
                function: "main.main".to_owned(),
                package: "main".to_owned(),
                deferred: false,
                default,
                cases,
            };
            usage.recorded().map(|it| (it.0.to_owned(), it.1))
        };
        let is = |kind: &str, line| Some((kind.to_owned(), line));
        assert_eq!(recorded(true, vec![case("send", 12)]), is("select", 12));
        assert_eq!(recorded(false, vec![case("send", 11)]), is("send", 11));
        let two = vec![case("send", 11), case("receive", 13)];
        assert_eq!(recorded(false, two), is("select", 10));
        assert_eq!(recorded(true, Vec::new()), None);
    }
}
