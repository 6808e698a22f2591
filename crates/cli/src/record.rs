//! `lockstep record`: runs a program and records what it calls.

use crate::output;
use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lockstep_format::codec::Kind;
use lockstep_record::{Options, Summary, record};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Run a program and record every call and return of its functions, and its calls into libraries
///
/// The program is not changed: its output, exit status, signals and working directory are its own. Ends with the
/// program's status (128 + n when signal n killed it), or with 125 where it was not started, 126 where it cannot be
/// executed, 127 where it was not found.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep record -o good -- ./app input.dat
  lockstep record -o good -- mpirun -n 8 ./app      around the launcher, or
  mpirun -n 8 lockstep record -o good -- ./app      inside it: the same run
  srun -n 64 lockstep record -- ./app               into lockstep-runs/app-JOB
  lockstep record --trace '^MPI_' --trace '^solve' --skip 'MPI_Wtime' -- mpirun -n 8 ./app
")]
pub struct Record {
    /// Directory of the run [default: lockstep-runs/NAME-N]
    ///
    /// It must not exist, be empty, or be the run that the other ranks of this very job are writing.
    #[arg(short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// What is recorded: the main program's functions, and its calls into libraries
    #[arg(long, value_name = "IMAGES", value_parser = PossibleValuesParser::new(["main"]), default_value = "main")]
    images: Vec<String>,
    /// Record only functions and library calls whose name REGEX finds (repeatable)
    ///
    /// Names as `calls` prints them or as the linker has them; `MPI_Send` finds Fortran's `mpi_send_` too. What is
    /// not chosen is not touched and costs nothing.
    #[arg(long, value_name = "REGEX")]
    trace: Vec<String>,
    /// Do not record functions and library calls whose name REGEX finds (repeatable)
    #[arg(long, value_name = "REGEX")]
    skip: Vec<String>,
    /// How events are stored
    #[arg(long, default_value = Kind::Seed.name(), value_parser = codecs())]
    codec: Kind,
    /// Replace a former run in the directory (a run, and nothing else)
    #[arg(long)]
    force: bool,
    /// Run a program that cannot be recorded (static, setuid) without recording, instead of refusing it
    #[arg(long)]
    untraced_is_fine: bool,
    /// The probe's shared library [default: beside the executable, then ../lib]
    #[arg(long, value_name = "FILE")]
    probe: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

fn codecs() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name())).try_map(|name| {
        Kind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or("no such codec")
    })
}

impl Record {
    pub fn run(self) -> Result<ExitCode> {
        let options = Options {
            command: self.command,
            output: self.output,
            trace: self.trace,
            skip: self.skip,
            codec: self.codec,
            force: self.force,
            untraced_is_fine: self.untraced_is_fine,
            probe: self.probe,
        };
        let outcome = match record(&options) {
            Ok(outcome) => outcome,
            Err(error) => {
                output::complain(&error.to_string());
                return Ok(ExitCode::from(error.status()));
            }
        };
        if let Some(reason) = &outcome.untraced {
            output::complain(&format!("ran without recording: {reason}"));
        }
        for option in &outcome.unmatched {
            output::complain(&format!("{option} found no function and no library call"));
        }
        if let Some(summary) = &outcome.summary {
            output::complain(&sentence(summary));
        }
        Ok(ExitCode::from(outcome.status))
    }
}

fn sentence(summary: &Summary) -> String {
    let lost = match summary.lost {
        0 if summary.events == 0 => " (lockstep info says why)".to_owned(),
        0 => String::new(),
        lost => format!(" ({} lost: see lockstep info)", output::grouped(lost)),
    };
    format!(
        "{} events{lost} of {} in {} bytes, in {}",
        output::grouped(summary.events),
        if summary.processes == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", summary.processes)
        },
        output::grouped(summary.bytes),
        summary.directory.display(),
    )
}
