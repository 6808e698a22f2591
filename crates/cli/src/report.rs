//! `lockstep report`: everything about a run, or about two, in one self-contained page.

use anyhow::{Result, bail};
use clap::Args;
use lockstep_compare::{Comparison, Options};
use lockstep_trace::Run;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write one self-contained page about a run, or about a normal and a faulty one
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep report bad -o bad.html
  lockstep report good bad -o report.html
")]
pub struct Report {
    /// Directory of the run, or of the normal run and the faulty one
    #[arg(required = true, num_args = 1..=2, value_names = ["RUN", "FAULTY"])]
    runs: Vec<PathBuf>,
    /// The page to write
    #[arg(short, value_name = "FILE")]
    output: PathBuf,
}

impl Report {
    pub fn run(self) -> Result<ExitCode> {
        bail!("report: not built yet")
    }
}

/// The page of a comparison.
pub fn write_comparison(
    file: &Path,
    normal: &Run,
    faulty: &Run,
    options: &Options,
    found: &Comparison,
) -> Result<()> {
    let _ = (file, normal, faulty, options, found);
    bail!("report: not built yet")
}
