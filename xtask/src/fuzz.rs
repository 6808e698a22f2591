//! `cargo xtask fuzz`: libFuzzer on every reader, with the stable compiler.

use crate::setup;
use crate::shell::{cargo, must, say, target};
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const USAGE: &str = "\
Usage: cargo xtask fuzz [TARGET]... [--seconds N]

Lets libFuzzer look for input that a reader cannot bear, N seconds of processor time for each target (60), and says of
each what was spent on it. Targets: those of fuzz/src/lib.rs; all of them where none is named. What was tried and led
somewhere stays in target/fuzz/corpus, and what was found in target/fuzz/found: `cargo run -p lockstep-fuzz -- TARGET
FILE` shows it again. Ends with 1 if something was.
";

/// What makes the compiler count branches and comparisons, as libFuzzer needs it.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing";
/// The machine that we are for; named, so that build scripts are compiled without all that.
const MACHINE: &str = "x86_64-unknown-linux-gnu";
/// Seconds of processor time for each target.
const SECONDS: u64 = 60;
/// What the kernel counts processor time in, a second: fixed towards programs, whatever it does inside.
const TICKS: u64 = 100;
/// How often is looked at what a target has taken.
const LOOK: Duration = Duration::from_millis(500);
/// Where files are memory: targets that read directories otherwise wait for the disk.
const MEMORY: &str = "/dev/shm";
/// How libFuzzer says what it has tried.
const TRIED: &str = "stat::number_of_executed_units:";

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
    setup::provide(&[setup::FUZZ], setup::Install::new(false));
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
        let names = fs::read_dir(&corpus)?.flatten();
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
    fs::create_dir_all(&found)?;
    let mut failed = Vec::new();
    for name in &chosen {
        say(&format!("{name} ({seconds} s)"));
        let mut command = Command::new(&program);
        command
            .env("LOCKSTEP_FUZZ", name)
            // By the clock: an input that waits for the processor behind a build is no hang.
            .args(["-rss_limit_mb=2048", "-timeout=60", "-max_len=65536"])
            .args(["-print_final_stats=1", "-verbosity=0"]);
        if Path::new(MEMORY).is_dir() {
            command.env("TMPDIR", MEMORY);
        }
        command
            .arg(format!("-artifact_prefix={}/{name}-", found.display()))
            .arg(corpus.join(name));
        let spent = spend(&mut command, seconds)?;
        let outcome = if spent.well { "nothing" } else { "something" };
        say(&format!(
            "{name}: {} s of processor time, {} inputs, {outcome} found",
            spent.seconds, spent.inputs
        ));
        if !spent.well {
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

/// What one target took.
#[derive(Debug, Default)]
struct Spent {
    /// Of processor time.
    seconds: u64,
    /// That were tried.
    inputs: u64,
    /// Nothing was found.
    well: bool,
}

/// Runs libFuzzer until it has found something or taken so many seconds of processor time: by the clock, a campaign
/// beside other work would count what it did not get.
fn spend(command: &mut Command, seconds: u64) -> Result<Spent> {
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let lines = BufReader::new(child.stderr.take().context("a pipe")?).lines();
    let (sender, said) = channel();
    std::thread::spawn(move || {
        lines
            .map_while(Result::ok)
            .try_for_each(|it| sender.send(it))
    });
    let mut spent = Spent::default();
    let mut asked = false;
    loop {
        match said.recv_timeout(LOOK) {
            Ok(line) => match line.strip_prefix(TRIED) {
                Some(count) => spent.inputs = count.trim().parse()?,
                None => eprintln!("{line}"),
            },
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => (),
        }
        spent.seconds = taken(&child).unwrap_or(spent.seconds);
        if spent.seconds >= seconds && !asked {
            asked = true;
            // It ends its input and says what it did.
            let process = child.id().to_string();
            must(Command::new("kill").args(["-USR1", &process]))?;
        }
    }
    spent.well = child.wait()?.success();
    Ok(spent)
}

/// Seconds of processor time that it has taken so far; none where it has ended.
fn taken(child: &Child) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    // proc(5): the name, in parentheses, may hold anything; utime and stime are the 12th and 13th words behind it.
    let words = text.rsplit_once(')')?.1.split_whitespace();
    let times = words.skip(11).take(2).map(|word| word.parse::<u64>().ok());
    Some(times.sum::<Option<u64>>()? / TICKS)
}
