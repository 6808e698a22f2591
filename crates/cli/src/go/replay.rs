//! `lockstep go replay`: a run of a kept campaign once more.

use super::run::status;
use super::test::kept_program;
use super::words;
use crate::output;
use anyhow::{Context, Result, bail};
use clap::Args;
use lockstep_goroutines::campaign::{Options, Subject};
use lockstep_goroutines::execution::Execution;
use lockstep_goroutines::paths::Paths;
use lockstep_goroutines::script;
use lockstep_goroutines::store::{self, Campaign};
use lockstep_goroutines::symbols::{Program, Symbols};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Bytes of a kept execution from which on a run is made again by its seed alone: millions of usages.
const MOST_RECORDED: u64 = 32 << 20;
/// Tries that come to the same verdict in another order of usages.
const ORDERS: u32 = 4;

/// Make a run of a kept campaign again: its usages in the recorded order and by the recorded clock
///
/// What lies outside the program, and what it does to memory between usages, can be other: where a first try comes to
/// another verdict, it is tried again, by seed, delays and processors alone and by the record, in turns. Ends with the
/// program's status.
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
        let recorded = self.recorded()?;
        let mut another_order = 0;
        for attempt in 1..=self.tries.max(1) {
            // By the record, and by the seed alone, in turns.
            let plan = match &recorded {
                Some(it) if attempt % 2 == 1 => row.plan.clone().as_recorded(it),
                _ => row.plan.clone(),
            };
            let run = subject.run(attempt, plan, &options)?;
            let is_same = run.judgement.verdict == row.verdict;
            let usages = recorded
                .as_ref()
                .map(|it| script::is_same(it, &run.execution));
            another_order += u32::from(is_same && usages == Some(false));
            let is_enough = is_same && (usages != Some(false) || another_order == ORDERS);
            if !is_enough && attempt < self.tries {
                continue;
            }
            output::print(|out| out.write_all(run.outcome.text.as_bytes()))?;
            let mut text = Vec::new();
            let what = match (is_same, usages) {
                (false, _) => "not as before",
                (true, None) => "as before",
                (true, Some(true)) => "as before, usage by usage",
                (true, Some(false)) => "as before, though usages came in another order",
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

    /// What the run did, where that is not too much to be gone through again.
    fn recorded(&self) -> Result<Option<Execution>> {
        let file = store::run(&self.directory, self.run).join(store::EXECUTION);
        let size = file.metadata().map_or(0, |it| it.len());
        if size > MOST_RECORDED {
            return Ok(None);
        }
        Ok(Some(store::execution(&self.directory, self.run)?))
    }
}
