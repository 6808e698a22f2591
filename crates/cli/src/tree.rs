//! `lockstep tree`: the call tree of a trace, loops folded.

use crate::output::{self, Style, styled};
use crate::run;
use anyhow::Result;
use clap::Args;
use lockstep_calltree::{Forest, OutlineLine, left_out};
use lockstep_loops::Names;
use lockstep_trace::{Selection, TraceName};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the call tree of a trace, loops folded, with counts
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep tree bad -t 5.0
  lockstep tree bad -t 5.0 --depth 3
")]
pub struct Tree {
    /// Directory of the run
    run: PathBuf,
    /// The trace, such as 6.4
    #[arg(short = 't', value_name = "P.T")]
    trace: Selection,
    /// Show no more levels than this
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The call tree of a trace, with loops folded.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    /// The trace.
    trace: TraceName,
    /// Lines of the tree, from top to bottom.
    tree: Vec<OutlineLine>,
}

impl Tree {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open_for(&self.run, &self.trace, |_, _| false)?;
        let thread = run::trace(&run, &self.trace)?;
        let mut forest = Forest::new();
        let functions = forest.add_functions(&run);
        let trace = forest.bounded(1, |forest| forest.add_trace(&functions, thread));
        output::remark(left_out([&trace]).as_slice());
        let mut names = Names::new();
        forest.name_loops(trace.root, &mut names);
        let mut lines = forest.outline(trace.root, &names);
        lines.retain(|line| self.depth.is_none_or(|depth| line.depth < depth));
        if self.json {
            let (trace, tree) = (thread.name, lines);
            output::json(&Document { trace, tree })?;
            return Ok(ExitCode::SUCCESS);
        }
        output::print(|out| {
            writeln!(out, "{:>10}  CALL TREE of {}", "TIMES", thread.name)?;
            for line in &lines {
                writeln!(
                    out,
                    "{:>10}  {}",
                    output::grouped(line.occurrences),
                    text(line)
                )?;
            }
            Ok(())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A line in its colour: loops and open calls stand out.
fn text(line: &OutlineLine) -> String {
    let text = output::printable(&line.to_string());
    match line.kind {
        "loop" => styled(Style::Normal, text),
        "open" => styled(Style::Faulty, text),
        _ => text,
    }
}
