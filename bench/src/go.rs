//! `cargo xtask bench go`: what recording a Go program costs, how often a seed gives the same run again, and how long
//! a campaign over the zoo of bugs takes.
//!
//! The sieve tells its own processor time, so that neither start nor end is in it; a round is `plain off recorded`, and each is
//! compared with the untraced one of its round. Programs of the zoo are built before they are timed.

use crate::measure;
use crate::rows::{Row, Rows};
use crate::statistics::Ratio;
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_goroutines::build::Builder;
use lockstep_goroutines::execution::Execution;
use lockstep_goroutines::launch::Launch;
use lockstep_goroutines::ring::{CHUNK, Ring};
use lockstep_goroutines::schedule::Plan;
use lockstep_goroutines::script;
use lockstep_goroutines::symbols::Program;
use lockstep_testkit::zoo::{self, Built};
use lockstep_testkit::{Scratch, artifacts};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench go [OPTION]...

Slowdown of the prime sieve with the overlay off and recorded, bytes of the ring for each record; how often two runs
of one seed have the same usages, and a run that is made again by its record (kernels, and tests that go by the clock);
seconds for a campaign of 60 kernels x 10 runs. Takes about five minutes.

  --primes LIST    sizes of the sieve (200,2055)
  --rounds N       rounds of each (7)
  --seed N         of replays and campaign (1)
  --again N        runs of each seed (3)
  --label NAME     rows in go-NAME.csv (own)
  --fresh          forget the rows that are there
";

const HEADS: [&str; 7] = [
    "what",
    "of",
    "round",
    "bar",
    "nanoseconds",
    "records",
    "bytes",
];

/// Most bytes of a ring of which all records are counted.
const COUNTED: u64 = 1 << 30;
/// Schedules of which runs are made again, of tests that go by the clock, and of kernels: one with turns, three with
/// delays.
const CLOCKED_SCHEDULES: [u64; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const SCHEDULES: [u64; 4] = [0, 5, 7, 9];
/// Kernels of the campaign, and most runs of each.
const KERNELS: usize = 60;
const RUNS: u32 = 10;

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let valued = ["--primes", "--rounds", "--seed", "--again", "--label"];
    let given = Words::read(words, &valued, &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("go-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let (rounds, seed) = (given.number("--rounds", 7)?, given.number("--seed", 1)?);
    let primes = given.list("--primes", "200,2055");
    let sieve = Sieve::build()?;
    for primes in &primes {
        for round in 0..rounds {
            sieve.round(primes, round, &mut rows)?;
        }
    }
    let mut kernels = zoo::kernels()?;
    let built = Built::all(&kernels)?;
    for (kernel, built) in kernels.iter().zip(&built) {
        if !rows.has(&["replay", &kernel.name]) {
            let plan = zoo::plan(seed, 0);
            let same = by_seed(built, "TestBug", &plan, given.number("--again", 3)?)?;
            row(&mut rows, ["replay", &kernel.name, "0", same], 0, 0, 0)?;
        }
    }
    let clocked = Built::clocked()?;
    let again = given.number("--again", 3)?;
    let kernels_too = kernels.iter().zip(&built);
    let all = kernels_too
        .map(|(kernel, built)| (kernel.name.as_str(), built, "TestBug"))
        .chain(zoo::CLOCKED.map(|test| (test, &clocked, test)));
    for (name, built, test) in all {
        let numbers = match name == test {
            true => &CLOCKED_SCHEDULES[..],
            false => &SCHEDULES,
        };
        for &number in numbers {
            let number_text = number.to_string();
            if rows.has(&["again", name, &number_text]) {
                continue;
            }
            let same = made_again(built, test, &zoo::plan(seed, number), again)?;
            row(&mut rows, ["again", name, &number_text, same], 0, 0, 0)?;
            if name == test {
                let same = by_seed(built, test, &zoo::plan(seed, number), again)?;
                row(&mut rows, ["seed", name, &number_text, same], 0, 0, 0)?;
            }
        }
    }
    if !rows.has(&["campaign"]) {
        kernels.truncate(KERNELS);
        let (took, found) = campaign(&built[..kernels.len()], seed)?;
        let name = format!("{} kernels", kernels.len());
        let found = found.to_string();
        row(&mut rows, ["campaign", &name, "0", &found], took, 0, 0)?;
    }
    let report = report(&rows, &primes);
    print!("{report}");
    std::fs::write(directory.join(format!("go-{label}.txt")), report)?;
    Ok(())
}

fn row(
    rows: &mut Rows,
    names: [&str; 4],
    nanoseconds: u64,
    records: u64,
    bytes: u64,
) -> Result<()> {
    let mut cells = names.map(str::to_owned).to_vec();
    cells.extend([nanoseconds, records, bytes].map(|it| it.to_string()));
    rows.add(&cells)
}

/// The sieve, built twice.
struct Sieve {
    plain: PathBuf,
    overlaid: PathBuf,
    classes: Vec<u8>,
    directory: PathBuf,
    _scratch: Scratch,
}

impl Sieve {
    fn build() -> Result<Self> {
        let directory = artifacts::repository().join("programs/go/sieve");
        let scratch = Scratch::new("sieve");
        let (plain, overlaid) = (scratch.join("plain"), scratch.join("overlaid"));
        let status = Command::new("go")
            .args(["build", "-o"])
            .arg(&plain)
            .arg(".")
            .current_dir(&directory)
            .status()
            .context("go was not started")?;
        ensure!(status.success(), "go build failed");
        let builder = Builder::new(&directory, &[])?;
        builder.program(".", &overlaid)?;
        let program = Program::open(&overlaid, &builder.toolchain.root, None)?;
        Ok(Self {
            classes: program.classes(),
            plain,
            overlaid,
            directory,
            _scratch: scratch,
        })
    }

    fn round(&self, primes: &str, round: u32, rows: &mut Rows) -> Result<()> {
        let number = round.to_string();
        if rows.has(&["sieve", primes, &number, "recorded"]) {
            return Ok(());
        }
        let plain = alone(&self.plain, primes)?;
        let off = alone(&self.overlaid, primes)?;
        let mut policy = zoo::plan(1, 0).policy;
        policy.mode = lockstep_goroutines::ring::Mode::None;
        (policy.steady, policy.settle) = (false, 0);
        let outcome = Launch {
            program: &self.overlaid,
            arguments: &[primes.into()],
            directory: &self.directory,
            classes: &self.classes,
            policy,
            script: &[],
            recorded: None,
            processors: None,
            limit: Duration::from_secs(120),
            most: 2 << 30,
            shows: false,
            interrupted: || None,
            is_over: None,
        }
        .run()?;
        let recorded = nanoseconds(&outcome.text)?;
        let bytes = outcome.standing.chunks * CHUNK as u64;
        let records = if bytes > COUNTED {
            0
        } else {
            Ring::read(&outcome.ring)?.records.len() as u64
        };
        row(rows, ["sieve", primes, &number, "plain"], plain, 0, 0)?;
        row(rows, ["sieve", primes, &number, "off"], off, 0, 0)?;
        let names = ["sieve", primes, &number, "recorded"];
        row(rows, names, recorded, records, bytes)
    }
}

fn alone(program: &Path, primes: &str) -> Result<u64> {
    let output = Command::new(program)
        .arg(primes)
        .output()
        .with_context(|| program.display().to_string())?;
    nanoseconds(&String::from_utf8_lossy(&output.stdout))
}

fn nanoseconds(text: &str) -> Result<u64> {
    let line = text.lines().find_map(|it| it.strip_prefix("sieve "));
    let number = line.with_context(|| format!("expected the sieve's time, found `{text}`"))?;
    Ok(number.trim().parse()?)
}

/// Whether all runs of one plan have the same usages: `same` or `differs`.
fn by_seed(built: &Built, test: &str, plan: &Plan, again: u32) -> Result<&'static str> {
    let (first, _) = built.run(test, plan)?;
    compare(built, test, plan, &first, again)
}

/// Whether all runs that are made by the record of one have its usages.
fn made_again(built: &Built, test: &str, plan: &Plan, again: u32) -> Result<&'static str> {
    let (first, _) = built.run(test, plan)?;
    let plan = plan.clone().as_recorded(&first);
    compare(built, test, &plan, &first, again)
}

fn compare(
    built: &Built,
    test: &str,
    plan: &Plan,
    first: &Execution,
    again: u32,
) -> Result<&'static str> {
    for _ in 1..again {
        let (other, _) = built.run(test, plan)?;
        if !script::is_same(first, &other) {
            return Ok("differs");
        }
    }
    Ok("same")
}

/// Each kernel until its bug is found, at most ten runs, as many side by side as there are processors.
fn campaign(all: &[Built], seed: u64) -> Result<(u64, usize)> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let (next, found) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        let work = || -> Result<()> {
            while let Some(built) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let of = built.campaign("TestBug", seed, RUNS, |_| {})?;
                let is_bug = of.worst.is_some_and(|it| it.0.verdict.is_bug());
                found.fetch_add(usize::from(is_bug), Ordering::Relaxed);
            }
            Ok(())
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for thread in threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        Ok::<(), anyhow::Error>(())
    })?;
    let took = u64::try_from(began.elapsed().as_nanos())?;
    Ok((took, found.into_inner()))
}

fn report(rows: &Rows, primes: &[String]) -> String {
    let mut text = format!("{}\n\n", measure::machine());
    for primes in primes {
        let key = ["sieve", primes.as_str()];
        let of = |bar: &str| -> Vec<f64> {
            let all = rows.find(&key);
            all.filter(|it| it.text("bar") == bar)
                .map(|it| it.number("nanoseconds"))
                .collect()
        };
        let plain = of("plain");
        for bar in ["off", "recorded"] {
            let ratios: Vec<f64> = of(bar).iter().zip(&plain).map(|(it, of)| it / of).collect();
            let least = of(bar).into_iter().fold(f64::INFINITY, f64::min)
                / plain.iter().copied().fold(f64::INFINITY, f64::min);
            if let Some(ratio) = Ratio::of(&ratios) {
                // A string takes whatever is written to it.
                let _ = writeln!(
                    text,
                    "sieve of {primes} primes, {bar}: {ratio}, of the least {least:.3}"
                );
            }
        }
        let sizes = rows.find(&key).filter(|it| it.number("records") > 0.0);
        let sizes: Vec<f64> = sizes
            .map(|it| it.number("bytes") / it.number("records"))
            .collect();
        if !sizes.is_empty() {
            let _ = writeln!(
                text,
                "sieve of {primes} primes: {:.1} MB a million records",
                measure::median(&sizes)
            );
        }
    }
    let all = rows.find(&["replay"]).count();
    let same = rows.find(&["replay"]).filter(|it| it.text("bar") == "same");
    let _ = writeln!(
        text,
        "replay: {} of {all} kernels have the same usages",
        same.count()
    );
    for row in rows.find(&["replay"]).filter(|it| it.text("bar") != "same") {
        let _ = writeln!(text, "  {}: not", row.text("of"));
    }
    let is_clocked = |it: &Row<'_>| zoo::CLOCKED.contains(&it.text("of"));
    for (what, name) in [("seed", "by its seed"), ("again", "by its record")] {
        for (clocked, of) in [(false, "kernels"), (true, "tests that go by the clock")] {
            let key = [what];
            let found = rows.find(&key).filter(|it| is_clocked(it) == clocked);
            let bars: Vec<&str> = found.map(|it| it.text("bar")).collect();
            let same = bars.iter().filter(|it| **it == "same").count();
            let all = bars.len();
            if all > 0 {
                let _ = writeln!(
                    text,
                    "made again {name}: {same} of {all} runs of {of} have the same usages"
                );
            }
        }
    }
    for row in rows.find(&["campaign"]) {
        let _ = writeln!(
            text,
            "campaign of {}, at most {RUNS} runs: {:.1} s, {} found",
            row.text("of"),
            row.number("nanoseconds") / 1e9,
            row.text("bar")
        );
    }
    text
}
