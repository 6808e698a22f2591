//! What somebody sees who has nothing but the events as text: how many lines of each trace `diff` marks.
//!
//! *Costs*: a process of `diff` for each trace. *Not for* anything but standing beside `compare`.

use anyhow::{Context, Result, ensure};
use lockstep_comm::communicators::Communicators;
use lockstep_trace::{Event, Run};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The traces of a run as text files.
#[derive(Debug, Clone)]
pub struct Texts {
    /// By trace: its file, with one line an event, and a hash of the same with all arguments.
    pub traces: BTreeMap<String, (PathBuf, u64)>,
}

/// Writes the traces of the run `directory` below `to`.
pub fn texts(directory: &Path, to: &Path) -> Result<Texts> {
    let run = Run::open(directory)?;
    let known = Communicators::of(&run);
    std::fs::create_dir_all(to)?;
    let mut traces = BTreeMap::new();
    for thread in run.traces() {
        let mut text = String::new();
        let mut all = DefaultHasher::new();
        for event in known.events(thread) {
            let line = match event.annotated.event {
                Event::Call(id) => run.function(id).name.as_str(),
                Event::Return => "return",
                Event::Tail => continue,
            };
            text.push_str(line);
            text.push('\n');
            line.hash(&mut all);
            known.show(&event).to_string().hash(&mut all);
        }
        let path = to.join(thread.name.to_string());
        std::fs::write(&path, text)?;
        traces.insert(thread.name.to_string(), (path, all.finish()));
    }
    Ok(Texts { traces })
}

/// At which place `truth` stands if traces are sorted by the lines that `diff` marks, most first; of equal ones the middle
/// place. `None` where nothing is marked in it.
pub fn rank(normal: &Texts, faulty: &Texts, truth: &str) -> Result<Option<f64>> {
    let mut marked = BTreeMap::new();
    for (name, (path, _)) in &faulty.traces {
        let Some((before, _)) = normal.traces.get(name) else {
            continue;
        };
        let output = Command::new("diff")
            .arg("--speed-large-files")
            .arg(before)
            .arg(path)
            .output();
        let output = output.context("diff")?;
        ensure!(
            output.status.code().is_some_and(|code| code < 2),
            "diff: {output:?}"
        );
        let is_mark = |line: &&[u8]| matches!(line.first(), Some(b'<' | b'>'));
        let lines = output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(is_mark)
            .count();
        marked.insert(name.as_str(), lines);
    }
    let own = marked.get(truth).copied().unwrap_or(0);
    if own == 0 {
        return Ok(None);
    }
    let before = marked.values().filter(|lines| **lines > own).count() as f64;
    let equal = marked.values().filter(|lines| **lines == own).count() as f64;
    Ok(Some(1.0 + before + (equal - 1.0) / 2.0))
}

/// Whether each trace does and says what that trace does and says in one of the normal runs.
pub fn is_latent(normals: &[&Texts], faulty: &Texts) -> bool {
    let known = |name: &String, hash: u64| {
        let mut same = normals.iter().filter_map(|normal| normal.traces.get(name));
        same.any(|(_, other)| *other == hash)
    };
    faulty.traces.len() == normals.first().map_or(0, |normal| normal.traces.len())
        && faulty
            .traces
            .iter()
            .all(|(name, (_, hash))| known(name, *hash))
}
