//! Builds the probe, which the command carries, so that one file is the whole installation.
//!
//! Cargo is run once more: the probe has a profile of its own (`[profile.probe]`), and no part of it may be built with
//! the command's flags. Its target directory lies in ours, so that the two never wait for each other's lock.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the probe is made of, from the root of the workspace.
const SOURCES: [&str; 6] = [
    "Cargo.toml",
    "crates/probe/Cargo.toml",
    "crates/probe/build.rs",
    "crates/probe/src",
    "crates/format/Cargo.toml",
    "crates/format/src",
];

fn main() -> Result<(), Box<dyn Error>> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = here.join("../..").canonicalize()?;
    let target = Path::new(&env::var("OUT_DIR")?).join("probe");
    println!("cargo::rerun-if-changed=build.rs");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
    }
    // The probe has no dependency but those in this workspace: nothing is fetched. If cargo still wants its index, it may
    // ask for it.
    let built = build(&root, &target, &["--offline"])? || build(&root, &target, &[])?;
    if !built {
        return Err("the probe could not be built".into());
    }
    let file = target.join("probe/liblockstep_probe.so");
    println!("cargo::rustc-env=LOCKSTEP_CARRIED_PROBE={}", file.display());
    Ok(())
}

fn build(root: &Path, target: &Path, more: &[&str]) -> Result<bool, Box<dyn Error>> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_for_the_command) {
            cargo.env_remove(&name);
        }
    }
    // These flags, and none from a configuration file: no path of this machine in the probe.
    cargo.env(
        "CARGO_ENCODED_RUSTFLAGS",
        format!("--remap-path-prefix={}=.", root.display()),
    );
    // Else a directory that a configuration file names would be ours, too, and locked.
    cargo.env("CARGO_BUILD_BUILD_DIR", target);
    cargo.args([
        "build",
        "--quiet",
        "--profile",
        "probe",
        "--package",
        "lockstep-probe",
    ]);
    cargo.arg("--target-dir").arg(target).args(more);
    Ok(cargo.status()?.success())
}

/// Whether a variable says how the command is built, or how it is linted.
fn is_for_the_command(name: &str) -> bool {
    let is_of = |prefix| name.starts_with(prefix);
    is_of("CARGO_BUILD_")
        || is_of("CARGO_PROFILE_")
        || is_of("CARGO_TARGET_") && !name.ends_with("_LINKER")
        || ["RUSTFLAGS", "RUSTC_WORKSPACE_WRAPPER", "CLIPPY_ARGS"].contains(&name)
}
