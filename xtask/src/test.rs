//! `cargo xtask test`: checks and tests in three tiers, from a clean clone; and the harnesses that are
//! programs of their own.

use crate::setup;
use crate::shell::{cargo, must, run, say, target};
use anyhow::{Result, bail};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How much `cargo xtask test` runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// Unit tests and one recording.
    Quick,
    /// What continuous integration runs: everything except tests that are marked `#[ignore = "long: ..."]`.
    Usual,
    /// Those too.
    All,
}

/// The words of `cargo xtask test`.
struct Words {
    tier: Tier,
    no_install: bool,
    /// For `cargo test`.
    rest: Vec<String>,
}

impl Words {
    fn parse(words: &[String]) -> Result<Self> {
        let (mut tier, mut no_install, mut rest) = (None, false, Vec::new());
        for word in words {
            match word.as_str() {
                "--quick" | "--all" if tier.is_some() => {
                    bail!("`test` takes one of --quick and --all")
                }
                "--quick" => tier = Some(Tier::Quick),
                "--all" => tier = Some(Tier::All),
                "--no-install" => no_install = true,
                _ => rest.push(word.clone()),
            }
        }
        Ok(Self {
            tier: tier.unwrap_or(Tier::Usual),
            no_install,
            rest,
        })
    }
}

/// Checks and tests, as many as the tier has. Words that are no option of ours go to `cargo test`.
pub fn everything(words: &[String]) -> Result<ExitCode> {
    let words = Words::parse(words)?;
    if words.tier == Tier::Quick {
        return quick(&words.rest);
    }
    let start = Instant::now();
    let install = setup::Install::new(words.no_install);
    let mut left = setup::provide(&[setup::DEMO, setup::TEST], install);
    left.extend(setup::provide_python(install));
    let mut failed = Vec::new();
    let mut check = |name: &'static str, command: &mut Command| -> Result<()> {
        say(&format!("{name} ({} s)", start.elapsed().as_secs()));
        if run(command)? != 0 {
            failed.push(name);
        }
        Ok(())
    };
    check("Format", &mut cargo(&["fmt", "--all", "--check"]))?;
    check("Lints", &mut lints())?;
    // Some tests only, or all of them?
    if words.rest.is_empty() && words.tier == Tier::All {
        // Two of each of six kinds; all of it is `cargo xtask campaign compare`.
        let sample = "compare --sample --fresh --trials 2 --normals 2 --pool 2 --seed sample";
        let sample: Vec<String> = sample.split(' ').map(str::to_owned).collect();
        must(&mut build_of("lockstep-bench", "lockstep-bench"))?;
        check(
            "A sample of the campaign of compare",
            &mut harness_command("lockstep-bench", &sample)?,
        )?;
    }
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"]);
    tests.args(&words.rest);
    if std::env::var_os(SEED).is_none() {
        // A test that is red says something of this commit, not of today's luck: that is `campaign properties`.
        tests.env(SEED, "1");
    }
    if words.tier == Tier::All {
        if !words.rest.iter().any(|word| word == "--") {
            tests.arg("--");
        }
        // A measurement is no test.
        tests.args(["--include-ignored", "--skip", "speed::"]);
    }
    if std::env::var_os(THREADS).is_none() {
        // One more than there are cores: many tests wait for a job that hangs.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env(THREADS, (cores + 1).to_string());
    }
    if left.is_empty() {
        // Everything is here, so a test that skips itself has a reason that somebody must see.
        tests.env("LOCKSTEP_TEST_SKIPS", "never");
    }
    // Last, so that cargo's own words close the log.
    check("Tests", &mut tests)?;
    println!("Done in {} s.", start.elapsed().as_secs());
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("failed: {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// What the rules of the house measure.
pub fn rules(what: &str) -> Result<ExitCode> {
    must(&mut cargo(&[
        "run",
        "--quiet",
        "--package",
        "lockstep-rules",
        "--",
        what,
    ]))?;
    Ok(ExitCode::SUCCESS)
}

/// Unit tests, then one program that is recorded and compared.
fn quick(rest: &[String]) -> Result<ExitCode> {
    let unit = [
        "test",
        "--workspace",
        "--exclude",
        "lockstep-probe",
        "--lib",
        "--bins",
        "--quiet",
    ];
    let smoke = [
        "test",
        "--workspace",
        "--exclude",
        "lockstep-probe",
        "--quiet",
        "--test",
        "smoke",
    ];
    // Both build the workspace as one, so that the second finds what the first has built.
    for arguments in [&unit[..], &smoke] {
        let mut tests = cargo(arguments);
        tests.args(rest).env(SEED, "1");
        if run(&mut tests)? != 0 {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn lints() -> Command {
    let what = ["clippy", "--quiet", "--workspace", "--all-targets"];
    let mut command = cargo(&what);
    command.args(["--", "-D", "warnings"]);
    command
}

/// Whence proptest takes its cases.
const SEED: &str = "PROPTEST_RNG_SEED";
/// How many tests the test harness runs at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// The packages that have properties.
const PROPERTIES: [&str; 12] = [
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
    "wording",
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
    must(&mut build_of("lockstep", "lockstep"))
}

/// Builds `lockstep` and the program `binary` of `package` for release. One build for both: two would choose other features
/// of libraries that both stand on, and compile all that stands on those twice.
fn build_of(package: &str, binary: &str) -> Command {
    let mut command = cargo(&["build", "--release", "--package", "lockstep"]);
    command.args(["--bin", "lockstep", "--package", package]);
    command.args(["--bin", binary]);
    command
}

/// Builds everything and runs the program `binary` of `package` with `arguments`.
pub fn harness(package: &str, binary: &str, arguments: &[String]) -> Result<ExitCode> {
    must(&mut build_of(package, binary))?;
    let status = run(&mut harness_command(binary, arguments)?)?;
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(1)))
}

/// The program `binary`, which is built, with the release build of `lockstep` to measure.
fn harness_command(binary: &str, arguments: &[String]) -> Result<Command> {
    let mut command = Command::new(target().join("release").join(binary));
    command.args(arguments).env("LOCKSTEP_TEST_RELEASE", "1");
    // Paths on the command line are relative to where the user stands.
    command.current_dir(std::env::current_dir()?);
    Ok(command)
}
