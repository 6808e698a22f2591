//! `lockstep lattice`: the concept lattice of the traces and their attributes.

use crate::context::{self, is_context};
use crate::options::Analysis;
use crate::{output, run};
use anyhow::{Context as _, Result};
use clap::Args;
use lockstep_compare::{Lattice as Found, lattice, poset};
use lockstep_concepts::{csv, cxt};
use lockstep_trace::names_in_short;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show the concept lattice of the traces: who shares which attributes
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep lattice good --filter mpi
  lockstep lattice good --filter mpi --frequency actual --svg lattice.svg
  lockstep lattice good --filter mpi --dot | dot -Tpdf -o lattice.pdf
  lockstep lattice good --filter omp --own locks.json
  lockstep lattice context.cxt
  lockstep lattice large.cxt --poset --svg poset.svg
")]
pub struct Lattice {
    /// Directory of the run, or a formal context: FILE.cxt (Burmeister's format), FILE.csv, or FILE.json
    run: PathBuf,
    /// Attributes of your own beside those of the traces: JSON such as {"6.4": ["holds lock a"]}, or a .cxt or .csv
    #[arg(long, value_name = "FILE")]
    own: Option<PathBuf>,
    #[command(flatten)]
    analysis: Analysis,
    /// Most concepts to make; a lattice that is larger is refused
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    limit: usize,
    /// Only the concepts that bring an object or an attribute, and the order between them
    #[arg(long)]
    poset: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "dot")]
    json: bool,
    /// Print Graphviz' language
    #[arg(long)]
    dot: bool,
    /// Draw into a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the formal context into a file, in Burmeister's format
    #[arg(long, value_name = "FILE")]
    cxt: Option<PathBuf>,
    /// Write the formal context into a file, as comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Lattice {
    pub fn run(self) -> Result<ExitCode> {
        let mut context = if is_context(&self.run) {
            context::read(&self.run)?
        } else {
            let run = run::open_with(&self.run, self.analysis.all_processes)?;
            lockstep_compare::context(&run, &self.analysis.options(&[&run])?)?
        };
        if let Some(file) = &self.own {
            context = context::join(&context, file)?;
        }
        if let Some(file) = &self.cxt {
            write(file, &cxt::write(&context))?;
        }
        if let Some(file) = &self.csv {
            write(file, &csv::write(&context))?;
        }
        let found = match self.poset {
            true => poset(&context),
            false => lattice(&context, self.limit)?,
        };
        if let Some(file) = &self.svg {
            write(file, &lockstep_report::lattice_svg(&found))?;
        }
        if self.json {
            output::json(&found)?;
        } else if self.dot {
            let dot = lockstep_report::lattice_dot(&found);
            output::print(|out| out.write_all(dot.as_bytes()))?;
        } else if self.svg.is_none() && self.cxt.is_none() && self.csv.is_none() {
            output::print(|out| out.write_all(text(&found).as_bytes()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes a result that a file was asked for.
pub fn write(file: &Path, text: &str) -> Result<()> {
    if file == Path::new("-") {
        return output::print(|out| write!(out, "{text}"));
    }
    fs::write(file, text).with_context(|| format!("{}: could not be written", file.display()))
}

fn text(found: &Found) -> String {
    let rows = found.concepts.iter().enumerate().map(|(index, concept)| {
        let below: Vec<String> = found
            .covers
            .iter()
            .filter(|(upper, _)| *upper == index)
            .map(|(_, lower)| lower.to_string())
            .collect();
        vec![
            index.to_string(),
            concept.extent.len().to_string(),
            names_in_short(&concept.own_objects),
            concept.own_attributes.join(" "),
            below.join(" "),
        ]
    });
    let table = output::table(
        &[
            "CONCEPT",
            "TRACES",
            "OWN TRACES",
            "OWN ATTRIBUTES",
            "JUST BELOW",
        ],
        &[0, 1],
        rows,
    );
    let count = found.concepts.len();
    let which = if found.is_poset {
        " of traces and attributes alone"
    } else {
        ""
    };
    format!(
        "{count} {}{which}; each has the attributes of those above it and the traces of those below it\n\n{table}\n",
        if count == 1 { "concept" } else { "concepts" }
    )
}
