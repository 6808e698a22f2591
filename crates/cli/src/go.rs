//! `lockstep go`: concurrent Go programs, their tests and their usages.

mod coverage;
mod document;
mod events;
mod options;
mod outcome;
pub(crate) mod page;
mod replay;
mod run;
pub(crate) mod standing;
mod test;
mod together;
pub(crate) mod usages;
mod words;

use anyhow::Result;
use clap::{Args, Subcommand};
pub use document::{OfProgram, OfTests};
use std::process::ExitCode;

/// Find deadlocks, leaks and races of Go programs and their tests, with an untouched toolchain
///
/// A program is built with the runtime's own sources edited on the way to the compiler, runs under seeded schedules,
/// and is judged by the states of its goroutines.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go test ./...
  lockstep go test --runs 100 -o found ./server -- -run TestShutdown
  lockstep go run ./cmd/pipeline input.txt
  lockstep go replay found --run 7
  lockstep go usages ./...
  lockstep go coverage found
")]
pub struct Go {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(test::Test),
    Run(run::Run),
    Replay(replay::Replay),
    Usages(usages::Usages),
    Coverage(coverage::GoCoverage),
}

impl Go {
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Test(it) => it.run(),
            Command::Run(it) => it.run(),
            Command::Replay(it) => it.run(),
            Command::Usages(it) => it.run(),
            Command::Coverage(it) => it.run(),
        }
    }

    /// Whether the status is the program's own.
    pub fn wraps(&self) -> bool {
        matches!(self.command, Command::Run(_) | Command::Replay(_))
    }
}

/// A directory for what is built and not kept.
pub fn scratch() -> Result<test::Scratch> {
    test::Scratch::new()
}
