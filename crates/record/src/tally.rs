//! What a process file holds, counted without decoding; and cutting off what it does not use.

use crate::buffer;
use crate::own;
use crate::pack;
use crate::process::FileName;
use lockstep_format::bytes::{u32_at, u64_at};
use lockstep_format::check::crc32c;
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::pack::is_pack;
use lockstep_format::process::{
    MAGIC, PAGE, chunk, extent_end, fact, header, kind, loss, state, thread,
};
use lockstep_format::symbol::from_staging_word;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Sums over process files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub processes: u64,
    pub events: u64,
    pub lost: u64,
    /// Of these, because of the bound of the run's size.
    pub too_many: u64,
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.processes += other.processes;
        self.events += other.events;
        self.lost += other.lost;
        self.too_many += other.too_many;
        self.bytes += other.bytes;
    }
}

/// Where a process file is: a file, or a range of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub path: PathBuf,
    range: Option<Range<u64>>,
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self { path, range: None }
    }
}

/// An image of a process.
pub(crate) struct ImageFact {
    pub path: PathBuf,
    /// File name of its plan.
    pub plan: String,
    /// Whether own functions of it are recorded.
    pub is_recorded: bool,
}

/// A process file, read through its chunk headers.
pub(crate) struct ProcessFile {
    file: File,
    /// Where it begins in the file.
    start: u64,
    size: u64,
    head: Vec<u8>,
    /// The chunks, in order.
    chunks: OnceCell<Vec<Chunk>>,
}

/// A chunk of a process file.
struct Chunk {
    at: u64,
    kind: u32,
    length: u64,
    /// Bytes of facts in use.
    used: u32,
}

impl ProcessFile {
    pub(crate) fn open(place: &Place) -> io::Result<Option<Self>> {
        let file = own::open(&place.path)?;
        let range = match &place.range {
            Some(range) => range.clone(),
            None => 0..file.metadata()?.len(),
        };
        let (start, size) = (range.start, range.end - range.start);
        let mut head = vec![0; PAGE as usize];
        if size < PAGE || file.read_exact_at(&mut head, start).is_err() || !head.starts_with(&MAGIC)
        {
            return Ok(None);
        }
        Ok(Some(Self {
            file,
            start,
            size,
            head,
            chunks: OnceCell::new(),
        }))
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> bool {
        self.file.read_exact_at(bytes, self.start + at).is_ok()
    }

    /// The chunks as they are when they are first asked for: thousands of threads have as many, and each is a system call.
    fn chunks(&self, kind: u32) -> impl Iterator<Item = &Chunk> {
        let chunks = self.chunks.get_or_init(|| self.walk().collect());
        chunks.iter().filter(move |chunk| chunk.kind == kind)
    }

    fn walk(&self) -> impl Iterator<Item = Chunk> + '_ {
        let mut at = PAGE;
        std::iter::from_fn(move || {
            while at < self.size {
                let mut head = [0u8; chunk::SIZE];
                let read = self.read(&mut head, at);
                let field = |offset| u32_at(&head, offset).unwrap_or(0);
                let length = u64::from(field(chunk::LENGTH));
                let whole = read
                    && field(chunk::MAGIC) == chunk::MAGIC_VALUE
                    && field(chunk::CHECK) == crc32c(&head[..chunk::CHECK])
                    && length >= PAGE
                    && at + length <= extent_end(at);
                if whole {
                    let found = Chunk {
                        at,
                        kind: field(chunk::KIND),
                        length,
                        used: field(chunk::USED),
                    };
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
        let chunks = self.chunks.get_or_init(|| self.walk().collect());
        chunks.last().map_or(PAGE, |last| last.at + last.length)
    }

    /// What the process told of itself: a word and its values, each.
    fn facts(&self) -> Vec<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        for chunk in self.chunks(kind::FACTS) {
            let most = chunk.length - chunk::SIZE as u64;
            let mut text = vec![0; u64::from(chunk.used).min(most) as usize];
            if !self.read(&mut text, chunk.at + chunk::SIZE as u64) {
                continue;
            }
            let lines = text.split(|byte| *byte == b'\n');
            found.extend(lines.map(|line| {
                let values = line.split(|byte| *byte == b'\t');
                values
                    .map(|value| fact::unescaped(value).collect())
                    .collect()
            }));
        }
        found
    }

    /// The images that the process has, or had.
    pub(crate) fn images(&self) -> Vec<ImageFact> {
        let image = |values: Vec<Vec<u8>>| match &values[..] {
            [word, path, plan, _, _, count, ..] if word == fact::IMAGE.as_bytes() => {
                Some(ImageFact {
                    path: OsString::from_vec(path.clone()).into(),
                    plan: String::from_utf8(plan.clone()).ok()?,
                    is_recorded: count != b"0",
                })
            }
            _ => None,
        };
        self.facts().into_iter().filter_map(image).collect()
    }

    /// Which rank of which job it is, if it is one.
    fn rank(&self) -> Option<(Job, u32)> {
        let facts = self.facts();
        let variable = |name: &str| {
            facts.iter().find_map(|values| match &values[..] {
                [word, its_name, value] if word == fact::ENVIRONMENT.as_bytes() => {
                    (its_name == name.as_bytes()).then(|| String::from_utf8_lossy(value))
                }
                _ => None,
            })
        };
        let number = |name: &str| variable(name)?.parse::<u32>().ok();
        let launcher = LAUNCHERS.iter().find(|it| number(it.rank).is_some())?;
        let tokens = launcher.token.iter().filter_map(|name| variable(name));
        let token = tokens.collect::<Vec<_>>().join("+");
        Some(((number(launcher.size)?, token), number(launcher.rank)?))
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally {
            processes: 1,
            ..Tally::default()
        };
        for counter in 0..loss::NAMES.len() {
            // Sites left alone are functions, not events.
            if counter != loss::UNEXPECTED_TEXT {
                let lost = u64_at(&self.head, header::LOSSES + 8 * counter).unwrap_or(0);
                tally.lost += lost;
                if counter == loss::SIZE_LIMIT {
                    tally.too_many += lost;
                }
            }
        }
        let mut bytes = vec![0; thread::MIRROR];
        for chunk in self.chunks(kind::THREAD) {
            // Of most threads few events wait.
            let (first, rest) = bytes.split_at_mut(PAGE as usize);
            if !self.read(first, chunk.at) {
                continue;
            }
            let is_full = |last: &[u8]| u64_at(last, PAGE as usize - 8) != Some(0);
            let read = !is_full(first) || self.read(rest, chunk.at + PAGE);
            if !read {
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

/// The process files of a run, those in packs and on their way into it among them.
pub(crate) fn files(run: &Path) -> Vec<(FileName, Place)> {
    let mut folders = vec![run.join("processes")];
    folders.extend(buffer::places(run));
    let mut found: Vec<(FileName, Place)> = Vec::new();
    let mut packs = Vec::new();
    let mut names: HashSet<OsString> = HashSet::new();
    let entries = folders.into_iter().filter_map(|it| fs::read_dir(it).ok());
    for entry in entries.flatten().flatten() {
        let name = entry.file_name();
        let Some(text) = name.to_str() else { continue };
        if is_pack(text) {
            packs.push(entry.path());
        } else if let Some(process) = FileName::parse(text) {
            found.push((process, entry.path().into()));
            names.insert(name);
        }
    }
    for path in packs {
        for (name, range) in pack::members(&path) {
            if let Some(process) = FileName::parse(&name)
                && names.insert(name.into())
            {
                let range = Some(range);
                let path = path.clone();
                found.push((process, Place { path, range }));
            }
        }
    }
    found
}

/// Those that can be read.
fn opened(run: &Path) -> impl Iterator<Item = ProcessFile> {
    let places = files(run).into_iter();
    places.filter_map(|(_, place)| ProcessFile::open(&place).ok()?)
}

/// Paths of the images whose own functions were recorded.
pub(crate) fn recorded_images(run: &Path) -> BTreeSet<PathBuf> {
    let images = opened(run).flat_map(|file| file.images());
    images
        .filter(|image| image.is_recorded)
        .map(|image| image.path)
        .collect()
}

/// Ranks of which no process left a file, though others of their job did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// How many ranks the job has.
    pub expected: u32,
    /// Which of them are missing.
    pub ranks: Vec<u32>,
}

/// A job: how many ranks it has, and what tells it from others.
type Job = (u32, String);

/// Where ranks of a job left files and others did not.
fn missing(jobs: BTreeMap<Job, BTreeSet<u32>>) -> Vec<Missing> {
    let missing = jobs.into_iter().map(|((expected, _), found)| Missing {
        expected,
        // What a variable says is a number, and no promise.
        ranks: (0..expected.min(1 << 20))
            .filter(|rank| !found.contains(rank))
            .collect(),
    });
    missing.filter(|it| !it.ranks.is_empty()).collect()
}

/// Sums up the run.
pub(crate) fn count(run: &Path) -> Tally {
    let mut sum = Tally::default();
    opened(run).for_each(|file| sum.add(&file.tally()));
    sum
}

/// Sums up a run that is over, and cuts its files: what there is to count, and which ranks are missing.
pub(crate) fn close(run: &Path) -> (Tally, Vec<Missing>) {
    let mut sum = Tally::default();
    let mut jobs: BTreeMap<Job, BTreeSet<u32>> = BTreeMap::new();
    for (name, place) in files(run) {
        if let Some(file) = trimmed(&name, &place) {
            sum.add(&file.tally());
            if let Some((job, rank)) = file.rank() {
                jobs.entry(job).or_default().insert(rank);
            }
        }
    }
    (sum, missing(jobs))
}

/// Longer files keep the rest of their last extent, which is less than a sixteenth of them.
const MOST_CUT: u64 = 16 << 20;

/// Cuts the files of some processes, as far as these ended.
pub(crate) fn trim(run: &Path, chosen: impl Fn(&FileName) -> bool) {
    for (name, place) in files(run).iter().filter(|(name, _)| chosen(name)) {
        let _ = trimmed(name, place);
    }
}

/// The file of a process, which is cut to what it uses if that ended; a living one goes on writing to its. What cannot be cut stays as
/// it is.
fn trimmed(name: &FileName, place: &Place) -> Option<ProcessFile> {
    // Before anything is read of it.
    let is_over = place.range.is_none() && !name.is_alive();
    let file = ProcessFile::open(place).ok()??;
    if is_over && file.used() < file.size && file.used() <= MOST_CUT {
        let _ = cut(&place.path, file.used());
    }
    Some(file)
}

/// Leaves the first `length` bytes of a file. A copy takes its place: a reader (a watcher, `progress` on a running run) may have
/// the file mapped, and would die where it ends of a sudden.
fn cut(path: &Path, length: u64) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".cut-{}", std::process::id()));
    let shorten = || {
        let mut whole = own::open(path)?.take(length);
        io::copy(&mut whole, &mut own::create_draft(draft.as_ref())?)?;
        fs::rename(&draft, path)
    };
    shorten().inspect_err(|_| drop(fs::remove_file(&draft)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn who_reads_a_file_that_is_cut_has_all_of_it() {
        let folder = std::env::temp_dir().join(format!("lockstep-cut-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("a.lockstep");
        fs::write(&path, [7; 3 * PAGE as usize]).expect("a file");
        let mut before = File::open(&path).expect("it opens");
        cut(&path, PAGE).expect("it is cut");
        assert_eq!(fs::read(&path).expect("it is there"), [7; PAGE as usize]);
        let mut all = Vec::new();
        before.read_to_end(&mut all).expect("it is read");
        assert_eq!(all.len(), 3 * PAGE as usize);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        // Where it cannot be, nothing is left behind.
        assert!(cut(&folder.join("none"), 1).is_err());
        fs::remove_dir_all(&folder).expect("it goes");
    }
}
