//! `cargo xtask campaign compare`: faults whose place is known, and whether `compare` names it.
//!
//! For each program a pool of normal runs is recorded; then trial after trial a fault in a process (and thread) drawn
//! from the seed, recorded and compared with some of the pool; and healthy runs as negatives. Kept of each trial: what
//! was wrong where, at which place the trace stands among the suspects, at which in the published method's first row
//! (lowest B-score), p, and whether the runs were called different.
//!
//! *Guarantees*: the same seed gives the same trials; rows are raw, and a campaign that was broken off goes on. A fault
//! whose trace is not named has the reciprocal rank 0. *Not for* times.

pub mod kinds;
mod naive;
mod settings;
mod table;
pub mod workshop;

use crate::rows::Rows;
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use kinds::{Fault, KINDS, Kind, Program, SAMPLE, of_command, sort};
use lockstep_testkit::command;
use lockstep_testkit::mpi::Mpi;
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{artifacts, tools};
use naive::Texts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use workshop::{Placed, Random, Workshop};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask campaign compare [OPTION]... [KIND]...

Puts faults into programs (all kinds, or those given), and asks compare which trace it was. Needs Open MPI. Rows are kept in
target/campaign/compare-SEED.csv; what is there is not run again. Takes some ten seconds a trial.

  --trials N      trials of each kind (3)
  --sorts N       of each kind so many that its sort of fault, over all programs, has N
  --normals N     normal runs that each is compared with (5)
  --pool N        normal runs that these are drawn from (8)
  --ranks N       ranks of each of our own programs (8, odd_even.c 16)
  --seed N        which campaign (1)
  --minutes N     begin no trial after so many (180)
  --command TEXT  in the place of these: five kinds of faults at any call of this command, 'mpirun -n 4 ./cg.W.x' say
  --images NAME   what else is recorded of it
  --hangs N       a run that takes so many seconds hangs (12)
  --sample        only a few kinds, which take some seconds; fails where the mean reciprocal rank is below 0.9, a
                  healthy run is called different, or a fault has no effect
  --fresh         forget the rows that are there
  --table         print the table of the rows, run nothing
";

const HEADS: [&str; 13] = [
    "kind",
    "trial",
    "program",
    "truth",
    "place",
    "effect",
    "status",
    "p",
    "rank",
    "suspects",
    "published",
    "naive",
    "verdict",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &[
            "--trials",
            "--normals",
            "--pool",
            "--seed",
            "--minutes",
            "--command",
            "--hangs",
            "--ranks",
            "--sorts",
            "--images",
        ],
        &["--fresh", "--table", "--sample"],
    )?;
    let seed = given.text("--seed", "1").to_owned();
    let (normals, pool): (usize, usize) =
        (given.number("--normals", 5)?, given.number("--pool", 8)?);
    ensure!(
        normals <= pool && normals > 0,
        "--normals: expected 1 to --pool ({pool}), found {normals}"
    );
    let own;
    let kinds: &[Kind] = match given.text("--command", "") {
        "" => KINDS,
        command => {
            own = of_command(command);
            &own
        }
    };
    for name in &given.rest {
        ensure!(
            kinds.iter().any(|kind| kind.name == name),
            "no kind `{name}` of fault"
        );
    }
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("compare-{seed}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let mut outcomes = Rows::open(
        &directory.join(format!("compare-{seed}-settings.csv")),
        &settings::HEADS,
        given.has("--fresh"),
    )?;
    let runs = directory.join(format!("compare-{seed}-runs"));
    let is_chosen = |kind: &Kind| {
        let named = given.rest.iter().any(|it| it == kind.name);
        match given.has("--sample") {
            true => SAMPLE.contains(&kind.name),
            false => given.rest.is_empty() || named,
        }
    };
    if !given.has("--table") {
        if !Mpi::OpenMpi.is_here() {
            ensure!(given.has("--sample"), "Open MPI is not installed");
            tools::skip("no Open MPI");
            return Ok(());
        }
        let deadline = Instant::now() + Duration::from_secs(60 * given.number("--minutes", 180)?);
        let trials: u64 = given.number("--trials", 3)?;
        let of_each: u64 = given.number("--sorts", 0)?;
        let needed = |kind: &Kind| {
            let same = |it: &&Kind| sort(it.name) == sort(kind.name);
            let kinds = kinds.iter().filter(same).count() as u64;
            match of_each {
                0 => trials,
                all => all.div_ceil(kinds),
            }
        };
        let rounds = kinds.iter().map(needed).max().unwrap_or(0);
        std::fs::create_dir_all(&runs)?;
        let mut campaign = Campaign {
            seed,
            normals,
            pool,
            workshop: Workshop {
                runs,
                // Each program of ours ends within two seconds where nothing else runs.
                hangs: Some(Duration::from_secs(given.number("--hangs", 12)?)),
                ranks: match given.number("--ranks", 0)? {
                    0 => None,
                    ranks => Some(ranks),
                },
                images: given.text("--images", "main").to_owned(),
            },
            texts: BTreeMap::new(),
        };
        // Kind after kind in each round, so that a campaign that is broken off has some of each.
        let rounds = (0..rounds).flat_map(|trial| kinds.iter().map(move |kind| (trial, kind)));
        for (trial, kind) in rounds {
            if !is_chosen(kind)
                || trial >= needed(kind)
                || rows.has(&[kind.name, &trial.to_string()])
            {
                continue;
            }
            if Instant::now() > deadline {
                tools::note("the time is over: the same command goes on");
                break;
            }
            let (row, more) = campaign
                .perform(kind, trial)
                .with_context(|| format!("{} {trial}", kind.name))?;
            println!("{}", row.join("  "));
            for more in more {
                outcomes.add(&more)?;
            }
            rows.add(&row)?;
        }
    }
    println!(
        "{}{}rows in {}",
        table::table(&rows, kinds),
        settings::table(&rows, &outcomes),
        path.display()
    );
    if given.has("--sample") {
        let (rank, (alarms, _)) = (
            table::mean_reciprocal_rank(&rows),
            table::false_alarms(&rows),
        );
        ensure!(
            rank >= 0.9 && alarms == 0,
            "expected a mean reciprocal rank of 0.9 and no false alarm, found {rank:.2} and {alarms}"
        );
        // A fault that changes nothing tests nothing.
        let latent = rows.all().filter(|row| row.text("effect") == "no");
        let latent: Vec<&str> = latent.map(|row| row.text("kind")).collect();
        ensure!(latent.is_empty(), "no effect: {}", latent.join(", "));
    }
    Ok(())
}

/// A campaign, and how many of its runs are normal.
struct Campaign {
    seed: String,
    normals: usize,
    pool: usize,
    workshop: Workshop,
    /// The normal runs of each program, as text.
    texts: BTreeMap<PathBuf, Texts>,
}

impl Campaign {
    /// The normal runs of a program, recorded where they are not there yet.
    fn pool_of(&mut self, program: &Program) -> Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for number in 0..self.pool {
            let directory = self.workshop.normal(program, number)?;
            if !self.texts.contains_key(&directory) {
                let to = self
                    .workshop
                    .runs
                    .join(format!("{}-{number}-text", program.source));
                let texts = naive::texts(&directory, &to)?;
                self.texts.insert(directory.clone(), texts);
            }
            all.push(directory);
        }
        Ok(all)
    }

    /// A trial: its row, and those of the sets of options.
    fn perform(&mut self, kind: &Kind, trial: u64) -> Result<(Vec<String>, Vec<Vec<String>>)> {
        let program = kind.program;
        let mut random = Random::new(&[&self.seed, kind.name, &trial.to_string()]);
        let faulty = self.workshop.runs.join("faulty");
        let _ = std::fs::remove_dir_all(&faulty);
        let mut pool = self.pool_of(program)?;
        let Placed { truth, place } = self.workshop.put(kind, &mut random, &pool[0], &faulty)?;
        while pool.len() > self.normals {
            pool.remove(random.below(pool.len() as u64) as usize);
        }
        let (first, others) = pool.split_first().context("no normal run")?;
        let mut compare = lockstep(&["compare", "--json", "--fresh"]);
        compare.arg(first).arg(&faulty);
        for other in others {
            compare.arg("--normal").arg(other);
        }
        let outcome = command::run(&mut compare);
        let found: Value = serde_json::from_str(&outcome.stdout)
            .with_context(|| format!("compare: {outcome:#?}"))?;
        let suspects = found["suspects"].as_array().cloned().unwrap_or_default();
        let named = suspects.iter().position(|it| it["trace"] == truth.as_str());
        let rows = found["table"].as_array().cloned().unwrap_or_default();
        let candidates = rows.iter().filter_map(|row| row["threads"].as_array());
        let candidates = candidates.into_iter().find(|it| !it.is_empty());
        let published = candidates.and_then(|it| it.iter().position(|it| *it == truth.as_str()));
        let rank = |place: Option<usize>| place.map_or(0, |place| place + 1).to_string();
        let texts = naive::texts(&faulty, &self.workshop.runs.join("faulty-text"))?;
        let normals: Vec<&Texts> = pool.iter().filter_map(|it| self.texts.get(it)).collect();
        let effect = match kind.fault {
            Fault::Healthy => "healthy",
            _ if naive::is_latent(&normals, &texts) => "no",
            _ => "yes",
        };
        let naive = naive::rank(normals[0], &texts, &truth)?.unwrap_or(0.0);
        let outcomes = settings::outcomes(kind.name, trial, &truth, &rows);
        let row = vec![
            kind.name.to_owned(),
            trial.to_string(),
            program.source.to_owned(),
            truth,
            place,
            effect.to_owned(),
            outcome.status.to_string(),
            found["p"].to_string(),
            rank(named),
            suspects.len().to_string(),
            rank(published),
            naive.to_string(),
            found["verdict"].as_str().unwrap_or_default().to_owned(),
        ];
        Ok((row, outcomes))
    }
}
