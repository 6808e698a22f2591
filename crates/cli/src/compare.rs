//! `lockstep compare`: who fell out of step, where, and why.

mod kept;
mod told;

use crate::options::Analysis;
use crate::{context, output, report, run};
use anyhow::Result;
use clap::Args;
pub use kept::Answer;
use kept::{Entry, Kept};
use lockstep_compare::{CausalOrder, Comparison, Culprit, Gate, Rules, compare_in_order, gate};
use lockstep_diagnosis::Certainty;
use lockstep_progress::{Chosen, Kind, Progress, analyse_beside};
use lockstep_trace::{EndKind, Run, TraceName};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// Compare a faulty run with a normal one: who fell out of step, where, and why
///
/// Without options of a single set (--filter, -k, --attributes, ...), all sets of options are tried. Ends with 1 where
/// the runs differ: in structure (loop bodies, order of calls, open calls, missing or extra traces), or with several
/// normal runs where the p-value is below --level. What was found is kept in the user's cache, by the content of the runs,
/// so that the same question is answered at once.
///
/// Two builds of one program (at -O0 and -O2, say) are compared by the names of functions: what only one build calls (unless
/// the code of the other calls it as well), or
/// calls in other places (inlined or moved by a compiler), is left out and named in a note.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep compare good bad
  lockstep compare good bad --html report.html
  lockstep compare good bad --normal good2 --normal good3 --json
  lockstep compare good bad --filter mpi --attributes double --linkage average
  lockstep compare good bad --filter memory --attributes locks
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
    /// Of `baseline check`: what decides instead.
    #[arg(skip)]
    gate: Option<Rules>,
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
    /// Attributes of your own beside those of the traces of the normal run and the faulty one: JSON such as
    /// {"6.4": ["holds lock a"]}, .cxt or .csv
    #[arg(long, num_args = 2, value_names = ["NORMAL", "FAULTY"])]
    own: Vec<PathBuf>,
    /// p-value below which runs differ, with several normal runs
    #[arg(long, value_name = "P", default_value_t = 0.05, value_parser = probability)]
    level: f64,
    #[command(flatten)]
    analysis: Analysis,
    /// Write everything into one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Do not ask the cache for what was found before
    #[arg(long)]
    fresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    /// All that decides about what is found, in words.
    fn words(&self) -> String {
        let Self {
            sweep,
            counts,
            ignore,
            own: _,
            level,
            analysis,
            html: _,
            fresh: _,
            json: _,
        } = self;
        format!("{sweep} {counts} {ignore:?} {level} {analysis:?}")
    }
}

fn probability(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// The order of the faulty run's events by its messages, and who waits for whom in it.
struct ByMessages<'a> {
    order: lockstep_comm::Order,
    run: &'a Run,
    normals: &'a [&'a Run],
    /// Who waits for whom in the faulty run, once somebody asks.
    progress: &'a OnceLock<Progress>,
}

/// Who waits for whom, and who is to blame by the normal runs.
fn who_waits(run: &Run, normals: &[&Run]) -> Progress {
    analyse_beside(run, normals, &Chosen::default())
}

impl CausalOrder for ByMessages<'_> {
    fn time(&self, trace: TraceName, event: u64) -> u64 {
        self.order.time(trace, event)
    }

    fn heard_of(&self, trace: TraceName, event: u64) -> BTreeMap<TraceName, u64> {
        self.order.heard_of(trace, event)
    }

    fn culprits(&self) -> Vec<Culprit> {
        let found = self
            .progress
            .get_or_init(|| who_waits(self.run, self.normals));
        let culprit = |(task, deed): (u32, Option<String>)| {
            let process = found.tasks.get(&task)?.trace.process;
            Some(Culprit { process, deed })
        };
        let suspects = lockstep_wording::suspects(found).into_iter();
        suspects.filter_map(culprit).collect()
    }
}

/// The comparison itself.
///
/// # Errors
/// As [`compare_in_order`].
pub fn beside(
    normals: &[&Run],
    run: &Run,
    options: &lockstep_compare::Options,
) -> Result<Comparison> {
    let bar = output::progress("comparing");
    let progress = OnceLock::new();
    let order = lockstep_comm::Order::new(run).map(|order| ByMessages {
        order,
        run,
        normals,
        progress: &progress,
    });
    let order = order.as_ref().map(|order| order as &dyn CausalOrder);
    let found = compare_in_order(normals, run, options, order, &|done, of| {
        bar.set_length(of as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let mut found: Comparison = found?;
    // Who waits for whom says more than that the first suspect waits.
    let first = found.suspects.first().filter(|_| found.differs);
    if first.is_some_and(|it| it.certainty() > Certainty::Stuck) {
        let progress = progress.get_or_init(|| who_waits(run, normals));
        if progress.hang && matches!(progress.kind, Kind::Deadlock | Kind::Livelock) {
            found.facts.splice(0..0, progress.facts());
            let told = lockstep_wording::verdict(progress);
            found.verdict = format!("{told}; beside the normal run, {}", found.verdict);
        }
    }
    Ok(found)
}

impl Compare {
    /// Of these runs.
    pub fn new(normal: PathBuf, faulty: PathBuf, more: Vec<PathBuf>, options: Options) -> Self {
        Self {
            normal,
            faulty,
            more,
            options,
            gate: None,
        }
    }

    /// With a gate that decides whether the runs differ.
    pub fn behind(self, gate: Rules) -> Self {
        Self {
            gate: Some(gate),
            ..self
        }
    }

    pub fn run(self) -> Result<ExitCode> {
        let directories: Vec<&Path> = std::iter::once(&self.normal)
            .chain(&self.more)
            .chain([&self.faulty])
            .map(PathBuf::as_path)
            .collect();
        let own: Vec<_> = (self.options.own.iter())
            .map(|file| context::sets(file))
            .collect::<Result<_>>()?;
        let words = format!("{} {own:?} {:?}", self.options.words(), self.gate);
        let kept = match self.options.fresh {
            true => None,
            false => Kept::of(&directories, &words),
        };
        // A page shows more than was kept.
        if let (Some(kept), None) = (&kept, &self.options.html)
            && let Some(entry) = kept.find()
        {
            output::remark(&entry.remarks);
            return self.tell(&entry);
        }
        let runs = directories
            .iter()
            .map(|directory| run::open_with(directory, self.options.analysis.all_processes))
            .collect::<Result<Vec<Run>>>()?;
        let entry = self.compare(&runs, own)?;
        // What goes on, and what was changed meanwhile, has another answer later.
        let is_over = |run: &Run| {
            let mut processes = run.processes.iter();
            processes.all(|process| process.end.kind != EndKind::Running)
        };
        if let Some(kept) = kept
            && runs.iter().all(is_over)
        {
            kept.keep(&directories, &words, &entry);
        }
        self.tell(&entry)
    }

    /// The comparison, and the page of it.
    fn compare(&self, runs: &[Run], own: Vec<BTreeMap<String, Vec<String>>>) -> Result<Entry> {
        let all: Vec<&Run> = runs.iter().collect();
        let mut options = self.options.analysis.options(&all)?;
        options.sweep = self.options.sweep || !self.options.analysis.is_single_set();
        options.ignore.clone_from(&self.options.ignore);
        options.counts = self.options.counts;
        options.level = self.options.level;
        if let [normal, faulty] = own.as_slice() {
            // Of further normal runs nothing is known.
            options.own = vec![BTreeMap::new(); runs.len()];
            options.own[0].clone_from(normal);
            options.own[runs.len() - 1].clone_from(faulty);
        }
        let (normals, run) = (&all[..all.len() - 1], all[all.len() - 1]);
        let mut found = beside(normals, run, &options)?;
        let gate = match self.gate {
            Some(rules) => Some(gate(normals, run, &options, rules)?),
            None => None,
        };
        if let Some(gate) = &gate {
            decide(&mut found, gate);
        }
        if let Some(file) = &self.options.html {
            report::write_comparison(file, (normals[0], run), &options, &found, None)?;
        }
        Ok(Entry::new(runs, &found, gate.as_ref())?)
    }

    fn tell(&self, entry: &Entry) -> Result<ExitCode> {
        if self.options.json {
            output::data(|out| writeln!(out, "{}", entry.json))?;
        } else {
            let text = self.text(&entry.told);
            output::print(|out| out.write_all(text.as_bytes()))?;
        }
        Ok(output::found(entry.told.differs))
    }
}

/// Lets the gate's answer be that of a comparison, which is told beside it where it found something.
fn decide(found: &mut Comparison, gate: &Gate) {
    // What the comparison leaves out the gate may have found.
    if let Some(builds) = &found.builds {
        let note = builds.note();
        found.notes.retain(|it| *it != note);
    }
    if found.differs && gate.differs {
        let beside = format!(
            "compared with the first run of the baseline: {}",
            found.verdict
        );
        found.notes.insert(0, beside);
    }
    if !gate.differs {
        found.suspects.clear();
    }
    found.differs = gate.differs;
    found.verdict.clone_from(&gate.verdict);
}

/// A regular expression that matches this name and no other.
pub fn exactly(name: &str) -> String {
    format!("^{}$", regex::escape(name))
}
