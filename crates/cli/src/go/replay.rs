//! `lockstep go replay`: a run of a kept campaign once more.

use super::run::status;
use super::test::kept_program;
use super::words;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use lockstep_goroutines::campaign::{Options, Subject};
use lockstep_goroutines::paths::Paths;
use lockstep_goroutines::store::Campaign;
use lockstep_goroutines::symbols::{Program, Symbols};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Make a run of a kept campaign again: the same program, seed, delays and processors
///
/// What the operating system decides is not in the seed: where a first try comes to another verdict, it is tried
/// again. Ends with the program's status.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go replay found --run 7
")]
pub struct Replay {
    /// Directory that `go test -o` or `go run -o` wrote
    directory: PathBuf,
    /// Which run, from 1
    #[arg(long, value_name = "N")]
    run: usize,
    /// Most tries until the verdict is the same
    #[arg(long, value_name = "N", default_value_t = 20)]
    tries: u32,
}

impl Replay {
    pub fn run(self) -> Result<ExitCode> {
        let campaign = Campaign::read(&self.directory)?;
        let row = self.run.checked_sub(1).and_then(|it| campaign.runs.get(it));
        let Some(row) = row else {
            bail!(
                "expected a run from 1 to {}, found {}",
                campaign.runs.len(),
                self.run
            );
        };
        let stored = campaign.programs.get(row.program);
        let stored = stored.context("expected the program of the run, found none")?;
        let file = std::path::absolute(kept_program(&self.directory, row.program))?;
        let program = Program::open(&file, &campaign.root, Some(&stored.package))?;
        let symbols = Symbols::of(&program);
        let classes = program.classes();
        let subject = Subject {
            file: &file,
            symbols: &symbols,
            classes: &classes,
            paths: &Paths::default(),
            arguments: row.arguments.iter().map(Into::into).collect(),
            directory: &stored.directory,
        };
        let options = Options {
            runs: 1,
            goes_on: false,
            known: Vec::new(),
            delays: None,
            seed: campaign.seed,
            limit: Duration::from_secs_f64(row.limit.clamp(0.001, 1e9)),
            coverage: None,
            most: 512 << 20,
            shows: false,
            interrupted: || None,
        };
        for attempt in 1..=self.tries.max(1) {
            let run = subject.run(attempt, row.plan.clone(), &options)?;
            let is_same = run.judgement.verdict == row.verdict;
            if !is_same && attempt < self.tries {
                continue;
            }
            output::print(|out| out.write_all(run.outcome.text.as_bytes()))?;
            let mut text = Vec::new();
            let what = if is_same {
                "as before"
            } else {
                "not as before"
            };
            writeln!(
                text,
                "lockstep: {} at try {attempt}, {what} ({})",
                run.judgement.verdict, row.verdict
            )?;
            words::explain(&mut text, &run.judgement)?;
            let _ = std::io::stderr().write_all(&text);
            return Ok(status(&run.outcome.end));
        }
        Ok(ExitCode::SUCCESS)
    }
}
