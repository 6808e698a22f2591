//! `cargo xtask bench`: what recording costs, beside callgrind and uftrace on the same binaries, and
//! what comparing costs.
//!
//! *Guarantees*: every ratio is of two runs that stood next to each other in time (plain, traced,
//! plain, traced, ...), so that a machine that grows slower meanwhile does not show; failures are
//! shown, not left out. *Costs*: as long as callgrind takes. *Not for* absolute figures of a shared machine.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod comparing;
mod measure;
mod options;
mod recording;

use anyhow::Result;
use lockstep_testkit::{Recipe, Scratch, artifacts, mpi::Mpi};
use options::{Options, Subject};
use std::fmt::Write;
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
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
