//! `lockstep baseline`: a gate for continuous integration: behaviour that changed ends with 1.

use crate::compare::Compare;
use crate::{output, run};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};
use lockstep_trace::Run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keep runs as the expected behaviour, and check other runs against them
///
/// A baseline is a directory of copies of runs. `set` begins it anew, or with --add gives it another normal run: with
/// several, what varies among them is no change. `check` is `compare` with all of them, with its options, its output and
/// its exit status: 1 where behaviour changed.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep baseline set expected run
  lockstep baseline set expected --add run-2 run-3
  lockstep baseline check expected new-run --json
")]
pub struct Baseline {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Set(Set),
    Check(Box<Check>),
}

/// Keep one or more runs as the expected behaviour
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep baseline set expected run
  lockstep baseline set expected --add run-2
")]
struct Set {
    /// Directory of the baseline
    directory: PathBuf,
    /// Directories of the runs
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Add to the runs that the baseline has
    #[arg(long)]
    add: bool,
}

/// Compare a run with the baseline
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep baseline check expected new-run
  lockstep baseline check expected new-run --counts --json
")]
struct Check {
    /// Directory of the baseline
    directory: PathBuf,
    /// Directory of the run
    run: PathBuf,
    #[command(flatten)]
    compare: crate::compare::Options,
}

/// What makes a directory a baseline.
const MARKER: &str = "lockstep-baseline";

impl Baseline {
    pub fn run(self) -> Result<ExitCode> {
        match self.action {
            Action::Set(set) => set.run(),
            Action::Check(check) => check.run(),
        }
    }
}

impl Set {
    fn run(self) -> Result<ExitCode> {
        // Nothing is touched before all of them are known to be runs.
        for directory in &self.runs {
            run::open(directory)?;
        }
        let directory = &self.directory;
        let is_new = !directory.exists() || directory.read_dir()?.next().is_none();
        ensure!(
            is_new || directory.join(MARKER).is_file(),
            "expected a new directory or a baseline, found {} without {MARKER}",
            directory.display()
        );
        fs::create_dir_all(directory)
            .with_context(|| format!("{} could not be made", directory.display()))?;
        fs::write(
            directory.join(MARKER),
            "A baseline of lockstep: runs that are normal.\n",
        )?;
        let old = kept(directory)?;
        let next = old.last().map_or(1, |(number, _)| number + 1);
        for (number, source) in (next..).zip(&self.runs) {
            let target = directory.join(format!("run-{number}"));
            let copied = copy(source, &target)
                .with_context(|| format!("{} could not be copied", source.display()))
                .and_then(|()| Ok(Run::open(&target).map(drop)?));
            if let Err(error) = copied {
                // Half a run must not stay; what was there before does.
                let _ = fs::remove_dir_all(&target);
                return Err(error);
            }
        }
        if !self.add {
            for (_, old) in old {
                fs::remove_dir_all(&old)
                    .with_context(|| format!("{} could not be removed", old.display()))?;
            }
        }
        let count = kept(directory)?.len();
        let runs = if count == 1 { "run" } else { "runs" };
        output::print(|out| {
            use std::io::Write;
            writeln!(out, "{}: {count} {runs} kept", directory.display())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Check {
    fn run(self) -> Result<ExitCode> {
        ensure!(
            self.directory.join(MARKER).is_file(),
            "expected a baseline (lockstep baseline set), found {} without {MARKER}",
            self.directory.display()
        );
        let mut runs = kept(&self.directory)?.into_iter().map(|(_, run)| run);
        let Some(normal) = runs.next() else {
            bail!(
                "expected a run in the baseline {}, found none",
                self.directory.display()
            );
        };
        Compare::new(normal, self.run, runs.collect(), self.compare).run()
    }
}

/// The runs of a baseline with their numbers, in order.
fn kept(directory: &Path) -> Result<Vec<(u32, PathBuf)>> {
    let mut runs = Vec::new();
    for entry in directory.read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix("run-")?.parse().ok());
        if let (Some(number), true) = (number, entry.file_type()?.is_dir()) {
            runs.push((number, entry.path()));
        }
    }
    runs.sort();
    Ok(runs)
}

/// Copies a directory; links are not followed.
fn copy(source: &Path, target: &Path) -> std::io::Result<()> {
    // As closed to others as the run is.
    fs::create_dir(target)?;
    fs::set_permissions(target, fs::metadata(source)?.permissions())?;
    for entry in source.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let target = target.join(entry.file_name());
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
