//! What a process file holds, counted without decoding; and cutting off what it does not use.

use crate::buffer;
use crate::process::FileName;
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::check::crc32c;
use lockstep_format::process::{
    MAGIC, PAGE, chunk, extent_end, fact, header, kind, loss, state, thread,
};
use lockstep_format::symbol::from_staging_word;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Sums over process files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub processes: u64,
    pub events: u64,
    pub lost: u64,
    pub bytes: u64,
}

/// A process file, read through its chunk headers.
pub(crate) struct ProcessFile {
    file: File,
    size: u64,
    head: Vec<u8>,
}

impl ProcessFile {
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut head = vec![0; PAGE as usize];
        if size < PAGE || file.read_exact_at(&mut head, 0).is_err() || !head.starts_with(&MAGIC) {
            return Ok(None);
        }
        Ok(Some(Self { file, size, head }))
    }

    /// The chunks in order: offset, kind, length, bytes of facts in use.
    fn chunks(&self) -> impl Iterator<Item = (u64, u32, u64, u32)> + '_ {
        let mut at = PAGE;
        std::iter::from_fn(move || {
            while at < self.size {
                let mut head = [0u8; chunk::SIZE];
                let read = self.file.read_exact_at(&mut head, at);
                let field = |offset| u32_at(&head, offset).unwrap_or(0);
                let length = u64::from(field(chunk::LENGTH));
                let whole = read.is_ok()
                    && field(chunk::MAGIC) == chunk::MAGIC_VALUE
                    && field(chunk::CHECK) == crc32c(&head[..chunk::CHECK])
                    && length >= PAGE
                    && at + length <= extent_end(at);
                if whole {
                    let found = (at, field(chunk::KIND), length, field(chunk::USED));
                    at += length;
                    return Some(found);
                }
                // Unused, or a slot of a ring that was emptied: chunks may follow.
                at += PAGE;
            }
            None
        })
    }

    /// Where the last chunk ends.
    pub(crate) fn used(&self) -> u64 {
        self.chunks()
            .map(|(at, _, length, _)| at + length)
            .last()
            .unwrap_or(PAGE)
    }

    /// Images whose own functions are recorded: path, and file name of the plan.
    pub(crate) fn recorded_images(&self) -> Vec<(PathBuf, String)> {
        let mut found = Vec::new();
        for (at, _, length, used) in self.chunks().filter(|chunk| chunk.1 == kind::FACTS) {
            let mut text = vec![0; (u64::from(used)).min(length - chunk::SIZE as u64) as usize];
            if self
                .file
                .read_exact_at(&mut text, at + chunk::SIZE as u64)
                .is_err()
            {
                continue;
            }
            for line in text.split(|byte| *byte == b'\n') {
                let mut values = line.split(|byte| *byte == b'\t');
                if values.next() != Some(fact::IMAGE.as_bytes()) {
                    continue;
                }
                let values: Vec<_> = values
                    .map(|value| fact::unescaped(value).collect::<Vec<u8>>())
                    .collect();
                if let [path, plan, _, _, count, ..] = &values[..]
                    && count != b"0"
                    && let Ok(plan) = String::from_utf8(plan.clone())
                {
                    found.push((OsString::from_vec(path.clone()).into(), plan));
                }
            }
        }
        found
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally {
            processes: 1,
            ..Tally::default()
        };
        for counter in 0..loss::NAMES.len() {
            // Sites left alone are functions, not events.
            if counter != loss::UNEXPECTED_TEXT {
                tally.lost += u64_at(&self.head, header::LOSSES + 8 * counter).unwrap_or(0);
            }
        }
        for (at, _, _, _) in self.chunks().filter(|chunk| chunk.1 == kind::THREAD) {
            let mut bytes = vec![0; thread::MIRROR];
            if self.file.read_exact_at(&mut bytes, at).is_err() {
                continue;
            }
            let committed = u32_at(&bytes, thread::PHASE) != Some(1);
            let base = if committed {
                thread::COMMITTED
            } else {
                thread::INTENT
            };
            tally.events += u64_at(&bytes, base + state::SYMBOLS).unwrap_or(0)
                + u64_at(&bytes, base + state::LEAVES).unwrap_or(0);
            tally.bytes += u64_at(&bytes, base + state::BYTES).unwrap_or(0)
                + u64::from(u32_at(&bytes, base + state::TAIL_LENGTH).unwrap_or(0));
            if u32_at(&bytes, thread::SEGMENT) != Some(0) {
                // It repeats the calls that were open.
                let repeated = u32_at(&bytes, thread::INHERITED).unwrap_or(0);
                tally.events = tally.events.saturating_sub(u64::from(repeated));
            }
            if committed {
                let staged = bytes[thread::STAGING..]
                    .chunks_exact(8)
                    .map_while(|word| from_staging_word(u64_at(word, 0)?));
                for event in staged {
                    tally.events += 1 + u64::from(event.is_leaf);
                    tally.bytes += 8;
                }
            }
        }
        tally
    }
}

/// The process files of a run, those on their way into it among them.
pub(crate) fn files(run: &Path) -> Vec<(FileName, PathBuf)> {
    let mut folders = vec![run.join("processes")];
    folders.extend(buffer::places(run));
    folders
        .into_iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|entry| Some((FileName::parse(entry.file_name().to_str()?)?, entry.path())))
        .collect()
}

/// Paths of the images whose own functions were recorded.
pub(crate) fn recorded_images(run: &Path) -> BTreeSet<PathBuf> {
    let mut images = BTreeSet::new();
    for (_, path) in files(run) {
        if let Ok(Some(file)) = ProcessFile::open(&path) {
            images.extend(file.recorded_images().into_iter().map(|(path, _)| path));
        }
    }
    images
}

/// Sums up the run.
pub(crate) fn count(run: &Path) -> Tally {
    let mut sum = Tally::default();
    for (_, path) in files(run) {
        if let Ok(Some(file)) = ProcessFile::open(&path) {
            let tally = file.tally();
            sum.processes += tally.processes;
            sum.events += tally.events;
            sum.lost += tally.lost;
            sum.bytes += tally.bytes;
        }
    }
    sum
}

/// Cuts the files of processes that ended to what they use. A living process's file is mapped: cutting
/// it would end the process.
pub(crate) fn trim(run: &Path, chosen: impl Fn(&FileName) -> bool) {
    for (name, path) in files(run) {
        if !chosen(&name) || name.is_alive() {
            continue;
        }
        if let Ok(Some(file)) = ProcessFile::open(&path)
            && file.used() < file.size
            && let Ok(writable) = File::options().write(true).open(&path)
        {
            let _ = writable.set_len(file.used());
        }
    }
}
