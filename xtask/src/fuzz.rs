//! `cargo xtask fuzz`: libFuzzer on every reader, with the stable compiler.

use crate::setup;
use crate::shell::{cargo, must, run, say, target};
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

const USAGE: &str = "\
Usage: cargo xtask fuzz [TARGET]... [--seconds N]

Lets libFuzzer look for input that a reader cannot bear, N seconds for each target (60). Targets: those of
fuzz/src/lib.rs; all of them where none is named. What was tried and led somewhere stays in target/fuzz/corpus, and what
was found in target/fuzz/found: `cargo run -p lockstep-fuzz -- TARGET FILE` shows it again. Ends with 1 if something was.
";

/// What makes the compiler count branches and comparisons, as libFuzzer needs it.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// The machine that we are for; named, so that build scripts are compiled without all that.
const MACHINE: &str = "x86_64-unknown-linux-gnu";
/// Seconds for each target.
const SECONDS: u32 = 60;

/// Runs the targets that `words` name.
pub fn run_targets(words: &[String]) -> Result<ExitCode> {
    let mut seconds = SECONDS;
    let mut chosen = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let value = words
                    .next()
                    .context("--seconds: expected a number, found nothing")?;
                seconds = value
                    .parse()
                    .with_context(|| format!("--seconds: expected a number, found {value:?}"))?;
            }
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(ExitCode::SUCCESS);
            }
            name => chosen.push(name.to_owned()),
        }
    }
    setup::provide(&[setup::FUZZ]);
    let place = target().join("fuzz");
    let corpus = place.join("corpus");
    say("Seeds");
    let mut seeds = cargo(&[
        "run",
        "--quiet",
        "--package",
        "lockstep-fuzz",
        "--",
        "--seeds",
    ]);
    must(seeds.arg(&corpus))?;
    if chosen.is_empty() {
        let names = std::fs::read_dir(&corpus)?.flatten();
        chosen = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        chosen.sort();
    }
    say("Build");
    let build = [
        "build",
        "--profile",
        "fuzz",
        "--target",
        MACHINE,
        "--package",
        "lockstep-fuzz",
        "--features",
        "libfuzzer",
    ];
    must(
        cargo(&build)
            .env("RUSTFLAGS", COVERAGE)
            .arg("--target-dir")
            .arg(&place),
    )?;
    let program = place.join(MACHINE).join("fuzz/lockstep-fuzz");
    let found = place.join("found");
    std::fs::create_dir_all(&found)?;
    let mut failed = Vec::new();
    for name in &chosen {
        say(&format!("{name} ({seconds} s)"));
        let mut command = Command::new(&program);
        command
            .env("LOCKSTEP_FUZZ", name)
            .args([
                format!("-max_total_time={seconds}"),
                "-rss_limit_mb=2048".into(),
                "-timeout=10".into(),
            ])
            .args(["-max_len=65536", "-print_final_stats=1", "-verbosity=0"])
            .arg(format!("-artifact_prefix={}/{name}-", found.display()))
            .arg(corpus.join(name));
        if run(&mut command)? != 0 {
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!(
        "found something: {}; see {}",
        failed.join(", "),
        found.display()
    );
    Ok(ExitCode::FAILURE)
}
