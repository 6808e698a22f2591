//! `cargo xtask bench stall`: the longest work that recording one event causes, timed inside the probe.
//!
//! Everything that an event can wait for happens in the slow path: a batch is encoded, a file grows, a
//! stack grows. The probe times every slow path. The programs are deterministic and have one thread, so
//! that the n-th slow path does the same work in every run: of its times the least is the work, and what
//! another run took beyond it is somebody else's (an interrupt, another process, the host). Such samples
//! are counted, not shown.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, compiled, empty};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_format::plan::routine;
use std::fmt::Write;
use std::path::Path;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench stall [OPTION]...

The longest work that one event can cause. Takes about a minute.

  --names LIST   of hot,leaves,tree,random,deep (all)
  --bars LIST    of none,lockstep,low,seed (lockstep,low)
  --rounds N     runs of each program (9)
  --label NAME   rows in stall-NAME.csv (own)
  --fresh        forget the rows that are there
";

const HEADS: [&str; 14] = [
    "program",
    "bar",
    "runs",
    "slow_paths",
    "first_us",
    "p50_us",
    "p99_us",
    "p999_us",
    "longest_us",
    "longest_kind",
    "raw_p999_us",
    "raw_longest_us",
    "removed",
    "load",
];

/// Programs and how often they repeat: some ten thousand batches.
const PROGRAMS: [(&str, u64); 5] = [
    ("hot", 20_000_000),
    ("leaves", 2_000_000),
    ("tree", 1_000_000),
    ("random", 4_000_000),
    ("deep", 1_000),
];

const BARS: [(&str, &[&str]); 4] = [
    ("none", &["--codec", "none"]),
    ("lockstep", &[]),
    ("low", &["--memory", "low"]),
    ("seed", &["--codec", "seed"]),
];

/// A sample this much above the least of its kind was disturbed.
const DISTURBED_US: f64 = 0.3;

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--names", "--bars", "--rounds", "--label"],
        &["--fresh"],
    )?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("stall-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let rounds: usize = given.number("--rounds", 9)?;
    for (program, times) in PROGRAMS {
        if !given
            .list("--names", "hot,leaves,tree,random,deep")
            .iter()
            .any(|name| name == program)
        {
            continue;
        }
        for name in given.list("--bars", "lockstep,low") {
            let (name, options) = BARS
                .iter()
                .find(|(known, _)| *known == name)
                .with_context(|| format!("--bars: no bar `{name}`"))?;
            if !rows.has(&[program, name]) {
                rows.add(&measure_one(program, times, name, options, rounds)?)?;
            }
        }
    }
    let mut report = format!(
        "{}\n\nslow path, microseconds: the least of every slow path over all runs; raw: every sample\n",
        measure::machine()
    );
    let _ = writeln!(
        report,
        "{:<10}{:<10}{:>6}{:>12}{:>10}{:>9}{:>9}{:>9}{:>10}{:>6}{:>11}{:>13}{:>22}",
        "program",
        "bar",
        "runs",
        "slow paths",
        "first",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "kind",
        "raw p99.9",
        "raw longest",
        "removed"
    );
    for row in rows.all() {
        let _ = writeln!(
            report,
            "{:<10}{:<10}{:>6}{:>12}{:>10}{:>9}{:>9}{:>9}{:>10}{:>6}{:>11}{:>13}{:>22}",
            row.text("program"),
            row.text("bar"),
            row.text("runs"),
            row.text("slow_paths"),
            row.text("first_us"),
            row.text("p50_us"),
            row.text("p99_us"),
            row.text("p999_us"),
            row.text("longest_us"),
            row.text("longest_kind"),
            row.text("raw_p999_us"),
            row.text("raw_longest_us"),
            row.text("removed")
        );
    }
    report.push_str(
        "first: a thread's first event, which takes its place in the file. kind: the routine of \
         lockstep_format::plan::routine that the longest came from.\n",
    );
    print!("{report}");
    std::fs::write(directory.join(format!("stall-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

fn measure_one(
    program: &str,
    times: u64,
    bar: &str,
    options: &[&str],
    rounds: usize,
) -> Result<Vec<String>> {
    let words = [
        compiled(&format!("{program}.c"), &[])?
            .display()
            .to_string(),
        times.to_string(),
    ];
    let mut runs: Vec<Vec<Sample>> = Vec::new();
    for _ in 0..rounds {
        let directory = empty("stall")?;
        let log = directory.join("log");
        let run = directory.join("run");
        let ran = Job::recorded(&words, options, &run)
            .with("LOCKSTEP_STALL", &log.display().to_string())
            .seconds(120)
            .run()?;
        ensure!(ran.status == 0, "{program} ended with {}", ran.status);
        runs.push(read(&log)?);
        std::fs::remove_dir_all(&directory)?;
    }
    eprintln!("{program} {bar}: {rounds} runs");
    let count = runs.iter().map(Vec::len).min().unwrap_or(0);
    ensure!(
        runs.iter().all(|run| run.len() == count) && count > 1,
        "{program}: the runs have {:?} slow paths, expected equal numbers",
        runs.iter().map(Vec::len).collect::<Vec<_>>()
    );
    let least: Vec<Sample> = (0..count)
        .map(|at| {
            runs.iter()
                .map(|run| run[at])
                .min_by(|one, two| one.us.total_cmp(&two.us))
                .unwrap_or(runs[0][at])
        })
        .collect();
    let removed = runs
        .iter()
        .flat_map(|run| run.iter().zip(&least))
        .filter(|(sample, least)| sample.us > least.us + DISTURBED_US)
        .count();
    // The first event of a thread is told apart; images that are loaded and the process's end are no events.
    let is_event = |sample: &&Sample| {
        let none = [
            routine::END,
            routine::MPI,
            routine::LOADED,
            routine::FAULT,
            routine::COUNT,
        ];
        !none.contains(&(sample.kind as usize))
    };
    let inner: Vec<Sample> = least[1..].iter().filter(is_event).copied().collect();
    let mut sorted: Vec<f64> = inner.iter().map(|sample| sample.us).collect();
    sorted.sort_by(f64::total_cmp);
    let mut raw: Vec<f64> = runs
        .iter()
        .flat_map(|run| &run[1..])
        .map(|sample| sample.us)
        .collect();
    raw.sort_by(f64::total_cmp);
    let at = |sorted: &[f64], share: f64| {
        let index = (sorted.len() as f64 * share) as usize;
        sorted
            .get(index.min(sorted.len().saturating_sub(1)))
            .copied()
            .unwrap_or(f64::NAN)
    };
    let longest = inner
        .iter()
        .max_by(|one, two| one.us.total_cmp(&two.us))
        .copied()
        .unwrap_or(least[0]);
    let number = |value: f64| format!("{value:.2}");
    Ok(vec![
        program.to_owned(),
        bar.to_owned(),
        rounds.to_string(),
        count.to_string(),
        number(least[0].us),
        number(at(&sorted, 0.5)),
        number(at(&sorted, 0.99)),
        number(at(&sorted, 0.999)),
        number(longest.us),
        longest.kind.to_string(),
        number(at(&raw, 0.999)),
        number(at(&raw, 1.0)),
        format!("{removed} of {}", count * rounds),
        std::fs::read_to_string("/proc/loadavg")?
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned(),
    ])
}

/// One slow path.
#[derive(Debug, Clone, Copy)]
struct Sample {
    us: f64,
    kind: u32,
}

/// Reads what the probe's `stall` wrote.
fn read(log: &Path) -> Result<Vec<Sample>> {
    const HEAD: usize = 8;
    let bytes =
        std::fs::read(log).with_context(|| format!("{}: the probe wrote no log", log.display()))?;
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
        .collect();
    ensure!(words.len() > HEAD, "{}: too short", log.display());
    let ticks_each_us =
        (words[2].wrapping_sub(words[0])) as f64 * 1e3 / words[3].wrapping_sub(words[1]) as f64;
    let count = usize::try_from(words[4])?;
    ensure!(
        count <= words.len() - HEAD,
        "{count} slow paths, room for {}",
        words.len() - HEAD
    );
    Ok(words[HEAD..HEAD + count]
        .iter()
        .map(|word| Sample {
            us: (word & 0xffff_ffff) as f64 / ticks_each_us,
            kind: (word >> 32) as u32,
        })
        .collect())
}
