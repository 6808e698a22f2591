//! `lockstep import`: another tool's trace as a run.

use crate::output;
use anyhow::Result;
use clap::{Args, ValueEnum};
use lockstep_exchange::Origin;
use lockstep_record::{check_run, remove_run};
use std::path::PathBuf;
use std::process::ExitCode;

/// Read another tool's trace into a run
///
/// The run is like one that was recorded: info, tree, calls, loops, compare, diff, events and stack work on it. Ids, arguments
/// and what a format tells beside calls are left out; times are kept where the format has them.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep import --from parlot old-traces -o old
  lockstep import --from uftrace uftrace.data -o run
  lockstep import --from chrome trace.json.gz -o run
  lockstep import --from otf2 scorep/traces.otf2 -o run
")]
pub struct Import {
    /// The format
    #[arg(long, value_name = "FORMAT")]
    from: Format,
    /// What to read: a directory of ParLOT's files, a data directory of uftrace, a file of JSON, an
    /// archive of OTF2
    path: PathBuf,
    /// Directory of the new run
    #[arg(short, value_name = "RUN")]
    output: PathBuf,
    /// Replace a former run
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// The original tool's files: NAME.HOST.PID.info and NAME.HOST.PID.0, .1, ...
    Parlot,
    /// A data directory of uftrace, recorded without arguments
    Uftrace,
    /// Chrome's trace events: B, E and X; maybe gzipped
    Chrome,
    /// An archive of OTF2 (its directory or its anchor file) without compression
    Otf2,
}

impl Import {
    pub fn run(self) -> Result<ExitCode> {
        let origin = match self.from {
            Format::Parlot => Origin::Parlot,
            Format::Uftrace => Origin::Uftrace,
            Format::Chrome => Origin::Chrome,
            Format::Otf2 => Origin::Otf2,
        };
        let replaces = self.force && self.output.symlink_metadata().is_ok();
        if replaces {
            check_run(&self.output)?;
        }
        let imported = lockstep_exchange::import(origin, &self.path, &self.output, replaces)?;
        if replaces {
            remove_run(&self.output)?;
        }
        imported.draft.keep()?;
        output::remark(&imported.notes);
        Ok(ExitCode::SUCCESS)
    }
}
