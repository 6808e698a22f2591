//! `lockstep export`: a run in another tool's format.

use crate::go::standing;
use crate::{output, run};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use lockstep_exchange::Target;
use lockstep_goroutines::shiviz;
use lockstep_trace::{Selection, Selections, Thread};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a run in another tool's format
///
/// callgrind, collapsed and dot sum the chosen traces up; perfetto, speedscope, otf2, json and parquet show events, with times
/// where they were recorded for all of these traces, else in logical time: events count, and what was sent comes before it was
/// received (stderr and the file say which).
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep export good --to callgrind -o good.callgrind && callgrind_annotate good.callgrind
  lockstep export good --to collapsed -t 5.0 -o - | flamegraph.pl > 5.svg
  lockstep export good --to dot -o - | dot -Tsvg > calls.svg
  lockstep export bad --to perfetto -o bad.perfetto
  lockstep export bad --to otf2 -o bad.otf2 && otf2-print bad.otf2/traces.otf2
  lockstep export bad --to speedscope -t '*.0' -o bad.speedscope.json
  lockstep export bad --to parquet -o bad.parquet && duckdb -c \"select rank, function, count(*) from 'bad.parquet' group by all\"
")]
pub struct Export {
    /// Directory of the run
    run: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Only these traces: 6.4, '6.*', 0-3.1-4, 6.4,7.0 (repeatable)
    #[arg(short = 't', value_name = "TRACE")]
    traces: Vec<Selections>,
    /// The file to write; - is stdout
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file
    #[arg(long)]
    force: bool,
    /// Include processes that did not call MPI_Init
    #[arg(long)]
    all_processes: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// For ui.perfetto.dev
    Perfetto,
    /// For callgrind_annotate and KCachegrind
    Callgrind,
    /// For speedscope.app
    Speedscope,
    /// Stacks and counts, for flame graphs
    Collapsed,
    /// The call graph, for Graphviz
    Dot,
    /// An archive of OTF2 (FILE becomes a directory), for otf2-print, Vampir, Pipit
    Otf2,
    /// Every event, for scripts
    Json,
    /// Events of goroutines with vector clocks, for ShiViz (runs of Go programs)
    Shiviz,
    /// A table of all calls, for DuckDB, Polars, pandas
    Parquet,
}

impl Export {
    pub fn run(self) -> Result<ExitCode> {
        let target = match self.to {
            Format::Perfetto => Target::Perfetto,
            Format::Callgrind => Target::Callgrind,
            Format::Speedscope => Target::Speedscope,
            Format::Collapsed => Target::Collapsed,
            Format::Dot => Target::Dot,
            Format::Otf2 => Target::Otf2,
            Format::Json => Target::Json,
            Format::Shiviz => return self.shiviz(),
            Format::Parquet => Target::Parquet,
        };
        let run = run::open_with(&self.run, self.all_processes)?;
        run::selected(&[&run], &self.traces)?;
        let chosen: Vec<Selection> = self.traces.iter().flat_map(Selections::iter).collect();
        let threads: Vec<&Thread> = run.select(&chosen).collect();
        if threads.is_empty() {
            bail!("{}: expected traces, found none", self.run.display());
        }
        if target == Target::Otf2 && self.output == Path::new("-") {
            bail!("-: expected a new directory for an archive of OTF2, found stdout");
        }
        let notes = if self.output == Path::new("-") {
            let mut notes = Vec::new();
            output::print(|out| {
                notes = lockstep_exchange::write(&run, &threads, target, out)?;
                Ok(())
            })?;
            notes
        } else {
            lockstep_exchange::export(&run, &threads, target, &self.output, self.force)?
        };
        output::remark(&notes);
        Ok(ExitCode::SUCCESS)
    }

    fn shiviz(&self) -> Result<ExitCode> {
        let Some(execution) = standing::execution(&self.run)? else {
            bail!(
                "{}: expected a run of a Go program (below the directory of `go test -o`), found another",
                self.run.display()
            );
        };
        let log = shiviz::log(&execution);
        if self.output == Path::new("-") {
            output::print(|out| out.write_all(log.as_bytes()))?;
        } else if self.output.exists() && !self.force {
            bail!(
                "expected a new file, found {}: --force replaces it",
                self.output.display()
            );
        } else {
            std::fs::write(&self.output, log)
                .with_context(|| format!("{} could not be written", self.output.display()))?;
        }
        output::remark(&[format!(
            "ShiViz reads it by the expression {}",
            shiviz::EXPRESSION
        )]);
        Ok(ExitCode::SUCCESS)
    }
}
