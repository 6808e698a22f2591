//! Time, memory and the machine.

use anyhow::{Context, Result};
use lockstep_testkit::artifacts;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What one run of a command took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Seconds on the clock.
    pub wall: f64,
    /// Seconds of all processors, user and system, of the command and all that it waited for.
    pub cpu: f64,
    /// Most memory that the command itself had at a time, in bytes; of its children nothing.
    pub memory: u64,
    /// Exit status; -1 after a signal.
    pub status: i32,
}

/// Runs `command` without output and measures it.
pub fn cost(command: &mut Command) -> Result<Cost> {
    let before = children_seconds()?;
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{command:?}"))?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut memory = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        memory = memory.max(peak_memory(Path::new(&status_file)));
        std::thread::sleep(Duration::from_millis(1));
    };
    Ok(Cost {
        wall: start.elapsed().as_secs_f64(),
        cpu: children_seconds()? - before,
        memory,
        status: status.code().unwrap_or(-1),
    })
}

/// The highest resident size, from /proc/PID/status; 0 when the process is gone.
fn peak_memory(status: &Path) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    text.lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?
                .trim()
                .strip_suffix(" kB")?
                .trim()
                .parse()
                .ok()
        })
        .map_or(0, |kibibytes: u64| kibibytes * 1024)
}

/// Seconds of processor time of all children that were waited for, theirs included: fields 16 and 17
/// of /proc/self/stat, in hundredths.
fn children_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<u64> = after_name
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse().ok())
        .collect();
    Ok(fields.iter().sum::<u64>() as f64 / 100.0)
}

/// Bytes of all files below `directory`.
pub fn bytes_below(directory: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => bytes_below(&entry.path()),
            Ok(data) => data.len(),
            Err(_) => 0,
        })
        .sum()
}

/// The middle one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Smallest and largest.
pub fn span(values: &[f64]) -> (f64, f64) {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    (
        smallest,
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    )
}

/// One line: processor, cores, kernel, and the tools' versions.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} · {cores} cores · Linux {} · {} · {} · {}",
        processor(),
        first_line("uname", &["-r"]),
        first_line("gcc", &["--version"]),
        first_line("valgrind", &["--version"]),
        first_line("uftrace", &["--version"]),
    )
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or_else(
            || "unknown processor".to_owned(),
            |(_, name)| name.to_owned(),
        )
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    Command::new(program)
        .args(arguments)
        .output()
        .ok()
        .and_then(|output| {
            Some(
                String::from_utf8_lossy(&output.stdout)
                    .lines()
                    .next()?
                    .to_owned(),
            )
        })
        .unwrap_or_else(|| format!("no {program}"))
}

/// `bench/results/DATE-MACHINE`, made if it is not there.
pub fn results_directory() -> Result<PathBuf> {
    let machine: String = processor()
        .to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join("-");
    let name = format!("{}-{machine}", first_line("date", &["+%F"]));
    let directory = artifacts::repository().join("bench/results").join(name);
    std::fs::create_dir_all(&directory)?;
    Ok(directory)
}
