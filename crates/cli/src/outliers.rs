//! `lockstep outliers`: which traces of one run are unlike the others.

use crate::options::Analysis;
use crate::output::{self, Style, styled};
use crate::run;
use anyhow::Result;
use clap::Args;
use lockstep_compare::{Outliers as Found, outliers};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Rank the traces of one run by how unlike the others they are, without a normal run
///
/// First threads are compared with first threads, other threads with other threads. What is rare need not be wrong: a
/// master and the ranks at a boundary stand out in every run. Ends with 1 where a trace stands out.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep outliers run
  lockstep outliers run -t '*.1-4' --filter mpi,omp
  lockstep outliers run --threshold 6 --json | jq '.suspects[].trace'
")]
pub struct Outliers {
    /// The run directory
    run: PathBuf,
    /// Score from which on a trace is an outlier: standard deviations beyond the others' mean
    #[arg(long, value_name = "SCORE", default_value_t = 3.5, value_parser = positive)]
    threshold: f64,
    /// Functions to leave out (repeatable)
    #[arg(long, value_name = "REGEX")]
    ignore: Vec<String>,
    #[command(flatten)]
    analysis: Analysis,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| *number > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

impl Outliers {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_with(&self.run, self.analysis.all_processes)?;
        let mut options = self.analysis.options(&[&run])?;
        options.sweep = !self.analysis.is_single_set();
        options.ignore.clone_from(&self.ignore);
        let found = outliers(&run, &options, self.threshold)?;
        if self.json {
            output::json(&found)?;
        } else {
            output::print(|out| print(out, &found))?;
        }
        Ok(output::found(found.differs))
    }
}

/// How many scores are printed below the outliers; `--json` has all.
const SCORES: usize = 10;

fn print(out: &mut output::Out<'_>, found: &Found) -> io::Result<()> {
    let verdict = output::wrapped(&output::printable(&found.verdict), 0);
    writeln!(out, "{}", styled(Style::Bold, verdict))?;
    for suspect in &found.suspects {
        let name = styled(Style::Faulty, suspect.trace);
        writeln!(out, "\n  {name}  (score {:.1})", suspect.score)?;
        for reason in &suspect.reasons {
            let reason = format!("- {}", output::printable(reason));
            writeln!(out, "    {}", output::wrapped(&reason, 6))?;
        }
    }
    let rows = found.scores.iter().take(SCORES);
    let rows = rows.map(|(name, score)| vec![name.clone(), format!("{score:.2}")]);
    writeln!(out, "\n{}", output::table(&["TRACE", "SCORE"], &[1], rows))
}
