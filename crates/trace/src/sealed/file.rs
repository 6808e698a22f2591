//! A sealed file: opened and checked at once, its trees read when somebody asks for events.

use super::differences::Told;
use super::record::{Take, decoded};
use super::tree::Tree;
use crate::container::{Finding, Kept, Residue, absolute};
use crate::stream::Growing;
use lockstep_format::bytes::u32_at;
use lockstep_format::process::{EXTENT, PAGE};
use lockstep_format::sealed::bits::{Broken, Reader};
use lockstep_format::sealed::grammar::{Grammar, label};
use lockstep_format::sealed::{self, Header, section};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Most bytes of what is kept of process files, and most bytes of the records that tell it, all told.
const MOST_KEPT: u64 = 1 << 29;

/// How a chunk's payload is told.
pub(super) mod form {
    /// As it is.
    pub const PLAIN: u64 = 0;
    /// As it is, in the section raw.
    pub const RAW: u64 = 1;
    /// Facts with addresses relative to each other: [`crate::container::relative`].
    pub const RELATIVE: u64 = 2;
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
    /// Where the section of threads begins.
    threads: usize,
    /// What it tells.
    text: Vec<u8>,
    tree: OnceLock<Result<Tree, String>>,
}

/// How many files may follow each other in a store.
const MOST_BASES: usize = 10_000;

impl Sealed {
    /// Checks a file and reads its text; and that of the files that it builds on.
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
        for process in whole.processes() {
            let checked = process.and_then(|process| whole.check_references(&process));
            checked.map_err(|text| {
                let at = whole.threads;
                format!("byte {at}: expected threads, found {text}")
            })?;
        }
        Ok(whole)
    }

    /// What it tells of processes, one after the other: of a file that was opened, all of them.
    pub fn processes(&self) -> impl Iterator<Item = Result<SealedProcess, Broken>> {
        let mut processes = Processes {
            text: Take(&self.text),
            raw: Take(self.bytes.bytes().get(self.raw.clone()).unwrap_or(&[])),
            kept: 0,
            recorded: 0,
            told: Told::default(),
        };
        let (count, broken) = match processes.text.count() {
            Ok(count) => (count, None),
            Err(broken) => (0, Some(broken)),
        };
        let whole = (0..count).map(move |_| processes.process());
        broken.map(Err).into_iter().chain(whole)
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
        let threads = text(section::THREADS)?;
        let check = u32_at(bytes.bytes(), sealed::header::CHECK).unwrap_or(0);
        let file = Self {
            path: path.to_owned(),
            header,
            check,
            names,
            base: None,
            nodes: sections[section::NODES].clone(),
            raw: sections[section::RAW].clone(),
            text: threads,
            threads: sections[section::THREADS].start,
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

/// The processes that are told by a section.
struct Processes<'a> {
    text: Take<'a>,
    raw: Take<'a>,
    /// Bytes of what was kept of those so far, and of their records.
    kept: u64,
    recorded: u64,
    told: Told,
}

impl Processes<'_> {
    fn process(&mut self) -> Result<SealedProcess, Broken> {
        let record = self.told.take(&mut self.text)?;
        self.recorded += record.len() as u64;
        if self.recorded > MOST_KEPT {
            return Err(Broken::TooMuch);
        }
        let take = &mut Take(record);
        let mut process = SealedProcess {
            file_name: take.text()?,
            ..SealedProcess::default()
        };
        for _ in 0..take.count()? {
            process.findings.push(Finding {
                at: take.number()?,
                text: take.text()?,
            });
        }
        for _ in 0..take.count()? {
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
                form::RELATIVE => absolute(&take.sparse(EXTENT as usize)?),
                _ => return Err(Broken::Nothing("form of a payload")),
            };
            self.kept += chunk.payload.len() as u64;
            if self.kept > MOST_KEPT || chunk.payload.len() as u64 > EXTENT {
                return Err(Broken::TooMuch);
            }
            process.residue.chunks.push(chunk);
        }
        process.residue.toggle_checks();
        for _ in 0..take.count()? {
            process.threads.push(thread(take)?);
        }
        Ok(process)
    }
}

fn thread(take: &mut Take<'_>) -> Result<SealedThread, Broken> {
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
        thread.damage.push(take.text()?);
    }
    for _ in 0..take.count()? {
        let name = take.small()?;
        let flags = take.number()?;
        let called_at = if flags & 2 != 0 {
            Some((take.text()?, take.small()?))
        } else {
            None
        };
        thread.open.push(OpenRun {
            name,
            handed_over: flags & 1 != 0,
            called_at,
            times: take.number()?,
        });
    }
    // A stack of more calls than there are events is none.
    let open = thread
        .open
        .iter()
        .fold(0u64, |sum, run| sum.saturating_add(run.times));
    if open > thread.events || open > MOST_KEPT / 64 {
        return Err(Broken::TooMuch);
    }
    let mut at = 0u64;
    for _ in 0..take.count()? {
        at = at.saturating_add(take.number()?);
        thread.strays.push(at);
    }
    Ok(thread)
}
