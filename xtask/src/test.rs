//! `cargo xtask test`: every check and every test, from a clean clone; and the harnesses that are
//! programs of their own.

use crate::setup;
use crate::shell::{cargo, must, run, say};
use anyhow::{Result, bail};
use std::process::ExitCode;
use std::time::Instant;

/// Installs what is missing, checks format and lints, builds, and runs all tests. What `rest` holds
/// goes to `cargo test`.
pub fn everything(rest: &[String]) -> Result<ExitCode> {
    let start = Instant::now();
    let mut left = setup::provide(&[setup::DEMO, setup::TEST]);
    left.extend(setup::provide_python());
    let mut failed = Vec::new();
    let mut check = |name: &'static str, arguments: &[&str]| -> Result<()> {
        say(&format!("{name} ({} s)", start.elapsed().as_secs()));
        if run(&mut cargo(arguments))? != 0 {
            failed.push(name);
        }
        Ok(())
    };
    check("Format", &["fmt", "--all", "--check"])?;
    check(
        "Lints",
        &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
    )?;
    say(&format!("Build ({} s)", start.elapsed().as_secs()));
    build()?;
    // Whoever asks for some tests wants these.
    if rest.is_empty() {
        say(&format!(
            "A sample of the campaign of compare ({} s)",
            start.elapsed().as_secs()
        ));
        // Two of each of six kinds; all of it is `cargo xtask campaign compare`.
        let words = "compare --sample --fresh --trials 2 --normals 2 --pool 2 --seed sample";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        if harness("lockstep-bench", "lockstep-bench", &words)? != ExitCode::SUCCESS {
            failed.push("Campaign of compare");
        }
    }
    say(&format!("Tests ({} s)", start.elapsed().as_secs()));
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests.args(rest).env("LOCKSTEP_TEST_RELEASE", "1");
    if std::env::var_os(SEED).is_none() {
        // A test that is red says something of this commit, not of today's luck: that is `campaign properties`.
        tests.env(SEED, "1");
    }
    if left.is_empty() {
        // Everything is here, so a test that skips itself has a reason that somebody must see.
        tests.env("LOCKSTEP_TEST_SKIPS", "never");
    }
    // Last, so that cargo's own words close the log.
    if run(&mut tests)? != 0 {
        failed.push("Tests");
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Whence proptest takes its cases.
const SEED: &str = "PROPTEST_RNG_SEED";

/// The packages that have properties.
const PROPERTIES: [&str; 11] = [
    "calltree",
    "compare",
    "concepts",
    "exchange",
    "format",
    "goroutines",
    "loops",
    "patch",
    "progress",
    "report",
    "trace",
];

/// `cargo xtask campaign properties`: every property with many more cases than in `test`, and others each time.
pub fn properties(rest: &[String]) -> Result<ExitCode> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let (mut cases, mut seed) = (4096, now.as_secs());
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        let value = words.next().and_then(|it| it.parse().ok());
        match (word.as_str(), value) {
            ("--cases", Some(value)) => cases = value,
            ("--seed", Some(value)) => seed = value,
            _ => bail!("`campaign properties` takes --cases N and --seed N, not `{word}`"),
        }
    }
    say(&format!("Properties: {cases} cases each, seed {seed}"));
    let mut tests = cargo(&["test", "--no-fail-fast"]);
    for package in PROPERTIES {
        tests.args(["--package", &format!("lockstep-{package}")]);
    }
    tests.env("PROPTEST_CASES", cases.to_string());
    tests.env(SEED, seed.to_string());
    // A seed says it all: files beside the tests would be a second memory of the same.
    tests.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
    Ok(ExitCode::from(u8::try_from(run(&mut tests)?).unwrap_or(1)))
}

/// The release build of `lockstep`.
pub fn build() -> Result<()> {
    must(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "lockstep",
        "--bin",
        "lockstep",
    ]))
}

/// Builds everything and runs the program `binary` of `package` with `arguments`.
pub fn harness(package: &str, binary: &str, arguments: &[String]) -> Result<ExitCode> {
    let asks_for_help = |word: &String| word == "--help" || word == "-h";
    if !arguments.iter().any(asks_for_help) {
        build()?;
    }
    let mut command = cargo(&[
        "run",
        "--release",
        "--quiet",
        "--package",
        package,
        "--bin",
        binary,
        "--",
    ]);
    command.args(arguments).env("LOCKSTEP_TEST_RELEASE", "1");
    // Paths on the command line are relative to where the user stands.
    command.current_dir(std::env::current_dir()?);
    Ok(ExitCode::from(
        u8::try_from(run(&mut command)?).unwrap_or(1),
    ))
}
