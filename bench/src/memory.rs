//! `cargo xtask bench memory`: private memory that recording adds to a process, by its smaps.
//!
//! Counted: anonymous pages that are there (written, the process's own), beside those of the untraced
//! program. Told apart: pages of the trace's files, which are the page cache's and are written back, and plans,
//! which all processes share.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, compiled, empty};
use crate::words::Words;
use anyhow::{Context, Result, bail};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench memory [OPTION]...

Private memory that recording adds, per thread and per process. Takes about a minute.

  --threads LIST   1,10,100
  --calls LIST     calls of each thread (10,1000000)
  --label NAME     rows in memory-NAME.csv (own)
  --fresh          forget the rows that are there
";

const HEADS: [&str; 6] = [
    "threads",
    "calls",
    "bar",
    "anonymous_kb",
    "file_kb",
    "processes",
];

const BARS: [(&str, Option<&[&str]>); 5] = [
    ("plain", None),
    ("main", Some(&[])),
    ("main-low", Some(&["--memory", "low"])),
    ("all", Some(&["--images", "all"])),
    ("all-low", Some(&["--images", "all", "--memory", "low"])),
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--threads", "--calls", "--label"], &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("memory-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let (threads, calls) = (
        given.list("--threads", "1,10,100"),
        given.list("--calls", "10,1000000"),
    );
    for count in &threads {
        for calls in &calls {
            for (bar, options) in BARS {
                if rows.has(&[count, calls, bar]) {
                    continue;
                }
                let (anonymous, files) = measure_one(count, calls, options)
                    .with_context(|| format!("{count} threads, {calls} calls, {bar}"))?;
                eprintln!("{count} threads, {calls} calls, {bar}: {anonymous} kB");
                rows.add(
                    &[
                        count,
                        calls,
                        bar,
                        &anonymous.to_string(),
                        &files.to_string(),
                        "1",
                    ]
                    .map(str::to_owned),
                )?;
            }
        }
    }
    let mut report = format!("{}\n\n", measure::machine());
    let _ = writeln!(
        report,
        "{:>8}{:>10}  {:<10}{:>16}{:>18}{:>18}",
        "threads", "calls", "bar", "added kB", "added kB a thread", "trace files kB"
    );
    let kilobytes = |count: &str, calls: &str, bar: &str, head: &str| {
        let values: Vec<f64> = rows
            .find(&[count, calls, bar])
            .map(|row| row.number(head))
            .collect();
        measure::median(&values)
    };
    for calls in &calls {
        for (bar, _) in &BARS[1..] {
            let added = |count: &str| {
                kilobytes(count, calls, bar, "anonymous_kb")
                    - kilobytes(count, calls, "plain", "anonymous_kb")
            };
            for count in &threads {
                // Beyond the first, so that the process's own part does not count.
                let first = threads.first().map_or("1", String::as_str);
                let more = count.parse::<f64>()? - first.parse::<f64>()?;
                let a_thread = if more > 0.0 {
                    format!("{:.1}", (added(count) - added(first)) / more)
                } else {
                    "-".to_owned()
                };
                let _ = writeln!(
                    report,
                    "{count:>8}{calls:>10}  {bar:<10}{:>16}{a_thread:>18}{:>18}",
                    added(count),
                    kilobytes(count, calls, bar, "file_kb")
                );
            }
        }
    }
    print!("{report}");
    std::fs::write(directory.join(format!("memory-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

/// Anonymous memory, and pages of the run's files, in kB, when all threads have made their calls.
fn measure_one(threads: &str, calls: &str, options: Option<&[&str]>) -> Result<(u64, u64)> {
    let program = compiled("threads.c", &[])?;
    let words = [
        program.display().to_string(),
        threads.to_owned(),
        calls.to_owned(),
    ];
    let directory = empty("memory")?;
    let job = match options {
        None => Job::plain(&words),
        Some(options) => Job::recorded(&words, options, &directory.join("run")),
    };
    let mut child = job
        .command()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let result = (|| {
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(pid) = line.trim().strip_prefix("ready ") else {
            bail!("it said `{line}`");
        };
        let smaps = std::fs::read_to_string(format!("/proc/{pid}/smaps"))?;
        Ok(count(&smaps, &directory.display().to_string()))
    })();
    // Its input ends, and so does it.
    drop(child.stdin.take());
    child.wait()?;
    std::fs::remove_dir_all(&directory)?;
    result
}

/// Sums of smaps: anonymous pages, and resident pages of files below `directory`.
fn count(smaps: &str, directory: &str) -> (u64, u64) {
    let (mut anonymous, mut files, mut is_trace) = (0, 0, false);
    for line in smaps.lines() {
        let number = |prefix: &str| -> Option<u64> {
            line.strip_prefix(prefix)?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        };
        if let Some(value) = number("Anonymous:") {
            anonymous += value;
        } else if let Some(value) = number("Rss:") {
            if is_trace {
                files += value;
            }
        } else if line
            .split_once(' ')
            .is_some_and(|(range, _)| range.contains('-'))
        {
            is_trace = line.contains(directory) && line.contains("/processes/");
        }
    }
    (anonymous, files)
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn pages_of_the_trace_are_told_apart() {
        let smaps = "1-2 rw-p 0 0:0 0 [heap]\nRss: 12 kB\nAnonymous: 8 kB\n2-3 rw-s 0 0:0 1 /x/run/processes/a\n\
                     Rss: 40 kB\nAnonymous: 0 kB\n3-4 rw-p 0 0:0 0 \nRss: 4 kB\nAnonymous: 4 kB\n";
        assert_eq!(count(smaps, "/x"), (12, 40));
    }
}
