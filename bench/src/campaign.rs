//! `cargo xtask campaign compare`: faults whose place is known, and whether `compare` names it.
//!
//! For each program a pool of normal runs is recorded; then trial after trial a fault in a process (and thread) drawn
//! from the seed, recorded and compared with some of the pool; and healthy runs as negatives. Kept of each trial: what
//! was wrong where, at which place the trace stands among the suspects, at which in the published method's first row
//! (lowest B-score), p, and whether the runs were called different.
//!
//! *Guarantees*: the same seed gives the same trials; rows are raw, and a campaign that was broken off goes on. A fault
//! whose trace is not named has the reciprocal rank 0. *Not for* times.

use crate::rows::Rows;
use crate::words::Words;
use anyhow::{Context, Result, bail, ensure};
use lockstep_testkit::command::{self, Outcome, Running};
use lockstep_testkit::mpi::Mpi;
use lockstep_testkit::recording::{lockstep, record_command};
use lockstep_testkit::{artifacts, tools};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask campaign compare [OPTION]... [KIND]...

Puts faults into programs (all kinds, or those given), and asks compare which trace it was. Needs Open MPI. Rows are kept in
target/campaign/compare-SEED.csv; what is there is not run again. Takes some ten seconds a trial.

  --trials N      trials of each kind (3)
  --normals N     normal runs that each is compared with (5)
  --pool N        normal runs that these are drawn from (8)
  --seed N        which campaign (1)
  --minutes N     begin no trial after so many (180)
  --fresh         forget the rows that are there
  --table         print the table of the rows, run nothing
";

const HEADS: [&str; 11] = [
    "kind",
    "trial",
    "program",
    "process",
    "thread",
    "status",
    "p",
    "rank",
    "suspects",
    "published",
    "verdict",
];

/// A fault: its name, the program, and how it is put in.
struct Kind {
    name: &'static str,
    program: &'static Program,
    fault: Fault,
}

enum Fault {
    /// None: who is named is a false alarm.
    Healthy,
    /// A switch of the program; whether a thread has it (else the whole process); whether the program hangs then.
    Switch(&'static str, bool, bool),
    /// `lockstep inject` with these options, at call 1 to so many of a function.
    Inject(&'static [&'static str], &'static str, u64),
}

struct Program {
    source: &'static str,
    ranks: usize,
    workers: u64,
    arguments: &'static [&'static str],
}

static SEARCH: Program = Program {
    source: "ilcs.c",
    ranks: 8,
    workers: 4,
    arguments: &["--seeds", "30", "--rounds", "8"],
};

static SORT: Program = Program {
    source: "odd_even.c",
    ranks: 16,
    workers: 0,
    arguments: &[],
};

const fn of(program: &'static Program, name: &'static str, fault: Fault) -> Kind {
    Kind {
        name,
        program,
        fault,
    }
}

static KINDS: &[Kind] = &[
    of(&SEARCH, "search-healthy", Fault::Healthy),
    of(
        &SEARCH,
        "missing-critical",
        Fault::Switch("misCrit-1-1-x", true, false),
    ),
    of(
        &SEARCH,
        "wrong-operation-1",
        Fault::Switch("allRed1wrgOp-1-all-x", false, false),
    ),
    of(
        &SEARCH,
        "wrong-operation-2",
        Fault::Switch("allRed2wrgOp-1-all-x", false, false),
    ),
    of(
        &SEARCH,
        "wrong-size-1",
        Fault::Switch("allRed1wrgSize-1-all-x", false, false),
    ),
    of(
        &SEARCH,
        "wrong-size-bcast",
        Fault::Switch("bcastWrgSize-1-all-x", false, false),
    ),
    of(
        &SEARCH,
        "infinite-loop",
        Fault::Switch("infLoop-1-1-1", true, true),
    ),
    of(&SORT, "sort-healthy", Fault::Healthy),
    of(&SORT, "swapped-order", Fault::Switch("swap", false, false)),
    of(&SORT, "deadlock", Fault::Switch("deadlock", false, true)),
    of(
        &SORT,
        "wrong-tag",
        Fault::Inject(&["--fault", "argument", "--set", "tag=9"], "MPI_Send", 6),
    ),
    of(
        &SORT,
        "wrong-count",
        Fault::Inject(&["--fault", "argument", "--set", "count=8"], "MPI_Send", 6),
    ),
    of(
        &SORT,
        "early-exit",
        Fault::Inject(&["--fault", "exit"], "MPI_Recv", 6),
    ),
    of(
        &SORT,
        "skipped-send",
        Fault::Inject(&["--fault", "skip"], "MPI_Send", 6),
    ),
    of(
        &SORT,
        "hang",
        Fault::Inject(&["--fault", "hang"], "find_partner", 6),
    ),
];

/// How long a program may take that hangs, or may.
const HANGS: Duration = Duration::from_secs(8);

/// A sequence of numbers from a seed.
struct Random(u64);

impl Random {
    fn new(parts: &[&str]) -> Self {
        let text = parts.join("/");
        let mix = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--trials", "--normals", "--pool", "--seed", "--minutes"],
        &["--fresh", "--table"],
    )?;
    let seed = given.text("--seed", "1").to_owned();
    let (normals, pool): (usize, usize) =
        (given.number("--normals", 5)?, given.number("--pool", 8)?);
    ensure!(
        normals <= pool && normals > 0,
        "--normals: expected 1 to --pool ({pool}), found {normals}"
    );
    for name in &given.rest {
        ensure!(
            KINDS.iter().any(|kind| kind.name == name),
            "no kind `{name}` of fault"
        );
    }
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("compare-{seed}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let runs = directory.join(format!("compare-{seed}-runs"));
    if !given.has("--table") {
        if !Mpi::OpenMpi.is_here() {
            bail!("Open MPI is not installed");
        }
        let deadline = Instant::now() + Duration::from_secs(60 * given.number("--minutes", 180)?);
        let trials: u64 = given.number("--trials", 3)?;
        std::fs::create_dir_all(&runs)?;
        // Kind after kind in each round, so that a campaign that is broken off has some of each.
        'all: for trial in 0..trials {
            for kind in KINDS {
                if !(given.rest.is_empty() || given.rest.iter().any(|it| it == kind.name))
                    || rows.has(&[kind.name, &trial.to_string()])
                {
                    continue;
                }
                if Instant::now() > deadline {
                    tools::note("the time is over: the same command goes on");
                    break 'all;
                }
                let row = perform(kind, trial, &seed, &runs, normals, pool)
                    .with_context(|| format!("{} {trial}", kind.name))?;
                println!("{}", row.join("  "));
                rows.add(&row)?;
            }
        }
    }
    println!("{}rows in {}", table(&rows), path.display());
    Ok(())
}

fn words(program: &Program, more: &[String]) -> Vec<String> {
    let built = Mpi::OpenMpi
        .recipe(program.source)
        .flags(&["-g", "-O1"])
        .build();
    let mut words = Mpi::OpenMpi.launch(program.ranks);
    words.push(built.display().to_string());
    words.extend(program.arguments.iter().map(|&word| word.to_owned()));
    words.extend_from_slice(more);
    words
}

/// The normal runs of a program, recorded where they are not there yet.
fn pool_of(program: &Program, runs: &Path, pool: usize) -> Result<Vec<PathBuf>> {
    let all = (0..pool).map(|number| {
        let directory = runs.join(format!("{}-{number}", program.source));
        if !directory.exists() {
            let part = runs.join("part");
            let _ = std::fs::remove_dir_all(&part);
            let outcome = command::run(&mut record_command(&part, &[], &words(program, &[])));
            ensure!(outcome.status == 0, "a healthy run failed: {outcome:#?}");
            std::fs::rename(&part, &directory)?;
        }
        Ok(directory)
    });
    all.collect()
}

fn perform(
    kind: &Kind,
    trial: u64,
    seed: &str,
    runs: &Path,
    normals: usize,
    pool: usize,
) -> Result<Vec<String>> {
    let program = kind.program;
    let mut random = Random::new(&[seed, kind.name, &trial.to_string()]);
    let process = random.below(program.ranks as u64);
    let thread = match kind.fault {
        Fault::Switch(_, true, _) => 1 + random.below(program.workers),
        _ => 0,
    };
    let faulty = runs.join("faulty");
    let _ = std::fs::remove_dir_all(&faulty);
    match kind.fault {
        Fault::Healthy => drop(command::run(&mut record_command(
            &faulty,
            &[],
            &words(program, &[]),
        ))),
        Fault::Switch(bug, _, hangs) => {
            let at = match program.workers {
                0 => ["--rank".to_owned(), process.to_string()],
                _ => [
                    "--at".to_owned(),
                    format!("{process}.{thread}.{}", random.below(20)),
                ],
            };
            let mut more = vec!["--bug".to_owned(), bug.to_owned()];
            more.extend(at);
            start(
                &mut record_command(&faulty, &[], &words(program, &more)),
                hangs,
            )?;
        }
        Fault::Inject(options, function, calls) => {
            let mut inject = lockstep(&["inject"]);
            inject.args(options);
            inject
                .arg("--at")
                .arg(format!("{function}#{}", 1 + random.below(calls)));
            inject.arg("--process").arg(process.to_string());
            inject
                .arg("-o")
                .arg(&faulty)
                .arg("--")
                .args(words(program, &[]));
            start(&mut inject, true)?;
        }
    }
    let mut pool = pool_of(program, runs, pool)?;
    while pool.len() > normals {
        pool.remove(random.below(pool.len() as u64) as usize);
    }
    let (first, others) = pool.split_first().context("no normal run")?;
    let mut compare = lockstep(&["compare", "--json"]);
    compare.arg(first).arg(&faulty);
    for other in others {
        compare.arg("--normal").arg(other);
    }
    let outcome = command::run(&mut compare);
    let found: Value =
        serde_json::from_str(&outcome.stdout).with_context(|| format!("compare: {outcome:#?}"))?;
    let truth = format!("{process}.{thread}");
    let suspects = found["suspects"].as_array().cloned().unwrap_or_default();
    let named = suspects.iter().position(|it| it["trace"] == truth.as_str());
    let rows = found["table"].as_array().cloned().unwrap_or_default();
    let row = rows
        .iter()
        .find(|row| row["threads"].as_array().is_some_and(|it| !it.is_empty()));
    let published = row.and_then(|row| {
        row["threads"]
            .as_array()?
            .iter()
            .position(|it| *it == truth.as_str())
    });
    let rank = |place: Option<usize>| place.map_or(0, |place| place + 1).to_string();
    Ok(vec![
        kind.name.to_owned(),
        trial.to_string(),
        program.source.to_owned(),
        process.to_string(),
        thread.to_string(),
        outcome.status.to_string(),
        found["p"].to_string(),
        rank(named),
        suspects.len().to_string(),
        rank(published),
        found["verdict"].as_str().unwrap_or_default().to_owned(),
    ])
}

/// Runs a faulty program to its end, whatever that is; what hangs is ended.
fn start(command: &mut std::process::Command, hangs: bool) -> Result<()> {
    let _: Option<Outcome> = if hangs {
        let running = Running::start(command);
        std::thread::sleep(HANGS);
        Some(running.stop())
    } else {
        Some(command::run(command))
    };
    Ok(())
}

/// Kind by kind: how often the runs are called different, and where the right trace stands.
fn table(rows: &Rows) -> String {
    let mut text =
        String::from("kind               trials  differs  top-1  top-3   MRR  published MRR\n");
    let mut all: Vec<(f64, f64)> = Vec::new();
    let (mut alarms, mut healthy) = (0, 0);
    for kind in KINDS {
        let key = [kind.name];
        let of: Vec<_> = rows.find(&key).collect();
        if of.is_empty() {
            continue;
        }
        let count = of.len();
        let differs = of.iter().filter(|row| row.text("status") == "1").count();
        if matches!(kind.fault, Fault::Healthy) {
            alarms += differs;
            healthy += count;
            text.push_str(&format!("{:18} {count:6}  {differs:7}\n", kind.name));
            continue;
        }
        let reciprocal = |row: &crate::rows::Row, head| match row.number(head) {
            // Nobody is named where the runs are not called different.
            rank if rank > 0.0 && (head != "rank" || row.text("status") == "1") => 1.0 / rank,
            _ => 0.0,
        };
        let ours: Vec<f64> = of.iter().map(|row| reciprocal(row, "rank")).collect();
        let theirs: Vec<f64> = of.iter().map(|row| reciprocal(row, "published")).collect();
        let share =
            |least: f64| ours.iter().filter(|it| **it >= least).count() as f64 / count as f64;
        let mean = |all: &[f64]| all.iter().sum::<f64>() / count as f64;
        text.push_str(&format!(
            "{:18} {count:6}  {differs:7}  {:5.2}  {:5.2}  {:4.2}  {:13.2}\n",
            kind.name,
            share(0.99),
            share(0.33),
            mean(&ours),
            mean(&theirs)
        ));
        all.extend(ours.into_iter().zip(theirs));
    }
    if !all.is_empty() {
        let count = all.len() as f64;
        let ours: Vec<f64> = all.iter().map(|(ours, _)| *ours).collect();
        let mean = ours.iter().sum::<f64>() / count;
        let variance =
            ours.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        let theirs = all.iter().map(|(_, theirs)| theirs).sum::<f64>() / count;
        text.push_str(&format!(
            "faults: {count}, mean reciprocal rank {mean:.2} ± {:.2} (95 %), published method {theirs:.2}\n",
            1.96 * (variance / count).sqrt()
        ));
    }
    if healthy > 0 {
        text.push_str(&format!(
            "false alarms: {alarms} of {healthy} healthy runs\n"
        ));
    }
    text
}
