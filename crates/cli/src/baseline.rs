//! `lockstep baseline`: a gate for continuous integration, which exits 1 if behaviour changed.

use crate::compare::Compare;
use crate::{output, run};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use lockstep_compare::{Rules, SameFlags};
use lockstep_trace::Run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Keep runs as the expected behaviour, and check other runs against them
///
/// A baseline is a directory of copies of runs. `set` begins it anew, or with --add gives it another normal run. `check`
/// exits 1 if a run does not do what these runs did: what is called, how often, and in which order.
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

/// Check a run against the baseline
///
/// Exits 1 if the run calls something that no run of the baseline calls, no longer calls something that all of them call, or
/// calls it more or less often, in another order, or with other arguments of MPI. Between the fewest and the most calls that runs of the
/// baseline made, everything is allowed: what varies from run to run needs several runs (`baseline set --add`). What
/// is timing by its nature (who takes the next piece of work, how often something is asked) is no difference.
///
/// Two builds of a program may be checked. If both were compiled with the same options, everything is compared. The
/// binaries record their options with `gcc -g`, `-frecord-gcc-switches`, or `clang -grecord-command-line`. With other options, or
/// without a record, functions are left out that the compiler inlined in one of the builds. --same-flags decides it.
///
/// The output and the other options are those of `compare`; the JSON has `gate` beside its keys.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep baseline check expected new-run
  lockstep baseline check expected new-run --json
  lockstep baseline check expected longer-run --ignore-counts
")]
struct Check {
    /// Directory of the baseline
    directory: PathBuf,
    /// Directory of the run
    run: PathBuf,
    /// How often something is called is no difference: the input decides it
    #[arg(long, conflicts_with = "counts")]
    ignore_counts: bool,
    /// Whether two builds were compiled with the same options
    #[arg(long, value_name = "WHETHER", value_enum, default_value_t = Flags::Auto)]
    same_flags: Flags,
    #[command(flatten)]
    compare: crate::compare::Options,
}

/// Whether two builds were compiled with the same options.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Flags {
    /// As the binaries' own records say
    Auto,
    /// They were: nothing is left out
    Yes,
    /// They were not
    No,
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
        let rules = Rules {
            ignores_counts: self.ignore_counts,
            same_flags: match self.same_flags {
                Flags::Auto => SameFlags::Auto,
                Flags::Yes => SameFlags::Yes,
                Flags::No => SameFlags::No,
            },
        };
        Compare::new(normal, self.run, runs.collect(), self.compare)
            .behind(rules)
            .run()
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
