//! The probe and `lockstep` themselves, built from this checkout.

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

/// The probe, built with its own profile.
#[must_use]
pub fn probe() -> &'static Path {
    static PROBE: OnceLock<PathBuf> = OnceLock::new();
    PROBE.get_or_init(|| {
        build(
            &["--profile", "probe", "--package", "lockstep-probe"],
            ".so",
        )
    })
}

/// The `lockstep` program, with the probe beside it as an installation has it. With
/// `LOCKSTEP_TEST_RELEASE=1` in the environment it is the release build.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn lockstep() -> &'static Path {
    static LOCKSTEP: OnceLock<PathBuf> = OnceLock::new();
    LOCKSTEP.get_or_init(|| {
        let release = std::env::var_os("LOCKSTEP_TEST_RELEASE").is_some();
        let profile = if release { "release" } else { "dev" };
        let program = build(
            &[
                "--profile",
                profile,
                "--package",
                "lockstep",
                "--bin",
                "lockstep",
            ],
            "lockstep",
        );
        let directory = target().join("testkit").join(profile);
        std::fs::create_dir_all(&directory).expect("the target directory can be written");
        put(&program, &directory);
        put(probe(), &directory);
        directory.join("lockstep")
    })
}

/// Puts `file` into `directory` under its own name, if it is not already there as it is now. A
/// hard link is enough: cargo replaces its outputs and never rewrites them.
fn put(file: &Path, directory: &Path) {
    let place = directory.join(file.file_name().expect("a built file has a name"));
    let same = |a: &Path, b: &Path| {
        use std::os::unix::fs::MetadataExt;
        matches!((a.metadata(), b.metadata()), (Ok(a), Ok(b)) if a.ino() == b.ino() && a.dev() == b.dev())
    };
    if same(file, &place) {
        return;
    }
    let mine = directory.join(format!("putting-{}", std::process::id()));
    let _ = std::fs::remove_file(&mine);
    std::fs::hard_link(file, &mine)
        .or_else(|_| std::fs::copy(file, &mine).map(|_| ()))
        .expect("the target directory can be written");
    std::fs::rename(&mine, &place).expect("a file can be renamed in its directory");
}

/// Runs `cargo build` with `arguments` and gives the artifact whose file name ends in `ending`.
///
/// # Panics
/// If the build fails, with what cargo said.
#[must_use]
pub fn build(arguments: &[&str], ending: &str) -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(repository())
        .args(["build", "--quiet", "--message-format=json"])
        .args(arguments);
    let outcome = command::Running::start(&mut cargo)
        .wait(std::time::Duration::from_secs(900))
        .success();
    outcome
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|message| {
            let files = message.get("filenames")?.as_array()?.clone();
            files
                .iter()
                .filter_map(|file| file.as_str())
                .find(|file| file.ends_with(ending))
                .map(PathBuf::from)
        })
        .next_back()
        .unwrap_or_else(|| panic!("cargo build {arguments:?} made no {ending}"))
}
