//! `cargo xtask bench`: what recording costs, beside callgrind and uftrace on the same binaries, and
//! what comparing costs; and, by name, a bench for each goal, with raw rows that can be taken up again.
//!
//! *Guarantees*: every ratio is of two runs that stood next to each other in time (plain, traced,
//! plain, traced, ...), so that a machine that grows slower meanwhile does not show; failures are
//! shown, not left out. *Costs*: as long as callgrind takes. *Not for* absolute figures of a shared machine.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod answers;
mod call;
mod campaign;
mod capture;
mod chart;
mod comparing;
mod coverage;
mod divergence;
mod generated;
mod go;
mod large;
mod loops;
mod measure;
mod memory;
mod options;
mod plan;
mod programs;
mod progress;
mod ranks;
mod recording;
mod rows;
mod run;
mod slowdown;
mod stall;
mod startup;
mod statistics;
mod store;
mod suite;
mod sweep;
mod warm;
mod watch;
mod words;

use anyhow::Result;
use lockstep_testkit::{Recipe, Scratch, artifacts, mpi::Mpi};
use options::{Options, Subject};
use std::fmt::Write;
use std::process::ExitCode;

/// One bench: its name, its help, what runs it.
type Bench = (&'static str, &'static str, fn(&[String]) -> Result<()>);

/// Each for one goal; the bench without a name compares tools.
const BENCHES: &[Bench] = &[
    ("slowdown", slowdown::USAGE, slowdown::run),
    ("call", call::USAGE, call::run),
    ("startup", startup::USAGE, startup::run),
    ("warm", warm::USAGE, warm::run),
    ("plan", plan::USAGE, plan::run),
    ("stall", stall::USAGE, stall::run),
    ("coverage", coverage::USAGE, coverage::run),
    ("memory", memory::USAGE, memory::run),
    ("capture", capture::USAGE, capture::run),
    ("store", store::USAGE, store::run),
    ("ranks", ranks::USAGE, ranks::run),
    ("large", large::USAGE, large::run),
    ("programs", programs::USAGE, programs::run),
    ("progress", progress::USAGE, progress::run),
    ("go", go::USAGE, go::run),
    ("divergence", divergence::USAGE, divergence::run),
    ("loops", loops::USAGE, loops::run),
    ("sweep", sweep::USAGE, sweep::run),
    ("watch", watch::USAGE, watch::run),
    ("compare", campaign::USAGE, campaign::run),
    ("answers", answers::USAGE, answers::run),
];

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, usage, run)) = BENCHES
        .iter()
        .find(|(name, ..)| words.first().is_some_and(|word| word == name))
    {
        if words.iter().any(|word| word == "--help" || word == "-h") {
            print!("{usage}");
            return Ok(ExitCode::SUCCESS);
        }
        run(&words[1..])?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = match options::parse(&words) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{}", options::USAGE);
            return Ok(ExitCode::SUCCESS);
        }
        Err(message) => {
            eprintln!("bench: {message}\n\n{}", options::USAGE);
            return Ok(ExitCode::from(2));
        }
    };
    // The disk that recordings really go to, not a temporary directory in memory.
    let scratch = Scratch::below(&artifacts::target(), "bench");
    let mut report = String::new();
    say(&mut report, &measure::machine());
    let subjects = if options.programs.is_empty() {
        own_programs(&options)
    } else {
        options.programs.clone()
    };
    say(&mut report, &format!("\n{}", recording::heads()));
    for subject in &subjects {
        for line in recording::measure(subject, &options, &scratch) {
            say(&mut report, &line);
        }
    }
    if let Some(line) = comparing::measure(&scratch)? {
        say(&mut report, "");
        say(&mut report, &line);
    }
    if let Some(name) = &options.save {
        let path = measure::results_directory()?.join(format!("{name}.txt"));
        std::fs::write(&path, &report)?;
        println!("kept in {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn say(report: &mut String, line: &str) {
    println!("{line}");
    // A string takes whatever is written to it.
    let _ = writeln!(report, "{line}");
}

/// What is measured where no program is given: one that does little but call, and the odd/even sort.
fn own_programs(options: &Options) -> Vec<Subject> {
    let calls = Recipe::new("c/ordinals.c").flag("-O2").build();
    let witness = artifacts::target().join("testkit/bench-witness");
    let mut subjects = vec![Subject {
        launcher: Vec::new(),
        words: vec![
            calls.display().to_string(),
            witness.display().to_string(),
            "30000000".to_owned(),
        ],
    }];
    if let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) {
        let sort = mpi.recipe("odd_even.c").flag("-O2").build();
        let launcher = if options.launcher.is_empty() {
            mpi.launch(4)
        } else {
            options.launcher.clone()
        };
        subjects.push(Subject {
            launcher,
            words: vec![sort.display().to_string()],
        });
    }
    subjects
}
