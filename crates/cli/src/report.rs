//! `lockstep report`: everything about a run, or about two, in one self-contained page.

use crate::compare::exactly;
use crate::go::page::Go;
use crate::lattice::write;
use crate::options::Analysis;
use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_calltree::{Forest, NodeId, Trace, left_out};
use lockstep_compare::{
    Comparison, Filter, FilterName, Lattice, Loops, Options, Similarity, Style,
};
use lockstep_compare::{compare, context, diff, lattice, loops, poset, similarity};
use lockstep_loops::Names;
use lockstep_report::{CallTree, GoPart, Page, RunPart, TraceDiff};
use lockstep_trace::{Run, TraceName};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write one self-contained page about a run, or about a normal and a faulty one
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep report bad -o bad.html
  lockstep report good bad -o report.html
  lockstep report good bad --filter mpi -o report.html
  lockstep go test -o found ./server; lockstep report found -o server.html
")]
pub struct Report {
    /// Directory of the run, or of the normal run and the faulty one; or that which `go test -o` wrote
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "FAULTY"])]
    runs: Vec<PathBuf>,
    /// The page to write; `-` is standard output
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    analysis: Analysis,
}

/// Suspects whose differences are drawn.
const DIFFS: usize = 4;
/// Call trees on a page.
const TREES: usize = 6;
/// Of a lattice with more concepts than can be drawn, those of traces and attributes are shown alone.
const CONCEPTS: usize = lockstep_report::DRAWN;

impl Report {
    pub fn run(self) -> Result<ExitCode> {
        let go = self.runs.iter().map(|it| Go::read(it));
        let go = go.collect::<Result<Vec<Option<Go>>>>()?;
        let runs = self
            .runs
            .iter()
            .zip(&go)
            .map(|(directory, go)| {
                // Of a campaign its worst run.
                let directory = go.as_ref().map_or(directory, |it| &it.run);
                run::open_with(directory, self.analysis.all_processes)
            })
            .collect::<Result<Vec<Run>>>()?;
        let go = go.last().and_then(Option::as_ref).map(Go::part);
        let options = self.analysis.options(&runs.iter().collect::<Vec<_>>())?;
        match runs.as_slice() {
            [normal, faulty] => {
                let options = Options {
                    sweep: !self.analysis.is_single_set(),
                    ..options
                };
                let bar = output::progress("comparing");
                let found = compare(&[normal], faulty, &options, &|done, of| {
                    bar.set_length(of as u64);
                    bar.set_position(done as u64);
                });
                bar.finish_and_clear();
                write_comparison(&self.output, (normal, faulty), &options, &found?, go)?;
            }
            runs => write_run(&self.output, &runs[0], &options, go)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is shown of one run; a part that cannot be made for this run is left out.
struct Parts<'a> {
    run: &'a Run,
    loops: Option<Loops>,
    similarity: Option<Similarity>,
    lattice: Option<Lattice>,
}

impl<'a> Parts<'a> {
    fn of(run: &'a Run, options: &Options) -> Self {
        let context = context(run, options);
        Self {
            run,
            loops: loops(run, options).ok(),
            similarity: similarity(run, options).ok(),
            lattice: context
                .ok()
                .map(|context| lattice(&context, CONCEPTS).unwrap_or_else(|_| poset(&context))),
        }
    }

    fn shown<'b>(&'b self, label: &'b str) -> RunPart<'b> {
        RunPart {
            label,
            run: self.run,
            loops: self.loops.as_ref(),
            similarity: self.similarity.as_ref(),
            lattice: self.lattice.as_ref(),
        }
    }
}

fn write_run(file: &Path, run: &Run, options: &Options, go: Option<GoPart<'_>>) -> Result<()> {
    let parts = Parts::of(run, options);
    let label = run.directory.display().to_string();
    let page = Page {
        title: label.clone(),
        runs: vec![parts.shown(&label)],
        comparison: None,
        diffs: Vec::new(),
        trees: call_trees(&[(&label, run)], &[]),
        goroutines: go,
    };
    write(file, &page.html())
}

/// The page of a comparison.
pub fn write_comparison(
    file: &Path,
    (normal, faulty): (&Run, &Run),
    options: &Options,
    found: &Comparison,
    go: Option<GoPart<'_>>,
) -> Result<()> {
    // As the comparison saw them: without what all traces have in common.
    let mut options = options.clone();
    options
        .ignore
        .extend(found.left_out.iter().map(|name| exactly(name)));
    let parts = [normal, faulty].map(|run| Parts::of(run, &options));
    let page = Page {
        title: format!(
            "{} and {}",
            normal.directory.display(),
            faulty.directory.display()
        ),
        runs: vec![parts[0].shown("normal"), parts[1].shown("faulty")],
        comparison: Some(found),
        diffs: diffs(normal, faulty, &options, found),
        trees: call_trees(
            &[("normal", normal), ("faulty", faulty)],
            &found
                .suspects
                .iter()
                .map(|suspect| suspect.trace)
                .collect::<Vec<_>>(),
        ),
        goroutines: go,
    };
    write(file, &page.html())
}

/// How the first suspects differ.
fn diffs(normal: &Run, faulty: &Run, options: &Options, found: &Comparison) -> Vec<TraceDiff> {
    let mpi = Options {
        filter: Filter::of([FilterName::Mpi]),
        ..options.clone()
    };
    let of = |trace: TraceName| {
        Some(TraceDiff {
            trace,
            // A suspect that is missing in one run has nothing to be compared with.
            whole: diff(normal, faulty, trace, options, Style::Tree).ok()?,
            // A trace without MPI calls has no such picture.
            mpi: diff(normal, faulty, trace, &mpi, Style::Flat)
                .ok()
                .filter(|it| !it.ops.is_empty()),
        })
    };
    let suspects = found.suspects.iter().take(DIFFS);
    suspects.filter_map(|suspect| of(suspect.trace)).collect()
}

/// The call trees of the runs, equal ones once; those of `first` before others.
fn call_trees(runs: &[(&str, &Run)], first: &[TraceName]) -> Vec<CallTree> {
    let mut forest = Forest::new();
    let mut names = Names::new();
    let mut trees: Vec<(usize, NodeId, CallTree)> = Vec::new();
    let count = runs.iter().map(|(_, run)| run.traces().count()).sum();
    let added: Vec<Vec<Trace>> = forest.bounded(count, |forest| {
        let each = runs.iter();
        each.map(|(_, run)| forest.add_run(run)).collect()
    });
    output::remark(left_out(added.iter().flatten()).as_slice());
    for ((label, _), added) in runs.iter().zip(added) {
        for trace in added {
            let place = first
                .iter()
                .position(|name| *name == trace.name)
                .unwrap_or(first.len());
            match trees
                .iter_mut()
                .find(|(_, root, tree)| *root == trace.root && tree.label == *label)
            {
                Some((best, _, tree)) => {
                    *best = place.min(*best);
                    tree.traces.push(trace.name);
                }
                None => {
                    forest.name_loops(trace.root, &mut names);
                    let tree = CallTree {
                        label: (*label).to_owned(),
                        traces: vec![trace.name],
                        lines: Vec::new(),
                    };
                    trees.push((place, trace.root, tree));
                }
            }
        }
    }
    trees.sort_by_key(|(place, ..)| *place);
    trees.truncate(TREES);
    trees
        .into_iter()
        .map(|(_, root, tree)| CallTree {
            lines: forest.outline(root, &names),
            ..tree
        })
        .collect()
}
