//! What was found of the same runs before, in the user's cache (`~/.cache/lockstep/compare`).
//!
//! *Guarantees*: never stale. An entry's name is a hash of every byte of the runs, of the options, of the runs' names as
//! they were given, of the host (which tells whether a process is still there) and of this very program. A run that goes on
//! is not kept. *Costs*: reading the runs once where the answer is there, and twice where it is not, beside
//! opening them.

use super::told::Told;
use crate::output::Document;
use lockstep_compare::{Comparison, Gate};
use lockstep_loops::Hasher128;
use lockstep_record::Cache;
use lockstep_trace::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A longer answer is not kept.
const MOST: usize = 8 << 20;
/// A run has directories, and these have none.
const DEPTH: usize = 2;

/// What was found, in both forms in which it is told.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was to be known of the runs when they were opened.
    pub remarks: Vec<String>,
    pub told: Told,
    pub json: String,
}

impl Entry {
    pub fn new(runs: &[Run], found: &Comparison, gate: Option<&Gate>) -> serde_json::Result<Self> {
        let remarks = runs.iter().flat_map(|run| &run.notes).cloned();
        Ok(Self {
            remarks: remarks.collect(),
            told: Told::of(found, gate),
            json: Document::new(&Answer { found, gate }).text()?,
        })
    }
}

/// The result of comparing a run with normal runs.
#[derive(Serialize, JsonSchema)]
pub struct Answer<'a> {
    #[serde(flatten)]
    found: &'a Comparison,
    /// What the gate found. Only in `baseline check`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Gate>,
}

/// The place of an answer in the cache.
#[derive(Debug)]
pub struct Kept {
    cache: Cache,
    name: String,
}

impl Kept {
    /// That of the answer to `words` about these runs; `None` where nothing can be kept, or a run cannot be read.
    pub fn of(runs: &[&Path], words: &str) -> Option<Self> {
        let own = fs::metadata("/proc/self/exe").ok()?;
        let maker = format!(
            "{}-{:x}-{:x}-{:x}",
            env!("CARGO_PKG_VERSION"),
            own.len(),
            own.mtime(),
            own.mtime_nsec()
        );
        Some(Self {
            cache: Cache::of("compare", &maker)?,
            name: name(runs, words).ok()?,
        })
    }

    /// The answer, if it was kept and is whole.
    pub fn find(&self) -> Option<Entry> {
        let text = self.cache.note(&self.name)?;
        let (check, text) = text.split_once('\n')?;
        if check != digest(text) {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// Keeps an answer, unless the runs changed meanwhile.
    pub fn keep(&self, runs: &[&Path], words: &str, entry: &Entry) {
        if let Ok(text) = serde_json::to_string(entry)
            && text.len() <= MOST
            && name(runs, words).is_ok_and(|name| name == self.name)
        {
            let text = format!("{}\n{text}", digest(&text));
            self.cache.keep(&self.name, text.as_bytes());
            self.cache.trim();
        }
    }
}

fn name(runs: &[&Path], words: &str) -> io::Result<String> {
    let mut hasher = Hasher128::new();
    hasher.bytes(words.as_bytes());
    hasher.bytes(&fs::read("/proc/sys/kernel/hostname")?);
    for run in runs {
        hasher.bytes(run.as_os_str().as_bytes());
        hash_directory(run, DEPTH, &mut hasher)?;
    }
    Ok(format!("{:032x}", hasher.finish()))
}

fn digest(text: &str) -> String {
    let mut hasher = Hasher128::new();
    hasher.bytes(text.as_bytes());
    format!("{:032x}", hasher.finish())
}

/// Adds the names in a directory, in order, and what the files hold.
fn hash_directory(directory: &Path, depth: usize, hasher: &mut Hasher128) -> io::Result<()> {
    let mut entries = fs::read_dir(directory)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    hasher.number(entries.len() as u64);
    for entry in entries {
        hasher.bytes(entry.file_name().as_bytes());
        let path = entry.path();
        let found = fs::metadata(&path)?;
        if found.is_dir() && depth > 1 {
            hash_directory(&path, depth - 1, hasher)?;
        } else if found.is_file() {
            hash_file(&path, hasher)?;
        }
    }
    Ok(())
}

fn hash_file(path: &Path, hasher: &mut Hasher128) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let mut filled = 0;
        while filled < buffer.len() {
            match file.read(&mut buffer[filled..])? {
                0 => break,
                more => filled += more,
            }
        }
        // With its length, so that the pieces are no other file's; the last one is not full.
        hasher.bytes(&buffer[..filled]);
        if filled < buffer.len() {
            return Ok(());
        }
    }
}
