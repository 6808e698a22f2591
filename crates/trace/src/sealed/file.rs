//! A sealed file: opened and checked at once, its trees read when somebody asks for events, its processes when somebody
//! takes them, one after the other.

use super::differences::Told;
use super::record::{Take, decoded};
use super::tree::Tree;
use crate::container::{Finding, Kept, Residue, without_steps};
use crate::model::Frame;
use crate::stream::Growing;
use lockstep_format::bytes::u32_at;
use lockstep_format::process::{EXTENT, PAGE};
use lockstep_format::sealed::bits::{Broken, Reader};
use lockstep_format::sealed::grammar::{Grammar, label};
use lockstep_format::sealed::{self, Header, form, section};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// What a reader makes of what it is told, in bytes: a few bytes of a file may tell of very many.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Made {
    of_process: u64,
    of_all: u64,
    lasting: u64,
}

impl Made {
    /// Of one process: it is in memory as a whole.
    const MOST_OF_PROCESS: u64 = 1 << 29;
    /// Of all, one after the other: they take time, not memory.
    const MOST: u64 = 1 << 35;
    /// Of what stays in memory as long as the run is open, streams not counted.
    const MOST_LASTING: u64 = 1 << 29;

    fn add(&mut self, bytes: u64) -> Result<(), Broken> {
        self.of_process = self.of_process.saturating_add(bytes);
        self.of_all = self.of_all.saturating_add(bytes);
        if self.of_process > Self::MOST_OF_PROCESS {
            return Err(Broken::Above("512 MiB for a process"));
        }
        if self.of_all > Self::MOST {
            return Err(Broken::Above("32 GiB for all processes"));
        }
        Ok(())
    }

    /// So many things that stay.
    fn keep<T>(&mut self, count: u64, bytes_beside: usize) -> Result<(), Broken> {
        let each = (size_of::<T>() + bytes_beside) as u64;
        self.lasting = self.lasting.saturating_add(count.saturating_mul(each));
        if self.lasting > Self::MOST_LASTING {
            return Err(Broken::Above("512 MiB of findings and open calls"));
        }
        Ok(())
    }
}

/// A function as a sealed file names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// Its image.
    pub image: String,
    /// Its name in the symbol table.
    pub linkage: String,
    /// Whether one symbol was its call and its return.
    pub leaf: bool,
}

/// An open call at the end, and how many like it come in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpenRun {
    pub name: u32,
    pub handed_over: bool,
    /// File and line, where they are known.
    pub called_at: Option<(String, u32)>,
    pub times: u64,
}

/// What a sealed file tells of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SealedThread {
    /// Its index in the process file.
    pub index: u32,
    pub root: u32,
    pub events: u64,
    pub calls: u64,
    pub dropped: u64,
    pub bytes: u64,
    pub unverified: u64,
    pub committing: bool,
    pub ran_main: bool,
    /// 1 + name.
    pub open_leaf: u32,
    pub damage: Vec<String>,
    pub open: Vec<OpenRun>,
    pub strays: Vec<u64>,
}

/// What a sealed file tells of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct SealedProcess {
    pub file_name: String,
    pub findings: Vec<Finding>,
    /// Symbols that no image had.
    pub strays: Vec<u32>,
    pub residue: Residue,
    pub threads: Vec<SealedThread>,
    /// Bytes that it has as a process file.
    pub made: u64,
}

/// The file before this one in a shared store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    pub path: PathBuf,
    /// Check of its header.
    pub check: u32,
}

/// A sealed file, its text read.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub path: PathBuf,
    pub header: Header,
    pub check: u32,
    /// All names, those of the base first.
    pub names: Vec<Name>,
    base: Option<Arc<Self>>,
    bytes: Arc<crate::map::Mapped>,
    nodes: Range<usize>,
    raw: Range<usize>,
    threads: Range<usize>,
    tree: OnceLock<Result<Tree, String>>,
}

/// How many files may follow each other in a store.
const MOST_BASES: usize = 10_000;

impl Sealed {
    /// Checks a file and reads its names; and those of the files that it builds on.
    ///
    /// # Errors
    /// In words, what was expected, what was found, and where.
    pub fn open(path: &Path, bytes: crate::map::Mapped) -> Result<Self, String> {
        let mut chain = vec![Self::open_one(path, bytes)?];
        while let Some((here, Some(base))) = chain.last().map(|(here, base)| (here, base.clone())) {
            if chain.len() > MOST_BASES {
                return Err(format!("expected at most {MOST_BASES} files, found more"));
            }
            let beside = here
                .path
                .parent()
                .unwrap_or(Path::new("."))
                .join(&base.path);
            let missing = |found: &str| {
                format!(
                    "expected the store that it refers to at {}, found {found}",
                    beside.display()
                )
            };
            let file = crate::map::map_path(&beside).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => missing("nothing"),
                _ => missing(&error.to_string()),
            })?;
            let next = Self::open_one(&beside, file)
                .map_err(|text| format!("{}: {text}", beside.display()))?;
            if next.0.check != base.check {
                return Err(missing(&format!(
                    "another file (check {:08x} instead of {:08x})",
                    next.0.check, base.check
                )));
            }
            chain.push(next);
        }
        let mut whole: Option<Self> = None;
        while let Some((mut next, _)) = chain.pop() {
            if let Some(base) = whole.take() {
                let before = base.header.base_nodes.saturating_add(base.header.nodes);
                if next.header.base_nodes != before {
                    return Err(format!(
                        "byte {}: expected {before} nodes in the store, found {}",
                        sealed::header::BASE_NODES,
                        next.header.base_nodes
                    ));
                }
                let own = std::mem::take(&mut next.names);
                next.names.clone_from(&base.names);
                next.names.extend(own);
                next.base = Some(Arc::new(base));
            } else if next.header.base_nodes > 0 {
                return Err(format!(
                    "byte {}: expected a store to build on, found none",
                    sealed::header::BASE_NODES
                ));
            }
            whole = Some(next);
        }
        let whole = whole.ok_or_else(|| "expected a file, found none".to_owned())?;
        Ok(whole)
    }

    /// What it tells of processes.
    ///
    /// # Errors
    /// Where the section cannot be read; and each process where it does not hold, which is the last then.
    pub fn processes(&self) -> Result<Processes<'_>, String> {
        let section = self.bytes.bytes().get(self.threads.clone());
        let text = decoded(section.unwrap_or(&[]));
        let text = text.map_err(|broken| self.no_threads(broken))?;
        let mut rest = Take(&text);
        let left = rest.count().map_err(|broken| self.no_threads(broken))?;
        Ok(Processes {
            file: self,
            at: text.len() - rest.0.len(),
            text,
            raw: Take(self.bytes.bytes().get(self.raw.clone()).unwrap_or(&[])),
            left,
            made: Made::default(),
            told: Told::default(),
        })
    }

    fn no_threads(&self, broken: Broken) -> String {
        let at = self.threads.start;
        format!("byte {at}: expected threads, found {broken}")
    }

    /// What threads name must be there.
    fn check_references(&self, process: &SealedProcess) -> Result<(), Broken> {
        let names = self.names.len() as u64;
        for thread in &process.threads {
            let is_named = thread.open.iter().all(|run| u64::from(run.name) < names)
                && u64::from(thread.open_leaf) <= names;
            if !is_named {
                return Err(Broken::Nothing("name"));
            }
            if thread.root >= self.nodes() {
                return Err(Broken::Nothing("node"));
            }
        }
        Ok(())
    }

    fn open_one(path: &Path, bytes: crate::map::Mapped) -> Result<(Self, Option<Base>), String> {
        let (header, sections) = sealed::open(bytes.bytes()).map_err(|fault| fault.to_string())?;
        let part = |index: usize| bytes.bytes().get(sections[index].clone()).unwrap_or(&[]);
        let wrong = |index: usize, error: Broken| {
            format!(
                "byte {}: expected {}, found {error}",
                sections[index].start,
                section::NAMES[index]
            )
        };
        let text = |index: usize| decoded(part(index)).map_err(|error| wrong(index, error));
        let base = base(&text(section::BASE)?).map_err(|error| wrong(section::BASE, error))?;
        let names =
            names(&text(section::FUNCTIONS)?).map_err(|error| wrong(section::FUNCTIONS, error))?;
        let check = u32_at(bytes.bytes(), sealed::header::CHECK).unwrap_or(0);
        let file = Self {
            path: path.to_owned(),
            header,
            check,
            names,
            base: None,
            nodes: sections[section::NODES].clone(),
            raw: sections[section::RAW].clone(),
            threads: sections[section::THREADS].clone(),
            bytes: Arc::new(bytes),
            tree: OnceLock::new(),
        };
        Ok((file, base))
    }

    /// Its trees, and those of the files that it builds on; read at the first call.
    pub fn tree(&self) -> Result<&Tree, &str> {
        self.tree
            .get_or_init(|| self.grammar().map(|grammar| Tree::new(&grammar)))
            .as_ref()
            .map_err(String::as_str)
    }

    /// What was told so far, so that one can go on.
    pub fn grammar(&self) -> Result<Grammar<Growing>, String> {
        let mut files = vec![self];
        while let Some(base) = files.last().and_then(|file| file.base.as_deref()) {
            files.push(base);
        }
        let slots = files.last().map_or(0, |first| first.header.slots);
        let mut grammar = Grammar::new(slots);
        for file in files.iter().rev() {
            file.read(&mut grammar).map_err(|error| {
                let start = file.nodes.start;
                format!("byte {start}: expected nodes, found {error}")
            })?;
        }
        let is_named = (0..grammar.len()).all(|node| {
            let label = grammar.label(node);
            label::kind(label) != label::CALL
                || ((label >> label::NAME) as usize) < self.names.len()
        });
        if !is_named {
            let start = self.nodes.start;
            return Err(format!(
                "byte {start}: expected nodes with names, found one without"
            ));
        }
        Ok(grammar)
    }

    fn read(&self, grammar: &mut Grammar<Growing>) -> Result<(), Broken> {
        let mut source = self.bytes.bytes().get(self.nodes.clone()).unwrap_or(&[]);
        let mut reader = Reader::new(&mut source);
        let end = grammar.elements() + self.header.elements;
        for _ in 0..self.header.trees {
            let left = (end + 1).saturating_sub(grammar.elements());
            grammar.read(&mut reader, left)?;
        }
        let nodes = self.header.base_nodes.saturating_add(self.header.nodes);
        if grammar.len() != nodes || grammar.elements() != end {
            return Err(Broken::Nothing("count of nodes"));
        }
        Ok(())
    }

    /// How many of the names stand in the files that it builds on.
    pub fn shared_names(&self) -> usize {
        self.base.as_ref().map_or(0, |base| base.names.len())
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        self.header.base_nodes.saturating_add(self.header.nodes)
    }
}

fn base(text: &[u8]) -> Result<Option<Base>, Broken> {
    if text.is_empty() {
        return Ok(None);
    }
    let mut take = Take(text);
    let path = PathBuf::from(take.text()?);
    let check = take.small()?;
    Ok(Some(Base { path, check }))
}

fn names(text: &[u8]) -> Result<Vec<Name>, Broken> {
    let mut take = Take(text);
    let count = take.count()?;
    let mut names: Vec<Name> = Vec::new();
    for _ in 0..count {
        names.push(Name {
            image: take.text()?,
            linkage: take.text()?,
            leaf: take.number()? != 0,
        });
    }
    Ok(names)
}

/// The processes of a sealed file, one after the other.
#[derive(Debug)]
pub(crate) struct Processes<'a> {
    file: &'a Sealed,
    /// What the section tells, and where in it the next one begins.
    text: Vec<u8>,
    at: usize,
    raw: Take<'a>,
    left: usize,
    made: Made,
    told: Told,
}

impl Iterator for Processes<'_> {
    type Item = Result<SealedProcess, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let process = self.process();
        Some(process.map_err(|broken| {
            self.left = 0;
            self.file.no_threads(broken)
        }))
    }
}

impl Processes<'_> {
    fn process(&mut self) -> Result<SealedProcess, Broken> {
        let made = &mut self.made;
        made.of_process = 0;
        let mut rest = Take(self.text.get(self.at..).unwrap_or(&[]));
        let record = self.told.take(&mut rest)?;
        self.at = self.text.len() - rest.0.len();
        made.add(record.len() as u64)?;
        let take = &mut Take(record);
        let mut process = SealedProcess {
            file_name: take.text()?,
            ..SealedProcess::default()
        };
        for _ in 0..take.count()? {
            let (at, text) = (take.number()?, take.text()?);
            made.keep::<Finding>(1, text.len())?;
            process.findings.push(Finding { at, text });
        }
        for _ in 0..take.count()? {
            made.keep::<u32>(1, 0)?;
            process.strays.push(take.small()?);
        }
        process.residue.header = take.sparse(PAGE as usize)?;
        for _ in 0..take.count()? {
            let mut chunk = Kept {
                kind: take.small()?,
                thread: take.small()?,
                sequence: take.small()?,
                used: take.small()?,
                payload_check: take.small()?,
                payload: Vec::new(),
            };
            chunk.payload = match take.number()? {
                form::PLAIN => take.sparse(EXTENT as usize)?,
                form::RAW => self.raw.sparse(EXTENT as usize)?,
                form::STEPS => without_steps(&take.sparse(EXTENT as usize)?),
                _ => return Err(Broken::Nothing("form of a payload")),
            };
            if chunk.length() > EXTENT {
                return Err(Broken::TooMuch);
            }
            made.add(size_of::<Kept>() as u64 + chunk.length())?;
            process.residue.chunks.push(chunk);
        }
        process.residue.toggle_checks();
        for _ in 0..take.count()? {
            process.threads.push(thread(take, made)?);
        }
        process.made = made.of_process;
        self.file.check_references(&process)?;
        Ok(process)
    }
}

fn thread(take: &mut Take<'_>, made: &mut Made) -> Result<SealedThread, Broken> {
    made.keep::<SealedThread>(1, 0)?;
    let mut thread = SealedThread {
        index: take.small()?,
        root: take.small()?,
        events: take.number()?,
        calls: take.number()?,
        dropped: take.number()?,
        bytes: take.number()?,
        unverified: take.number()?,
        committing: take.number()? != 0,
        ran_main: take.number()? != 0,
        open_leaf: take.small()?,
        ..SealedThread::default()
    };
    for _ in 0..take.count()? {
        let damage = take.text()?;
        made.keep::<String>(1, damage.len())?;
        thread.damage.push(damage);
    }
    for _ in 0..take.count()? {
        let name = take.small()?;
        let flags = take.number()?;
        let called_at = if flags & 2 != 0 {
            Some((take.text()?, take.small()?))
        } else {
            None
        };
        let times = take.number()?;
        // Each call is a frame of the open thread.
        let file = called_at.as_ref().map_or(0, |(file, _)| file.len());
        made.keep::<OpenRun>(1, file)?;
        made.keep::<Frame>(times, file)?;
        thread.open.push(OpenRun {
            name,
            handed_over: flags & 1 != 0,
            called_at,
            times,
        });
    }
    // A stack of more calls than there are events is none.
    let open = thread
        .open
        .iter()
        .fold(0u64, |sum, run| sum.saturating_add(run.times));
    if open > thread.events {
        return Err(Broken::TooMuch);
    }
    let mut at = 0u64;
    for _ in 0..take.count()? {
        made.keep::<u64>(1, 0)?;
        at = at.saturating_add(take.number()?);
        thread.strays.push(at);
    }
    Ok(thread)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::fuzz::{self, record};
    use super::super::record::Bytes;
    use super::super::seal::none;
    use super::*;
    use crate::map::Mapped;

    /// A file without anything.
    fn empty() -> Sealed {
        opened(fuzz::file(&none()))
    }

    fn opened(bytes: Vec<u8>) -> Sealed {
        Sealed::open(Path::new("sealed"), Mapped::Memory(bytes)).unwrap()
    }

    /// So many processes, each as the first one.
    fn processes<'a>(file: &'a Sealed, record: &[u8], count: usize) -> Processes<'a> {
        let mut text = Bytes::default();
        let length = record.len() as u64;
        for own in [record].into_iter().chain(vec![&[][..]; count - 1]) {
            text.number(length);
            text.number(length - own.len() as u64);
            text.bytes(own);
            text.number(0);
        }
        let mut processes = file.processes().unwrap();
        (processes.text, processes.at, processes.left) = (text.0, 0, count);
        processes
    }

    #[test]
    fn ranks_by_the_thousand_have_streams_beside_their_events() {
        let file = empty();
        let record = record(1, &vec![1; 1 << 16], 0);
        let mut count = 0;
        for process in processes(&file, &record, 9_000) {
            assert_eq!(process.unwrap().residue.chunks[0].payload.len(), 1 << 16);
            count += 1;
        }
        assert_eq!(count, 9_000);
    }

    #[test]
    fn a_file_of_few_bytes_is_refused_or_taken_in_pieces() {
        let [many, alike] = fuzz::hostile(10_000, 300);
        assert!(many.len() < 10_000 && alike.len() < 1_000);
        let last = |bytes| opened(bytes).processes().unwrap().last().unwrap();
        let text = last(many).map(|it| it.made).unwrap_err();
        assert!(text.contains("512 MiB for a process"), "{text}");
        let file = opened(alike);
        let made = file.processes().unwrap().map(|it| it.unwrap().made);
        assert_eq!(made.filter(|it| *it > 1 << 20).count(), 300);
    }

    #[test]
    fn few_bytes_are_not_made_many() {
        let file = empty();
        let found = |record: &[u8], count| {
            let last = processes(&file, record, count).last();
            last.unwrap().map(|it| it.made).unwrap_err()
        };
        let text = found(&record(10_000, &[], 1 << 19), 1);
        assert!(text.contains("512 MiB for a process"), "{text}");
        let text = found(&record(2, &[], 1 << 19), 40_000);
        assert!(text.contains("32 GiB for all processes"), "{text}");
        let mut findings = Bytes::default();
        findings.bytes(b"node-1-1-0.lockstep");
        findings.number(20_000_000);
        findings.0.resize(findings.0.len() + 40_000_000, 0);
        let text = found(&findings.0, 1);
        assert!(text.contains("512 MiB of findings"), "{text}");
    }
}
