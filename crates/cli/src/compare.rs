//! `lockstep compare`: who fell out of step, where, and why.

use crate::options::Analysis;
use crate::output::{Style, styled};
use crate::{output, report, run};
use anyhow::Result;
use clap::Args;
use lockstep_compare::{CausalOrder, Comparison, Row, compare_in_order, p_in_words};
use lockstep_progress::{Activity, Group, Task};
use lockstep_trace::{ProcessName, Run, TraceName, in_short};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare a faulty run with a normal one: who fell out of step, where, and why
///
/// Without options of a single set (--filter, -k, --attributes, ...), all sets of options are tried. Ends with 1 where
/// the runs differ: in structure (loop bodies, order of calls, open calls, missing or extra traces), or with several
/// normal runs where the p-value is below --level.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep compare good bad
  lockstep compare good bad --html report.html
  lockstep compare good bad --normal good2 --normal good3 --json
  lockstep compare good bad --filter mpi --attributes double --linkage average
")]
pub struct Compare {
    /// Directory of the normal run
    normal: PathBuf,
    /// Directory of the faulty run
    faulty: PathBuf,
    /// Another normal run (repeatable)
    #[arg(long = "normal", value_name = "DIR")]
    more: Vec<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// What `compare` and `baseline check` can be told.
#[derive(Debug, Args)]
pub struct Options {
    /// Try all sets of options (what happens unless one of them is given)
    #[arg(long, conflicts_with_all = [
        "filter", "keep_returns", "keep_plt", "k", "attributes", "frequency", "linkage", "distance", "clusters", "b_score",
    ])]
    sweep: bool,
    /// Trip counts alone are a difference, too
    #[arg(long)]
    counts: bool,
    /// Functions to leave out (repeatable)
    #[arg(long, value_name = "REGEX")]
    ignore: Vec<String>,
    /// p-value below which runs differ, with several normal runs
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability)]
    level: f64,
    #[command(flatten)]
    analysis: Analysis,
    /// Write everything into one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// How much of long lists is printed; `--json` has all.
const SUSPECTS: usize = 3;
const ROWS: usize = 10;
const TOP: usize = 5;

/// The order of the faulty run's events by its messages, and who waits for whom in it.
struct ByMessages<'a> {
    order: lockstep_exchange::Order,
    run: &'a Run,
}

impl CausalOrder for ByMessages<'_> {
    fn time(&self, trace: TraceName, event: u64) -> u64 {
        self.order.time(trace, event)
    }

    fn heard_of(&self, trace: TraceName, event: u64) -> BTreeMap<TraceName, u64> {
        self.order.heard_of(trace, event)
    }

    fn culprits(&self) -> Vec<ProcessName> {
        let found = lockstep_progress::analyse(self.run);
        let groups = found.least.iter().map(|group| &found.groups[*group]);
        let waits = |activity| matches!(activity, Activity::Communication | Activity::Finished);
        let of = |group: &Group| -> Vec<&Task> {
            let tasks = group.tasks.iter().filter_map(|it| found.tasks.get(it));
            tasks
                .filter(|it| it.crashed || !waits(group.activity))
                .collect()
        };
        let culprits: Vec<&Task> = groups.flat_map(of).collect();
        // What most do is no sign of one of them.
        match found.is_mpi && 2 * culprits.len() <= found.tasks.len() {
            true => culprits.iter().map(|it| it.trace.process).collect(),
            false => Vec::new(),
        }
    }
}

impl Compare {
    /// Of these runs.
    pub fn new(normal: PathBuf, faulty: PathBuf, more: Vec<PathBuf>, options: Options) -> Self {
        Self {
            normal,
            faulty,
            more,
            options,
        }
    }

    pub fn run(self) -> Result<ExitCode> {
        let normals = std::iter::once(&self.normal)
            .chain(&self.more)
            .map(|directory| run::open_with(directory, self.options.analysis.all_processes))
            .collect::<Result<Vec<Run>>>()?;
        let normals: Vec<&Run> = normals.iter().collect();
        let faulty = run::open_with(&self.faulty, self.options.analysis.all_processes)?;
        let all: Vec<&Run> = normals.iter().copied().chain([&faulty]).collect();
        let mut options = self.options.analysis.options(&all)?;
        options.sweep = self.options.sweep || !self.options.analysis.is_single_set();
        options.ignore.clone_from(&self.options.ignore);
        options.counts = self.options.counts;
        options.level = self.options.level;
        let bar = output::progress("comparing");
        let run = &faulty;
        let order = lockstep_exchange::Order::new(run).map(|order| ByMessages { order, run });
        let order = order.as_ref().map(|order| order as &dyn CausalOrder);
        let found = compare_in_order(&normals, &faulty, &options, order, &|done, of| {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        });
        bar.finish_and_clear();
        let found = found?;
        if let Some(file) = &self.options.html {
            report::write_comparison(file, normals[0], &faulty, &options, &found)?;
        }
        if self.options.json {
            output::json(&found)?;
        } else {
            let text = self.text(&found);
            output::print(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(output::found(found.differs))
    }

    fn text(&self, found: &Comparison) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_text(&mut text, found);
        text
    }

    fn write_text(&self, text: &mut String, found: &Comparison) -> std::fmt::Result {
        writeln!(
            text,
            "{}",
            styled(
                Style::Bold,
                output::wrapped(&output::printable(&found.verdict), 0)
            )
        )?;
        for note in &found.notes {
            writeln!(
                text,
                "{}",
                output::wrapped(&format!("Note: {}", output::printable(note)), 6)
            )?;
        }
        if !found.suspects.is_empty() {
            writeln!(text, "\nSUSPECTS, most suspicious first")?;
        }
        for suspect in found.suspects.iter().take(SUSPECTS) {
            let name = styled(Style::Faulty, suspect.trace);
            let p = suspect
                .p
                .map_or_else(String::new, |p| format!(", {}", p_in_words(p)));
            writeln!(text, "  {name}  (confidence {:.2}{p})", suspect.confidence)?;
            for reason in &suspect.reasons {
                writeln!(
                    text,
                    "    {}",
                    output::wrapped(&format!("- {}", output::printable(reason)), 6)
                )?;
            }
        }
        let rest: Vec<TraceName> = found
            .suspects
            .iter()
            .skip(SUSPECTS)
            .map(|suspect| suspect.trace)
            .collect();
        if !rest.is_empty() {
            writeln!(text, "  and {} more: {}", rest.len(), in_short(&rest))?;
        }
        // Where the runs are alike, so are their clusterings: nothing to rank.
        if found.differs && !found.table.is_empty() {
            let shown = found.table.len().min(ROWS);
            writeln!(
                text,
                "\nRANKING, lowest B-score first ({shown} of {} rows)",
                found.table.len()
            )?;
            writeln!(text, "{}", ranking(&found.table[..shown]))?;
            for (what, all) in [
                ("processes", &found.top.processes),
                ("threads", &found.top.threads),
            ] {
                let first: Vec<String> = all
                    .iter()
                    .take(TOP)
                    .map(|(name, rows)| format!("{name} ({rows} rows)"))
                    .collect();
                if !first.is_empty() {
                    writeln!(text, "Top suspicious {what}: {}", first.join(", "))?;
                }
            }
        }
        if let (Some(first), true) = (found.suspects.first(), found.differs) {
            let mut next = format!(
                "lockstep diff {} {} -t {}",
                self.normal.display(),
                self.faulty.display(),
                first.trace
            );
            for name in &found.left_out {
                next.push_str(&format!(" --ignore '{}'", exactly(name)));
            }
            writeln!(text, "\nNext: {}", output::printable(&next))?;
        }
        if let Some(file) = &self.options.html {
            writeln!(
                text,
                "Page: {}",
                output::printable(&file.display().to_string())
            )?;
        }
        Ok(())
    }
}

fn ranking(rows: &[Row]) -> String {
    let header = [
        "FILTER",
        "ATTRIBUTES",
        "LINKAGE",
        "CUT",
        "B",
        "CLUSTERS",
        "CANDIDATES",
    ];
    output::table(
        &header,
        &[3, 4],
        rows.iter().map(|row| {
            let sizes: Vec<String> = row.cluster_sizes.iter().map(ToString::to_string).collect();
            vec![
                row.filter.clone(),
                format!("{}.{}", row.attributes, row.frequency),
                row.linkage.to_string(),
                row.clusters.to_string(),
                if row.b_score.is_nan() {
                    "-".to_owned()
                } else {
                    format!("{:.3}", row.b_score)
                },
                sizes.join("+"),
                in_short(&row.threads),
            ]
        }),
    )
}

/// A regular expression that matches this name and no other.
pub fn exactly(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}
