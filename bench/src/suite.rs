//! Programs whose event streams differ in kind, recorded: `programs/suite`, and others by path.

use crate::run::{Job, empty};
use anyhow::{Context, Result, ensure};
use lockstep_testkit::generate::Source;
use lockstep_testkit::suite::SUITE;
use lockstep_trace::{Event, Run};
use std::collections::HashMap;
use std::path::Path;

/// A program to record.
pub struct Program {
    /// Its name.
    pub name: String,
    words: Vec<String>,
    images: String,
}

/// The suite, and every `*.x` of a directory, if one is given.
pub fn sources(images: &str, directory: &Path) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for member in SUITE {
        programs.push((format!("suite/{}", member.name), member.words()));
    }
    if !directory.as_os_str().is_empty() {
        let entries =
            std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
        let mut found: Vec<_> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|it| it == "x"))
            .collect();
        found.sort();
        for path in found {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let words = ["mpirun", "-n", "4"].map(str::to_owned);
            let words = words.into_iter().chain([path.display().to_string()]);
            programs.push((name, words.collect()));
        }
    }
    let is_all = images == "all";
    Ok(programs
        .into_iter()
        .map(|(name, words)| Program {
            name: if is_all {
                format!("{name} (all images)")
            } else {
                name
            },
            words,
            images: images.to_owned(),
        })
        .collect())
}

impl Program {
    /// Records it: the events of its first trace, functions numbered as they appear.
    pub fn record(&self) -> Result<Source> {
        let directory = empty("suite")?;
        let ran = Job::recorded(&self.words, &["--images", &self.images], &directory).run()?;
        ensure!(ran.status == 0, "{}: status {}", self.name, ran.status);
        let run = Run::open(&directory)?;
        let trace = run
            .traces()
            .next()
            .with_context(|| format!("{}: no trace", self.name))?;
        let mut numbers: HashMap<u32, u32> = HashMap::new();
        let events = trace.events().map(|event| match event {
            Event::Call(function) => {
                let next = numbers.len() as u32;
                let number = *numbers.entry(function.0).or_insert(next);
                Event::Call(lockstep_trace::FunctionId(number))
            }
            other => other,
        });
        let events = events.collect();
        Ok(Source {
            name: self.name.clone(),
            events,
            bits: None,
        })
    }
}
