//! `cargo xtask answers`: what two builds of `lockstep` find in the same runs.
//!
//! ```text
//!  target/answers/runs-SEED/ID ──► lockstep of the base ──► facts ─┐
//!   (recorded once, by the base)   lockstep of now      ──► facts ─┴─► differences ──► reasons (bench/answers.txt)
//! ```
//! *Guarantees*: what is compared are values of `--json` (`facts`, and the exit status), never words. *Not for* whether an answer is
//! right: the campaigns say that.

mod reasons;
mod runs;

use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_testkit::artifacts;
use lockstep_testkit::command::{self, Running, few_at_once};
use lockstep_testkit::facts::{Answer, Difference};
use lockstep_testkit::recording::traced_environment;
use reasons::Reasons;
use runs::{Made, Recorder, Run};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask answers BASE [--runs N] [--seed N]

Builds the revision BASE beside the working tree, and asks both builds about the same runs: hangs and slow jobs of `campaign
progress`, faults and healthy runs of `campaign compare`, and mistakes that small programs make. Who, kind, function, line and exit
status are compared, from --json. Each difference needs a line in bench/answers.txt; ends with 1 where one has none.

  --runs N   so many runs (300)
  --seed N   which ones (1): each seed has faults at other places

The runs are recorded once, by BASE, into target/answers/runs-SEED; all differences are in target/answers/differences.txt.
";

/// Differences that are shown; all of them are in a file.
const SHOWN: usize = 40;

/// A difference, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    run: String,
    question: &'static str,
    difference: Difference,
}

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--runs", "--seed", "--base", "--now"], &[])?;
    let (count, seed): (usize, u64) = (given.number("--runs", 300)?, given.number("--seed", 1)?);
    let [base, now] = ["--base", "--now"].map(|it| PathBuf::from(given.text(it, "")));
    ensure!(
        base.exists() && now.exists(),
        "--base and --now name two commands"
    );
    let begun = Instant::now();
    let made = record(count, seed)?;
    let recorded = begun.elapsed().as_secs();
    let (asked, mut told) = ask(&made, [base.as_path(), now.as_path()])?;
    told.sort();
    let table = artifacts::repository().join("bench/answers.txt");
    let text = std::fs::read_to_string(&table).unwrap_or_default();
    let mut reasons = Reasons::read(&text).with_context(|| table.display().to_string())?;
    let is_open = |it: &&Told| !reasons.explain(&it.run, it.question, &it.difference);
    let open: Vec<&Told> = told.iter().filter(is_open).collect();
    let path = artifacts::target().join("answers/differences.txt");
    let lines = |all: &[&Told]| all.iter().map(|it| line(it)).collect::<String>();
    std::fs::write(&path, lines(&open))?;
    print!("{}", lines(open.get(..SHOWN).unwrap_or(&open)));
    if open.len() > SHOWN {
        println!("... {} in all: {}", open.len(), path.display());
    }
    for number in reasons.stale() {
        println!(
            "bench/answers.txt:{number}: the reason of nothing in these {} runs",
            made.len()
        );
    }
    let seconds = begun.elapsed().as_secs() - recorded;
    println!(
        "{} runs ({recorded} s to record), {asked} questions to both ({seconds} s): {} differences, {} without a reason",
        made.len(),
        told.len(),
        open.len()
    );
    ensure!(
        open.is_empty(),
        "differences without a reason: say it in bench/answers.txt, or mend them"
    );
    Ok(())
}

/// As a line of the table of reasons.
fn line(it: &Told) -> String {
    let Difference { field, base, now } = &it.difference;
    format!(
        "{} | {} | {field} | {base} | {now} | \n",
        it.run, it.question
    )
}

/// The first so many runs of the seed that can be made, in their order.
fn record(count: usize, seed: u64) -> Result<Vec<Made>> {
    let place = artifacts::target().join(format!("answers/runs-{seed}"));
    std::fs::create_dir_all(&place)?;
    let recorder = Recorder::new(place, seed);
    let mut left = runs::all(seed);
    let mut all = Vec::new();
    while all.len() < count && !left.is_empty() {
        let next: Vec<Run> = left.drain(..(count - all.len()).min(left.len())).collect();
        let made = Mutex::new(BTreeMap::new());
        let numbers: Vec<usize> = (0..next.len()).collect();
        few_at_once(&numbers, |number| {
            let run = &next[*number];
            let one = recorder.make(run).unwrap_or_else(|error| {
                println!("{}: left out: {error:#}", run.id);
                None
            });
            let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
            made.insert(*number, one);
            if made.len() % 20 == 0 {
                println!("{} of {count} runs", all.len() + made.len());
            }
        });
        let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.extend(made.into_values().flatten());
    }
    Ok(all)
}

/// Asks both builds everything; how many questions there were, and in what they differ.
fn ask(made: &[Made], builds: [&Path; 2]) -> Result<(usize, Vec<Told>)> {
    let found = Mutex::new((0, Vec::new(), Vec::new()));
    few_at_once(made, |made| {
        for (question, words) in runs::questions(made) {
            let [base, now] = builds.map(|it| answer(it, &words));
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.0 += 1;
            match (base, now) {
                (Ok(base), Ok(now)) => {
                    let each = base.differences(&now).into_iter();
                    found.1.extend(each.map(|difference| Told {
                        run: made.id.clone(),
                        question,
                        difference,
                    }));
                }
                (Err(error), _) | (_, Err(error)) => found.2.push(error),
            }
        }
    });
    let (asked, told, errors) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok((asked, told)),
    }
}

fn answer(build: &Path, words: &[String]) -> Result<Answer> {
    let mut command = Command::new(build);
    traced_environment(command.args(words));
    let outcome = Running::start(&mut command).wait(command::LIMIT);
    Answer::read(&outcome).with_context(|| format!("{} {}", build.display(), words.join(" ")))
}
