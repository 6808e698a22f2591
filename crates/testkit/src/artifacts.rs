//! `lockstep` itself and the probe that it carries, built from this checkout.

use crate::command;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The checkout.
#[must_use]
pub fn repository() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
        crates
            .ancestors()
            .nth(2)
            .expect("this crate lies two levels below the checkout")
            .to_owned()
    })
}

/// Cargo's target directory.
#[must_use]
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || repository().join("target"),
        |directory| repository().join(directory),
    )
}

/// The probe that [`lockstep`] carries, as its build script left it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        let messages = cargo_build(&of_command());
        let mut made = messages.iter().filter_map(|message| {
            let variables = message.get("env")?.as_array()?;
            let of_probe = |it: &&serde_json::Value| it[0] == "LOCKSTEP_CARRIED_PROBE";
            variables.iter().find(of_probe)?[1]
                .as_str()
                .map(PathBuf::from)
        });
        made.next_back().expect("the command carries a probe")
    })
}

/// The `lockstep` program: the file that `LOCKSTEP_TEST_COMMAND` names, or else that of this checkout; with
/// `LOCKSTEP_TEST_RELEASE=1` in the environment the release build.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn lockstep() -> &'static Path {
    static LOCKSTEP: OnceLock<PathBuf> = OnceLock::new();
    LOCKSTEP.get_or_init(|| match std::env::var_os("LOCKSTEP_TEST_COMMAND") {
        Some(file) => file.into(),
        None => build(&of_command(), "lockstep"),
    })
}

fn of_command() -> [&'static str; 6] {
    let release = std::env::var_os("LOCKSTEP_TEST_RELEASE").is_some();
    let profile = if release { "release" } else { "dev" };
    [
        "--profile",
        profile,
        "--package",
        "lockstep",
        "--bin",
        "lockstep",
    ]
}

/// Runs `cargo build` with `arguments` and gives the artifact whose file name ends in `ending`.
///
/// # Panics
/// If the build fails, with what cargo said.
#[must_use]
pub fn build(arguments: &[&str], ending: &str) -> PathBuf {
    let messages = cargo_build(arguments);
    let mut artifacts = messages.iter().filter_map(|message| {
        let mut files = message.get("filenames")?.as_array()?.iter();
        let file = files.find_map(|file| file.as_str().filter(|it| it.ends_with(ending)))?;
        Some(PathBuf::from(file))
    });
    artifacts
        .next_back()
        .unwrap_or_else(|| panic!("cargo build {arguments:?} made no {ending}"))
}

/// What cargo says of each unit of a build.
fn cargo_build(arguments: &[&str]) -> Vec<serde_json::Value> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(repository())
        .args(["build", "--quiet", "--message-format=json"])
        .args(arguments);
    let outcome = command::Running::start(&mut cargo)
        .wait(std::time::Duration::from_secs(900))
        .success();
    let lines = outcome.stdout.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}
