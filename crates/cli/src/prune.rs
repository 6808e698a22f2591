//! `lockstep runs prune`: removes old runs, and as many more as are too large together.

use crate::output;
use crate::record::bytes;
use crate::runs::{DEFAULT, Entry, age, entries};
use anyhow::{Result, ensure};
use clap::Args;
use lockstep_record::{check_settled, remove_run};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Remove old runs, and the oldest ones until the others are small enough together
///
/// Only runs are removed: directories that record wrote, with no file of anybody else's in them, which nobody writes any
/// more. Of one with processes on another host it must be known that they ended (`lockstep rm` asks for less).
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep runs prune --older 30d --dry-run
  lockstep runs prune --max 5G
  lockstep runs prune --max 5G --older 30d results
")]
pub struct Prune {
    /// Directory that holds runs
    #[arg(default_value = DEFAULT)]
    directory: PathBuf,
    /// Most bytes of all runs together: 500M, 5G
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    max: Option<u64>,
    /// Remove runs that began before that long ago: 30d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = duration)]
    older: Option<Duration>,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The runs that were removed, and those that were kept.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// True with `--dry-run`: nothing was removed, and `removed` lists what would be.
    dry_run: bool,
    /// Runs that were removed, oldest first.
    removed: &'a [Entry],
    /// Runs that were kept.
    kept: &'a [Entry],
    /// Sentences that say why some of the runs in `kept` could not be removed.
    spared: &'a [String],
    /// Disk space of the removed and of the kept runs.
    bytes: Bytes,
}

/// Disk space in bytes.
#[derive(Serialize, JsonSchema)]
struct Bytes {
    /// Disk space of the removed runs, in bytes.
    removed: u64,
    /// Disk space of the kept runs, in bytes.
    kept: u64,
}

impl Prune {
    pub fn run(self) -> Result<ExitCode> {
        ensure!(
            self.max.is_some() || self.older.is_some(),
            "expected --max or --older, found neither"
        );
        let now = SystemTime::now();
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let runs = entries(&self.directory)?;
        let (chosen, mut kept) = choose(runs, now.as_secs(), self.older, self.max);
        let (mut removed, mut spared) = (Vec::new(), Vec::new());
        for run in chosen {
            let done = check_settled(&run.directory).and_then(|()| match self.dry_run {
                true => Ok(()),
                false => remove_run(&run.directory),
            });
            match done {
                Ok(()) => removed.push(run),
                Err(error) => {
                    spared.push(error.to_string());
                    kept.push(run);
                }
            }
        }
        self.print(&removed, &kept, &spared)?;
        Ok(ExitCode::SUCCESS)
    }

    fn print(&self, removed: &[Entry], kept: &[Entry], spared: &[String]) -> Result<()> {
        let sum = |runs: &[Entry]| runs.iter().map(|run| run.bytes).sum::<u64>();
        if self.json {
            return output::json(&Document {
                dry_run: self.dry_run,
                removed,
                kept,
                spared,
                bytes: Bytes {
                    removed: sum(removed),
                    kept: sum(kept),
                },
            });
        }
        for reason in spared {
            output::complain(reason);
        }
        let rows = removed.iter().map(|run| {
            vec![
                run.directory.display().to_string(),
                age(run.started),
                output::grouped(run.bytes),
            ]
        });
        let what = if self.dry_run {
            "would be removed"
        } else {
            "removed"
        };
        let table = output::table(&["RUN", "AGE", "BYTES"], &[1, 2], rows);
        output::print(|out| {
            if !removed.is_empty() {
                writeln!(out, "{table}")?;
            }
            writeln!(
                out,
                "{} {what}, {} bytes; {} kept, {} bytes",
                output::plural(removed.len() as u64, "run"),
                output::grouped(sum(removed)),
                output::plural(kept.len() as u64, "run"),
                output::grouped(sum(kept)),
            )
        })
    }
}

/// Of runs, the latest first: those to remove, the oldest first, and those to keep.
fn choose(
    runs: Vec<Entry>,
    now: u64,
    older: Option<Duration>,
    max: Option<u64>,
) -> (Vec<Entry>, Vec<Entry>) {
    let mut bytes = 0u64;
    // From the latest on: once the sum is too large, all that are older go.
    let (kept, mut removed): (Vec<_>, Vec<_>) = runs.into_iter().partition(|run| {
        bytes = bytes.saturating_add(run.bytes);
        let is_old = older.is_some_and(|older| {
            // One that does not say when it began is not known to be old.
            let began = run.started.unwrap_or(now);
            now.saturating_sub(began) > older.as_secs()
        });
        !is_old && max.is_none_or(|max| bytes <= max)
    });
    removed.reverse();
    (removed, kept)
}

/// An age as people write it.
fn duration(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected an age such as 30d, 12h or 2w, found '{text}'");
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit: u64 = match text.get(digits.len()..).unwrap_or_default() {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(expected()),
    };
    let number: u64 = digits.parse().map_err(|_| expected())?;
    number
        .checked_mul(unit)
        .map(Duration::from_secs)
        .ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(started: Option<u64>, bytes: u64) -> Entry {
        Entry {
            directory: PathBuf::from(format!("run-{started:?}")),
            command: None,
            bytes,
            started,
        }
    }

    #[test]
    fn the_oldest_go_first_and_no_more_than_must() {
        let runs = || {
            vec![
                run(Some(90), 5),
                run(Some(50), 5),
                run(Some(10), 5),
                run(None, 5),
            ]
        };
        let started = |runs: &[Entry]| runs.iter().map(|run| run.started).collect::<Vec<_>>();
        let chosen = |older: Option<u64>, max| {
            let (removed, kept) = choose(runs(), 100, older.map(Duration::from_secs), max);
            assert_eq!(removed.len() + kept.len(), 4);
            started(&removed)
        };
        assert_eq!(chosen(Some(50), None), [Some(10)]);
        assert_eq!(chosen(Some(49), None), [Some(10), Some(50)]);
        assert_eq!(chosen(None, Some(14)), [None, Some(10)]);
        assert_eq!(chosen(None, Some(20)), []);
        assert_eq!(
            chosen(Some(0), Some(0)),
            [None, Some(10), Some(50), Some(90)]
        );
    }

    #[test]
    fn ages_as_people_write_them() {
        assert_eq!(duration("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(duration("2w"), Ok(Duration::from_secs(14 * 86_400)));
        for wrong in ["", "30", "d", "1.5d", "30 d", "99999999999999999999d", "5m"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
