//! `lockstep runs` and `lockstep rm`: what lies in `lockstep-runs`, and removing it.

use crate::output;
use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use lockstep_record::{check_ended, check_run, remove_run};
use lockstep_trace::MARKER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where `record` puts a run that was given no directory.
pub const DEFAULT: &str = "lockstep-runs";
/// Far more than a marker needs.
const MARKER_LIMIT: u64 = 1 << 20;

/// List the runs in lockstep-runs
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep runs
  lockstep runs results
  lockstep runs prune --older 30d --max 5G --dry-run
")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    action: Option<Action>,
    /// Directory that holds runs
    #[arg(default_value = DEFAULT)]
    directory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    Prune(crate::prune::Prune),
}

/// Remove a run (a directory that record wrote, and nothing else)
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep rm lockstep-runs/app-1
  lockstep rm good bad
")]
pub struct Rm {
    /// Directories of the runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
}

/// The runs in a directory.
#[derive(Serialize, JsonSchema)]
pub struct Document {
    /// The runs, latest first.
    runs: Vec<Entry>,
}

/// A run, as its directory shows it. Its traces are not read.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct Entry {
    /// Directory of the run.
    #[serde(serialize_with = "shown")]
    pub directory: PathBuf,
    /// The command line that was recorded. Null if it is unknown.
    pub command: Option<String>,
    /// Disk space in bytes.
    pub bytes: u64,
    /// When the run began, in seconds since 1970 (UTC). Null if it is unknown.
    pub started: Option<u64>,
}

/// A path as it is printed, whatever its bytes.
fn shown<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The runs in a directory, the latest first.
pub fn entries(directory: &Path) -> Result<Vec<Entry>> {
    let mut entries = match fs::read_dir(directory) {
        Ok(entries) => entries
            .filter_map(|entry| Entry::of(&entry.ok()?.path()))
            .collect::<Vec<_>>(),
        // That nobody has recorded anything yet is no failure.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && directory == Path::new(DEFAULT) =>
        {
            Vec::new()
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("{}: expected a directory of runs", directory.display()));
        }
    };
    entries.sort_by(|a, b| {
        b.started
            .cmp(&a.started)
            .then_with(|| a.directory.cmp(&b.directory))
    });
    Ok(entries)
}

impl Runs {
    pub fn run(self) -> Result<ExitCode> {
        if let Some(Action::Prune(prune)) = self.action {
            return prune.run();
        }
        let entries = entries(&self.directory)?;
        if self.json {
            output::json(&Document { runs: entries })?;
        } else if entries.is_empty() {
            output::complain(&format!("no runs in {}", self.directory.display()));
        } else {
            let rows = entries.iter().map(|entry| {
                vec![
                    entry.directory.display().to_string(),
                    age(entry.started),
                    output::grouped(entry.bytes),
                    entry.command.clone().unwrap_or_else(|| "?".to_owned()),
                ]
            });
            let table = output::table(&["RUN", "AGE", "BYTES", "COMMAND"], &[1, 2], rows);
            output::print(|out| writeln!(out, "{table}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Rm {
    pub fn run(self) -> Result<ExitCode> {
        // All are looked at before any is removed.
        for run in &self.runs {
            check_ended(run).context("nothing was removed")?;
        }
        for run in &self.runs {
            remove_run(run)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Entry {
    fn of(directory: &Path) -> Option<Self> {
        check_run(directory).ok()?;
        let marker = Marker::read(&directory.join(MARKER)).unwrap_or_default();
        Some(Self {
            directory: directory.to_owned(),
            command: marker.command.map(|words| words.join(" ")),
            bytes: bytes_below(directory),
            started: marker.started,
        })
    }
}

/// What a marker says.
#[derive(Default, Deserialize)]
struct Marker {
    started: Option<u64>,
    command: Option<Vec<String>>,
}

impl Marker {
    fn read(file: &Path) -> Option<Self> {
        let mut text = Vec::new();
        let file = fs::File::open(file).ok()?;
        file.take(MARKER_LIMIT).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Space that the files below take on disk, in bytes; links are not followed.
fn bytes_below(directory: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
            Ok(metadata) => 512 * metadata.blocks(),
            Err(_) => 0,
        })
        .sum()
}

/// How long ago, in the largest unit that fits.
pub fn age(started: Option<u64>) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let Some(seconds) = started.map(|started| now.saturating_sub(started)) else {
        return "?".to_owned();
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}
