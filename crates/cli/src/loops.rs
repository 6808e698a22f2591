//! `lockstep loops`: each trace as a nested loop representation, and the loop table.

use crate::options::Analysis;
use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_compare::loops;
use lockstep_trace::names_in_short;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show each trace with its loops folded, and the loop table
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep loops good --filter mpi
  lockstep loops good --filter mpi,memory -k 50 -t '*.0'
  lockstep loops good --filter 11.mpi.0K10 --json
")]
pub struct Loops {
    /// Directory of the run
    run: PathBuf,
    #[command(flatten)]
    analysis: Analysis,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Loops {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_with(&self.run, self.analysis.all_processes)?;
        let found = loops(&run, &self.analysis.options(&[&run])?)?;
        if self.json {
            output::json(&found)?;
            return Ok(ExitCode::SUCCESS);
        }
        let bodies = output::table(
            &["LOOP", "BODY"],
            &[],
            found
                .loops
                .iter()
                .map(|body| vec![body.name.clone(), body.body.join(" ")]),
        );
        let traces = output::table(
            &["TRACES", "WITH LOOPS FOLDED"],
            &[],
            found
                .rows()
                .into_iter()
                .map(|(names, line)| vec![names_in_short(&names), line]),
        );
        output::print(|out| {
            if !found.loops.is_empty() {
                writeln!(out, "{bodies}\n")?;
            }
            writeln!(out, "{traces}")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
