//! Which tools this machine has; what is missing is said aloud.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// Where `tool` lies on `PATH`.
#[must_use]
pub fn find(tool: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|directory| directory.join(tool))
        .find(|path| path.is_file())
}

/// Whether all `tools` are here. If not, says which test is skipped and why: on the process' own
/// stderr, which the test harness does not capture.
///
/// # Panics
/// With `LOCKSTEP_TEST_SKIPS=never` in the environment, instead of skipping.
#[must_use]
pub fn require(tools: &[&str]) -> bool {
    let missing: Vec<&str> = tools
        .iter()
        .copied()
        .filter(|tool| find(tool).is_none())
        .collect();
    if missing.is_empty() {
        return true;
    }
    skip(&format!("{} not installed", missing.join(", ")));
    false
}

/// Says aloud that the current test is skipped, and why.
///
/// # Panics
/// With `LOCKSTEP_TEST_SKIPS=never` in the environment.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var_os("LOCKSTEP_TEST_SKIPS").is_none_or(|value| value != "never"),
        "{test} cannot run: {reason}"
    );
    note(&format!("SKIPPED {test}: {reason}"));
}

/// A line on the process' own stderr.
pub fn note(line: &str) {
    // A closed stderr is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A Python that has `module`: Debian's modules are its own Python's, which need not be the first on the
/// path. Says that a test is skipped where there is none.
///
/// # Panics
/// With `LOCKSTEP_TEST_SKIPS=never` in the environment, instead of skipping.
#[must_use]
pub fn python_with(module: &str) -> Option<&'static str> {
    let import = format!("import {module}");
    let found = ["/usr/bin/python3", "python3"].into_iter().find(|python| {
        let mut command = Command::new(python);
        command.env("PYTHONPATH", python_packages());
        let tried = command.args(["-c", &import]).output();
        tried.is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        skip(&format!("Python's {module} not installed"));
    }
    found
}

/// Where `cargo xtask test` puts Python packages that Debian does not have.
#[must_use]
pub fn python_packages() -> PathBuf {
    crate::artifacts::target().join("testkit/python")
}
