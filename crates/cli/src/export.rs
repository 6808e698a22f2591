//! `lockstep export`: a run in another tool's format.

use crate::analysed::Analysed;
use crate::go::standing;
use crate::{output, run, tables};
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use lockstep_exchange::{Edge, Target, View};
use lockstep_goroutines::shiviz;
use lockstep_progress::Chosen;
use lockstep_progress::published::Method;
use lockstep_trace::{FunctionId, Run, Selection, Selections, Thread, c_name};
use regex::Regex;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a run in another tool's format
///
/// callgrind, collapsed and dot sum the chosen traces up; perfetto, speedscope, otf2, json and parquet show events, with times
/// where they were recorded for all of these traces, else in logical time: events count, and what was sent comes before it was
/// received (stderr and the file say which). Calls that were not measured stand at the time that was read before or behind
/// them, and are marked.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep export good --to callgrind -o good.callgrind && callgrind_annotate good.callgrind
  lockstep export good --to collapsed -t 5.0 -o - | flamegraph.pl > 5.svg
  lockstep export good --to dot -o - | dot -Tsvg > calls.svg
  lockstep export bad --to perfetto -o bad.perfetto
  lockstep export bad --to otf2 -o bad.otf2 && otf2-print bad.otf2/traces.otf2
  lockstep export bad --to speedscope -t '*.0' -o bad.speedscope.json
  lockstep export bad --to perfetto --from exchange --to write_output --depth 5 -o part.perfetto
  lockstep export bad --to perfetto --from 1.5 --to 2.0 -o half_a_second.perfetto
  lockstep export bad --to parquet --table waits -o waits.parquet
  lockstep export bad --to parquet -o bad.parquet && duckdb -c \"select rank, function, count(*) from 'bad.parquet' group by all\"
")]
pub struct Export {
    /// Directory of the run
    run: PathBuf,
    /// The format; given once more, the end of the window: only calls before the next call of F, or before a time
    #[arg(long, value_name = "FORMAT", value_parser = ToParser, required = true)]
    to: Vec<To>,
    /// Only these traces: 6.4, '6.*', 0-3.1-4, 6.4,7.0 (repeatable)
    #[arg(short = 't', value_name = "TRACE")]
    traces: Vec<Selections>,
    /// The file to write; - is stdout
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    /// Only calls from the first call of F on (a regular expression), or from a time on: seconds since the run began
    #[arg(long, value_name = "F|SECONDS")]
    from: Option<String>,
    /// Only so many calls deep: 1 is the outermost
    #[arg(long, value_name = "CALLS", value_parser = clap::value_parser!(u64).range(1..))]
    depth: Option<u64>,
    /// Which table, of a run as a whole but for calls: what `progress` finds (parquet)
    #[arg(long, value_name = "NAME", default_value = "calls", value_enum)]
    table: tables::Name,
    /// Also show calls that began and ended between two times that were read, without width (perfetto, speedscope)
    #[arg(long)]
    every_call: bool,
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
    /// A table of all calls, or of what `progress` finds (--table), for DuckDB, Polars, pandas
    Parquet,
}

/// What stands behind `--to`.
#[derive(Debug, Clone)]
enum To {
    Format(Format),
    /// Where the window ends.
    End(String),
}

#[derive(Debug, Clone)]
struct ToParser;

impl TypedValueParser for ToParser {
    type Value = To;

    fn parse_ref(&self, _: &Command, _: Option<&Arg>, value: &OsStr) -> Result<To, clap::Error> {
        let text = value.to_string_lossy();
        let format = Format::from_str(&text, false);
        Ok(format.map_or_else(|_| To::End(text.into_owned()), To::Format))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let all = Format::value_variants().iter();
        Some(Box::new(all.filter_map(ValueEnum::to_possible_value)))
    }
}

impl Export {
    pub fn run(self) -> Result<ExitCode> {
        let (format, end) = self.format()?;
        let target = match format {
            Format::Perfetto => Target::Perfetto,
            Format::Callgrind => Target::Callgrind,
            Format::Speedscope => Target::Speedscope,
            Format::Collapsed => Target::Collapsed,
            Format::Dot => Target::Dot,
            Format::Otf2 => Target::Otf2,
            Format::Json => Target::Json,
            Format::Shiviz => return self.shiviz(),
            Format::Parquet if self.table != tables::Name::Calls => return self.found(end),
            Format::Parquet => Target::Parquet,
        };
        if self.table != tables::Name::Calls {
            bail!("--table: expected the format parquet, found another");
        }
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
        let view = View {
            from: edge(&run, "--from", self.from.as_deref())?,
            to: edge(&run, "--to", end)?,
            depth: self.depth,
            folds: !self.every_call,
        };
        let what = (target, &view);
        let notes = if self.output == Path::new("-") {
            let mut notes = Vec::new();
            output::print(|out| {
                notes = lockstep_exchange::write(&run, &threads, what, out)?;
                Ok(())
            })?;
            notes
        } else {
            lockstep_exchange::export(&run, &threads, what, &self.output, self.force)?
        };
        output::remark(&notes);
        Ok(ExitCode::SUCCESS)
    }

    /// The format, and the end of the window.
    fn format(&self) -> Result<(Format, Option<&str>)> {
        let mut found = (None, None);
        for to in &self.to {
            match to {
                To::Format(format) if found.0.is_none() => found.0 = Some(*format),
                To::End(end) if found.1.is_none() => found.1 = Some(end.as_str()),
                _ => bail!("--to: expected one format, and one end of the window, found more"),
            }
        }
        let Some(format) = found.0 else {
            let names = Format::value_variants().iter();
            let names = names.filter_map(ValueEnum::to_possible_value);
            let names: Vec<String> = names.map(|it| it.get_name().to_owned()).collect();
            let other = found.1.unwrap_or_default();
            bail!("--to {other}: expected a format ({})", names.join(", "));
        };
        Ok((format, found.1))
    }

    /// A table of what `progress` finds.
    fn found(&self, end: Option<&str>) -> Result<ExitCode> {
        let is_part = !self.traces.is_empty() || self.from.is_some() || self.depth.is_some();
        if is_part || end.is_some() || self.all_processes {
            bail!(
                "--table: expected a run as a whole, found options that choose calls (-t, --from, --to, --depth, --all-processes)"
            );
        }
        let (method, checks) = (Method::Lockstep, Chosen::default());
        let found = Analysed::of(&self.run, None, method, &checks)?.found;
        let Some(table) = tables::table(self.table, &found) else {
            return Ok(ExitCode::SUCCESS);
        };
        if self.output == Path::new("-") {
            output::print(|out| lockstep_exchange::write_table(&table, out))?;
        } else {
            lockstep_exchange::export_table(&table, &self.output, self.force)?;
        }
        output::remark(&found.notes);
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

/// An end of the window: a time where it is a number, else functions by their names.
fn edge(run: &Run, option: &str, text: Option<&str>) -> Result<Option<Edge>> {
    let Some(text) = text else { return Ok(None) };
    if let Ok(seconds) = text.trim_end_matches('s').parse::<f64>() {
        if !seconds.is_finite() || seconds < 0.0 {
            bail!("{option} {text}: expected a time of 0 seconds or more");
        }
        return Ok(Some(Edge::Time((seconds * 1e9) as u64)));
    }
    let regex =
        Regex::new(text).with_context(|| format!("{option}: expected a regular expression"))?;
    let functions = run.functions.iter().zip(0..);
    let found = functions.filter(|(function, _)| regex.is_match(&c_name(&function.name)));
    let found: HashSet<FunctionId> = found.map(|(_, id)| FunctionId(id)).collect();
    if found.is_empty() {
        bail!(
            "{option}: expected a name among the functions of the run, found `{text}`, which is none of them"
        );
    }
    Ok(Some(Edge::Call(found)))
}
