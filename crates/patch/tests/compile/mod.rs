//! Builds the small programs of `programs/` in every way that is at hand.
#![allow(clippy::print_stderr, dead_code)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// One way to build one program.
#[derive(Debug, Clone)]
pub struct Build {
    /// The program, as the compiler left it.
    pub path: PathBuf,
    /// How it was made.
    pub how: String,
}

fn scratch() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// Source of a program.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

/// Compiles each program once a process: tests run side by side, and repeat.
static BUILT: Mutex<BTreeMap<String, Option<Build>>> = Mutex::new(BTreeMap::new());

/// Compiles `source` with `compiler`; `None`, said loudly, where that cannot be done here.
pub fn compile(compiler: &str, source_name: &str, options: &[&str]) -> Option<Build> {
    let how = format!("{compiler} {} {source_name}", options.join(" "));
    let mut built = BUILT
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    built
        .entry(how.clone())
        .or_insert_with(|| run(compiler, source_name, options, how))
        .clone()
}

fn run(compiler: &str, source_name: &str, options: &[&str], how: String) -> Option<Build> {
    let file = how.replace([' ', '/', '=', ','], "_");
    let path = scratch().join(file);
    let result = Command::new(compiler)
        .args(options)
        .arg(source(source_name))
        .arg("-o")
        .arg(&path)
        .current_dir(scratch())
        .output();
    match result {
        Ok(output) if output.status.success() => Some(Build { path, how }),
        Ok(output) => {
            eprintln!(
                "SKIPPED: {how}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            None
        }
        Err(error) => {
            eprintln!("SKIPPED: {how}: {error}");
            None
        }
    }
}

/// A copy of `build` without symbols.
pub fn strip(build: &Build) -> Option<Build> {
    let path = build.path.with_extension("stripped");
    let status = Command::new("strip")
        .arg("-o")
        .arg(&path)
        .arg(&build.path)
        .status();
    match status {
        Ok(status) if status.success() => Some(Build {
            path,
            how: format!("{} stripped", build.how),
        }),
        _ => {
            eprintln!("SKIPPED: strip {}", build.how);
            None
        }
    }
}
