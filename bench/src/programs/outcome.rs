//! What a run said, wrote and returned, after the rules for what is never the same.

use super::list::Program;
use crate::run;
use anyhow::Result;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

/// One run.
#[derive(Debug)]
pub struct Outcome {
    /// Exit status; 128 + n after signal n.
    pub status: i32,
    /// Everything that is compared, by name: `stdout`, `stderr`, and files.
    parts: BTreeMap<String, Vec<u8>>,
    /// How long it took.
    pub seconds: f64,
    /// What was recorded.
    pub trace: Option<Trace>,
}

/// What a recording holds.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Programs with events.
    programs: Vec<String>,
    /// Processes.
    pub processes: usize,
    /// Events.
    pub events: u64,
    /// Events that are missing.
    pub lost: u64,
    /// Why they are.
    pub losses: String,
}

impl Trace {
    /// Reads it; `None` where that fails.
    pub fn read(directory: &Path) -> Option<Self> {
        let info = run::json(&["info"], directory).ok()?;
        let mut trace = Self::default();
        let mut losses: BTreeMap<String, u64> = BTreeMap::new();
        for process in info["processes"].as_array()? {
            trace.processes += 1;
            let events: u64 = process["threads"]
                .as_array()?
                .iter()
                .filter_map(|thread| thread["events"].as_u64())
                .sum();
            trace.events += events;
            trace.lost += process["events_lost"].as_u64().unwrap_or(0);
            for loss in process["losses"].as_array().into_iter().flatten() {
                *losses
                    .entry(loss["reason"].as_str()?.to_owned())
                    .or_default() += loss["events"].as_u64().unwrap_or(0);
            }
            if events > 0 {
                let path = Path::new(process["program"].as_str().unwrap_or_default());
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                trace.programs.push(name.into_owned());
            }
        }
        trace.losses = losses
            .iter()
            .map(|(reason, events)| format!("{reason} {events}"))
            .collect::<Vec<_>>()
            .join("; ");
        Some(trace)
    }
}

impl Outcome {
    /// Status of a run that took too long.
    pub const OVER: i32 = 124;

    /// Reads what the run left.
    pub fn read(
        program: &Program,
        status: ExitStatus,
        stdout: &Path,
        stderr: &Path,
        work: &Path,
    ) -> Result<Self> {
        let mut parts = BTreeMap::new();
        let mut stderr = std::fs::read(stderr)?;
        // What the recorder says itself.
        if let Ok(text) = std::str::from_utf8(&stderr) {
            stderr = text
                .split_inclusive('\n')
                .filter(|line| !line.starts_with("lockstep: "))
                .collect::<String>()
                .into_bytes();
        }
        parts.insert("stdout".to_owned(), std::fs::read(stdout)?);
        parts.insert("stderr".to_owned(), stderr);
        gather(work, "", &mut parts)?;
        for (name, part) in &mut parts {
            if program
                .ignored
                .as_ref()
                .is_some_and(|ignored| ignored.is_match(name))
            {
                part.clear();
                continue;
            }
            if let Ok(text) = std::str::from_utf8(part) {
                let mut text = text.to_owned();
                for (rule, stands_for) in &program.rules {
                    text = rule.replace_all(&text, stands_for.as_str()).into_owned();
                }
                *part = text.into_bytes();
            }
        }
        Ok(Self {
            status: status
                .code()
                .or(status.signal().map(|signal| 128 + signal))
                .unwrap_or(-1),
            parts,
            seconds: 0.0,
            trace: None,
        })
    }

    /// Whether a program of that name has events.
    pub fn recorded(&self, name: &str) -> bool {
        self.trace.as_ref().is_some_and(|trace| {
            // python3 is python3.11, bash may be sh.
            trace
                .programs
                .iter()
                .any(|program| program.starts_with(name))
        })
    }

    /// What differs, with the first difference.
    pub fn differences(&self, other: &Self) -> Vec<(String, String)> {
        let mut names: Vec<&String> = self.parts.keys().chain(other.parts.keys()).collect();
        names.sort_unstable();
        names.dedup();
        names
            .into_iter()
            .filter_map(|name| {
                let what = match (self.parts.get(name), other.parts.get(name)) {
                    (Some(one), Some(two)) if one == two => return None,
                    (Some(one), Some(two)) => first_difference(one, two),
                    (Some(_), None) => "it is missing".to_owned(),
                    _ => "it is new".to_owned(),
                };
                Some((name.clone(), what))
            })
            .collect()
    }

    /// Keeps the texts for whoever looks for the cause.
    pub fn keep(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        for name in ["stdout", "stderr"] {
            if let Some(part) = self.parts.get(name) {
                std::fs::write(directory.join(name), part)?;
            }
        }
        Ok(())
    }
}

/// The first line that is not the same.
fn first_difference(one: &[u8], two: &[u8]) -> String {
    let (Ok(one), Ok(two)) = (std::str::from_utf8(one), std::str::from_utf8(two)) else {
        return format!("{} and {} bytes that differ", one.len(), two.len());
    };
    let (mut ones, mut twos) = (one.lines(), two.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (ones.next(), twos.next()) {
            (None, None) => return "line ends differ".to_owned(),
            (one, two) if one == two => {}
            (one, two) => {
                let short = |line: Option<&str>| {
                    line.unwrap_or("nothing")
                        .chars()
                        .take(100)
                        .collect::<String>()
                };
                return format!(
                    "line {number} is `{}` instead of `{}`",
                    short(two),
                    short(one)
                );
            }
        }
    }
}

/// All files below `directory`, by their path in it.
fn gather(directory: &Path, prefix: &str, parts: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            gather(&entry.path(), &format!("{name}/"), parts)?;
        } else if kind.is_file() {
            parts.insert(name, std::fs::read(entry.path())?);
        } else {
            parts.insert(name, Vec::new());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_difference_is_a_line() {
        assert_eq!(
            first_difference(b"a\nb\n", b"a\nc\n"),
            "line 2 is `c` instead of `b`"
        );
        assert_eq!(
            first_difference(b"a\n", b""),
            "line 1 is `nothing` instead of `a`"
        );
        assert_eq!(first_difference(b"a\n", b"a"), "line ends differ");
    }
}
