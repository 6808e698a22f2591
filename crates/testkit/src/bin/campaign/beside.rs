//! `campaign go --beside`: the zoo under other detectors, and in how many runs each finds its bugs.
//!
//! ```text
//! programs/go/zoo ─► target/beside/DETECTOR/   a copy, with what the detector needs beside each kernel ─► go test -c
//! ```
//! A run finds a bug where the program itself says so: it ends with another status than 0. One that hangs says nothing;
//! it is ended, and a kernel that hung a few times is given up. The detectors come through the Go module proxy when they
//! are asked for, into `target/`. Yields before usages, as published, and ours are judged by what goroutines did.
//!
//! All campaigns of a kernel use one binary. Some are at work side by side: most of the time they wait.

mod detector;

use anyhow::{Context, Result};
use detector::{DETECTORS, Detector};
use lockstep_goroutines::judge;
use lockstep_goroutines::ring::Mode;
use lockstep_testkit::artifacts;
use lockstep_testkit::statistics;
use lockstep_testkit::zoo::{self, Built, Kernel};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Delays of the published method: any number of yields up to this.
const BOUNDS: [u64; 5] = [0, 1, 2, 3, 4];
/// Programs at a time for each processor, of detectors that let a program hang.
const SIDE_BY_SIDE: usize = 4;

/// What is asked for.
pub struct Options {
    /// Most runs of a kernel in a campaign.
    pub runs: u64,
    /// Of the first campaign; the others' follow.
    pub seed: u64,
    /// How often all is done.
    pub campaigns: u64,
    /// Parts of names of kernels; all where there is none.
    pub only: Vec<String>,
}

/// In which run of a campaign a kernel's bug was found, from 1; 0: in none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    detector: String,
    seed: u64,
    kernel: String,
    found: u64,
    milliseconds: u128,
}

/// The rows, and the file that they are kept in.
struct Table {
    rows: Vec<Row>,
    file: File,
}

/// A kernel in a campaign.
struct Job<'a> {
    kernel: &'a Kernel,
    index: usize,
    seed: u64,
}

/// Makes the table.
pub fn run(options: &Options) -> Result<ExitCode> {
    let mut kernels = zoo::kernels()?;
    let is_chosen = |it: &Kernel| options.only.iter().any(|part| it.name.contains(part));
    kernels.retain(|it| options.only.is_empty() || is_chosen(it));
    let table = Mutex::new(Table::open(options.runs)?);
    let processors = std::thread::available_parallelism()?.get();
    for detector in &DETECTORS {
        let jobs = left(&table, detector.name, &kernels, options);
        if jobs.is_empty() {
            continue;
        }
        let place = match detector.place() {
            Ok(place) => place,
            Err(error) => {
                println!("{}: left out: {error:#}", detector.name);
                continue;
            }
        };
        let files: Vec<Option<_>> = kernels
            .iter()
            .enumerate()
            .map(|(index, kernel)| {
                // One that does not build with it (another type of lock) is not found by it.
                let is_asked = jobs.iter().any(|job| job.index == index);
                let built = is_asked.then(|| detector.build(&place, kernel))?;
                built
                    .inspect_err(|error| println!("{}: {}: {error:#}", detector.name, kernel.name))
                    .ok()
            })
            .collect();
        all(&jobs, SIDE_BY_SIDE * processors, |job| {
            let began = Instant::now();
            let file = files[job.index].as_ref();
            let found = file.map_or(0, |file| Detector::found(detector, file, options.runs));
            Table::keep(&table, Row::of(detector.name, job, found, began))
        })?;
    }
    let built = Built::all(&kernels)?;
    let ours = left(&table, "lockstep", &kernels, options);
    all(&ours, processors, |job| {
        let began = Instant::now();
        let runs = u32::try_from(options.runs)?;
        let found = built[job.index].campaign("TestBug", job.seed, runs, |_| {})?;
        let bug = found.worst.filter(|it| it.0.verdict.is_bug());
        let found = bug.map_or(0, |it| u64::from(it.1));
        Table::keep(&table, Row::of("lockstep", job, found, began))
    })?;
    for bound in BOUNDS {
        let name = format!("yields, D={bound}");
        let jobs = left(&table, &name, &kernels, options);
        all(&jobs, processors, |job| {
            let began = Instant::now();
            let found = yields(&built[job.index], job.seed, options.runs, bound)?;
            Table::keep(&table, Row::of(&name, job, found, began))
        })?;
    }
    let table = table.into_inner().unwrap_or_else(|it| it.into_inner());
    print!("{}", summary(&table.rows, options.runs));
    Ok(ExitCode::SUCCESS)
}

/// What is not in the table yet, campaign by campaign.
fn left<'a>(
    table: &Mutex<Table>,
    name: &str,
    kernels: &'a [Kernel],
    options: &Options,
) -> Vec<Job<'a>> {
    let table = table.lock().unwrap_or_else(|it| it.into_inner());
    let is_there = |job: &Job| {
        table.rows.iter().any(|row| {
            row.detector == name && row.kernel == job.kernel.name && row.seed == job.seed
        })
    };
    (options.seed..options.seed + options.campaigns)
        .flat_map(|seed| {
            let of = move |(index, kernel)| Job {
                kernel,
                index,
                seed,
            };
            kernels.iter().enumerate().map(of)
        })
        .filter(|job| !is_there(job))
        .collect()
}

/// Does all jobs, `workers` at a time; the first failure is told, and ends it.
fn all(jobs: &[Job], workers: usize, one: impl Fn(&Job) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = one(job) {
                next.store(jobs.len(), Ordering::Relaxed);
                return Err(error.context(job.kernel.name.clone()));
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|it| {
            it.join()
                .unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")))
        })
    })
}

/// The run in which yields before usages, half of them and at most `bound`, show a bug.
fn yields(built: &Built, seed: u64, runs: u64, bound: u64) -> Result<u64> {
    for number in 1..=runs {
        let mut plan = zoo::plan(seed, number - 1);
        plan.processors = None;
        plan.policy.steady = false;
        plan.policy.mode = if bound == 0 { Mode::None } else { Mode::Yield };
        (plan.policy.chance, plan.policy.bound) = (128, bound);
        let (execution, _) = built.run("TestBug", &plan)?;
        if judge(&execution).verdict.is_bug() {
            return Ok(number);
        }
    }
    Ok(0)
}

impl Table {
    fn open(runs: u64) -> Result<Self> {
        let directory = artifacts::target().join("campaign");
        fs::create_dir_all(&directory)?;
        let path = directory.join(format!("beside-{runs}.csv"));
        let before = fs::read_to_string(&path).unwrap_or_default();
        let file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        Ok(Self {
            rows: before.lines().filter_map(Row::read).collect(),
            file,
        })
    }

    fn keep(table: &Mutex<Self>, row: Row) -> Result<()> {
        let mut table = table.lock().unwrap_or_else(|it| it.into_inner());
        writeln!(table.file, "{}", row.csv())?;
        table.rows.push(row);
        Ok(())
    }
}

impl Row {
    fn of(detector: &str, job: &Job, found: u64, began: Instant) -> Self {
        Self {
            detector: detector.to_owned(),
            seed: job.seed,
            kernel: job.kernel.name.clone(),
            found,
            milliseconds: began.elapsed().as_millis(),
        }
    }

    fn csv(&self) -> String {
        let detector = self.detector.replace(',', ";");
        format!(
            "{detector},{},{},{},{}",
            self.seed, self.kernel, self.found, self.milliseconds
        )
    }

    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(',').collect();
        let [detector, seed, kernel, found, milliseconds] = words[..] else {
            return None;
        };
        Some(Self {
            detector: detector.replace(';', ","),
            seed: seed.parse().ok()?,
            kernel: kernel.to_owned(),
            found: found.parse().ok()?,
            milliseconds: milliseconds.parse().ok()?,
        })
    }
}

/// A line a detector: the share of kernels found in so many runs; of those found, in which run and after how long.
/// Means over the campaigns, with 95 % intervals.
fn summary(rows: &[Row], runs: u64) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.detector.as_str()) {
            names.push(&row.detector);
        }
    }
    let last = format!("<={runs}");
    let mut text = format!(
        "{:<14}{:>10}{:>9}{:>18}{:>18}{:>18}{:>18}{:>18}\n",
        "detector", "campaigns", "kernels", "run 1, %", "<=10, %", last, "found in run", "seconds"
    );
    for name in names {
        let mut campaigns: BTreeMap<u64, Vec<&Row>> = BTreeMap::new();
        for row in rows.iter().filter(|it| it.detector == name) {
            campaigns.entry(row.seed).or_default().push(row);
        }
        let within = |most: u64| {
            let shares = campaigns.values().map(|rows| {
                let found = rows.iter().filter(|it| (1..=most).contains(&it.found));
                100.0 * found.count() as f64 / rows.len() as f64
            });
            interval(&shares.collect::<Vec<f64>>())
        };
        let of_found = |value: &dyn Fn(&Row) -> f64| {
            let means = campaigns.values().filter_map(|rows| {
                let found = rows.iter().filter(|it| it.found > 0);
                let values: Vec<f64> = found.map(|it| value(it)).collect();
                (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
            });
            interval(&means.collect::<Vec<f64>>())
        };
        let kernels = campaigns.values().map(Vec::len).max().unwrap_or(0);
        // A string takes whatever is written to it.
        let _ = writeln!(
            text,
            "{name:<14}{:>10}{kernels:>9}{:>18}{:>18}{:>18}{:>18}{:>18}",
            campaigns.len(),
            within(1),
            within(10),
            within(runs),
            of_found(&|it| it.found as f64),
            of_found(&|it| it.milliseconds as f64 / 1000.0),
        );
    }
    text
}

/// Mean and 95 % interval of the mean.
fn interval(values: &[f64]) -> String {
    match statistics::interval(values) {
        None => "-".to_owned(),
        Some((mean, None)) => format!("{mean:.1}"),
        Some((mean, Some(half))) => format!("{mean:.1} +- {half:.1}"),
    }
}
