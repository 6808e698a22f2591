//! Sealing: from an opened run and the trees of its threads to one file, in the place of the process files.
//!
//! ```text
//!  processes/*  ──┐            tell                          verify
//!  trees        ──┴─► sealed.lockstep.tmp ─► read back, compared event by event ─► sealed.lockstep ─► processes/ removed
//! ```
//! A crash leaves the process files, or the sealed file, or both, which tell the same: `sealed.lockstep` is there only
//! after all of it was read back and compared, what stands beside events too, and nothing is removed before it and its
//! directory are on the disk.

use super::SealedStream;
use super::file::{Name, Sealed};
use super::record::Bytes;
use super::tell::{Told, tell};
use super::verify::{names_in, verify, verify_kept};
use crate::map::{Mapped, map_path};
use crate::model::{EndKind, Process, Run, Thread};
use crate::open::Sealable;
use crate::stream::Stream;
use lockstep_format::check::crc32c;
use lockstep_format::sealed::{self, Header, section};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the tree of a thread is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TreeOf {
    /// Its node.
    pub root: u32,
    /// [`super::Strays`] of its events.
    pub strays: Vec<u64>,
}

/// The trees of some runs, told in one row.
#[derive(Debug, Clone, Default)]
pub struct Trees {
    /// The section.
    pub nodes: Vec<u8>,
    /// What its header tells.
    pub header: Header,
    /// All names, those of the store first.
    pub names: Vec<Name>,
    /// For each run, for each of its processes, for each thread: its tree, unless it is kept as it is.
    pub roots: Vec<Vec<Vec<Option<TreeOf>>>>,
}

/// A store that several runs share: a row of files in a directory, each of which goes on where the one before ends.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    latest: Option<(PathBuf, Sealed)>,
    files: usize,
    /// Held while it is written.
    _lock: File,
}

/// Why a run is not sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// Somebody still writes it.
    #[error("{}: expected a run that has ended, found process {process} running: nothing is changed", path.display())]
    Running {
        /// The run.
        path: PathBuf,
        /// A process of it.
        process: String,
    },
    /// It is.
    #[error("{}: expected a run that is not sealed, found one that is", path.display())]
    Sealed {
        /// The run.
        path: PathBuf,
    },
    /// What was written does not read back as what was recorded.
    #[error("{}: expected the events of {trace} as recorded, found others: nothing is changed", path.display())]
    Differs {
        /// The run.
        path: PathBuf,
        /// The trace.
        trace: String,
    },
    /// The same of what stands beside events.
    #[error("{}: expected what process {process} has beside its events as recorded, found something else: nothing is changed", path.display())]
    DiffersBeside {
        /// The run.
        path: PathBuf,
        /// The process.
        process: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of a store does not hold.
    #[error("{}: {text}", path.display())]
    Store {
        /// Which.
        path: PathBuf,
        /// What was expected and what was found.
        text: String,
    },
}

/// Bytes before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Of the process files, as long as they are.
    pub before: u64,
    /// Of the streams of events in them.
    pub streams: u64,
    /// Of the file that is in their place.
    pub after: u64,
    /// Of the trees in it, or in the store for all runs that were sealed together.
    pub trees: u64,
    /// Number of events.
    pub events: u64,
    /// Threads that are kept as they were recorded.
    pub kept: u64,
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> SealError {
    let path = path.to_owned();
    move |source| SealError::File { path, source }
}

impl Store {
    /// Opens a store, or begins one. Nobody else can write it meanwhile.
    ///
    /// # Errors
    /// Where its files cannot be read.
    pub fn open(directory: &Path) -> Result<Self, SealError> {
        fs::create_dir_all(directory).map_err(file_error(directory))?;
        let lock_path = directory.join("lock");
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(flags.bits().cast_signed())
            .open(&lock_path)
            .map_err(file_error(&lock_path))?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|error| file_error(&lock_path)(error.into()))?;
        let mut files = 0;
        while directory.join(store_file(files)).exists() {
            files += 1;
        }
        let latest = match files.checked_sub(1) {
            None => None,
            Some(last) => {
                let path = directory.join(store_file(last));
                let bytes = map_path(&path).map_err(file_error(&path))?;
                let sealed = Sealed::open(&path, bytes).map_err(|text| SealError::Store {
                    path: path.clone(),
                    text,
                })?;
                Some((path, sealed))
            }
        };
        Ok(Self {
            directory: directory.to_owned(),
            latest,
            files,
            _lock: lock,
        })
    }

    /// What it has so far: its names, its trees, and what is needed to go on.
    ///
    /// # Errors
    /// Where they cannot be read.
    #[allow(clippy::type_complexity)]
    pub fn content(
        &self,
    ) -> Result<
        Option<(
            &[Name],
            &super::Tree,
            lockstep_format::sealed::grammar::Grammar<crate::stream::Growing>,
        )>,
        SealError,
    > {
        let Some((path, sealed)) = &self.latest else {
            return Ok(None);
        };
        let wrong = |text: String| SealError::Store {
            path: path.clone(),
            text,
        };
        let tree = sealed.tree().map_err(|text| wrong(text.to_owned()))?;
        Ok(Some((
            &sealed.names,
            tree,
            sealed.grammar().map_err(wrong)?,
        )))
    }

    /// Adds trees; the file that has them, and the check of its header.
    fn add(&self, trees: &Trees) -> Result<(PathBuf, u32), SealError> {
        if trees.nodes.is_empty()
            && let Some((path, sealed)) = &self.latest
        {
            return Ok((path.clone(), sealed.check));
        }
        let base = match &self.latest {
            Some((path, sealed)) => base_text(path.file_name().map(Path::new), sealed.check),
            None => Bytes::default(),
        };
        let known = self.latest.as_ref().map_or(0, |(_, it)| it.names.len());
        let names = names_text(trees.names.get(known..).unwrap_or(&[]));
        let (bytes, check) = assemble(&trees.header, &base, &names, &none(), &trees.nodes, &[]);
        let path = self.directory.join(store_file(self.files));
        replace(&path, &bytes, |_| Ok(()))?;
        Ok((path, check))
    }
}

fn store_file(number: usize) -> String {
    format!("{number:06}.lockstep")
}

/// Threads: no processes.
pub(super) fn none() -> Bytes {
    let mut text = Bytes::default();
    text.number(0);
    text
}

fn base_text(path: Option<&Path>, check: u32) -> Bytes {
    let mut text = Bytes::default();
    text.bytes(path.unwrap_or(Path::new("")).to_string_lossy().as_bytes());
    text.number(u64::from(check));
    text
}

pub(super) fn names_text(names: &[Name]) -> Bytes {
    let mut text = Bytes::default();
    text.number(names.len() as u64);
    for name in names {
        text.bytes(name.image.as_bytes());
        text.bytes(name.linkage.as_bytes());
        text.number(u64::from(name.leaf));
    }
    text
}

pub(super) fn assemble(
    header: &Header,
    base: &Bytes,
    names: &Bytes,
    threads: &Bytes,
    nodes: &[u8],
    raw: &[u8],
) -> (Vec<u8>, u32) {
    let coded = [base.coded(), names.coded(), threads.coded()];
    let parts: [&[u8]; section::COUNT] = [&coded[0], &coded[1], &coded[2], nodes, raw];
    let sections = parts.map(|part| (part.len() as u64, crc32c(part)));
    let head = sealed::header(header, &sections);
    let mut bytes = head.to_vec();
    parts.iter().for_each(|part| bytes.extend_from_slice(part));
    let check = lockstep_format::bytes::u32_at(&head, sealed::header::CHECK).unwrap_or(0);
    (bytes, check)
}

/// Where a file lies until it counts.
fn draft_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Writes a file as a whole, or not at all; `check` looks at it before it counts.
fn replace(
    path: &Path,
    bytes: &[u8],
    check: impl FnOnce(&Path) -> Result<(), SealError>,
) -> Result<(), SealError> {
    let draft = draft_of(path);
    let write = || {
        // What is left of a seal that was killed goes; a link that somebody put there is not followed.
        let _ = fs::remove_file(&draft);
        let mut file = File::create_new(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    let settle = || {
        fs::rename(&draft, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    };
    write()
        .map_err(file_error(path))
        .and_then(|()| check(&draft))
        .and_then(|()| settle().map_err(file_error(path)))
        .inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
}

/// Seals runs whose trees are `trees`: into each run's directory, or, what is in all of them, into `store`. Their
/// process files are removed unless `keep` says otherwise.
///
/// # Errors
/// Where a run is running, is sealed, or cannot be written; or where what was written is not what was recorded.
pub fn seal(
    runs: &[&Sealable],
    trees: &Trees,
    store: Option<&Store>,
    keep: bool,
) -> Result<Vec<Sizes>, SealError> {
    let base = store.map(|store| store.add(trees)).transpose()?;
    let none = Vec::new();
    let mut all = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let roots = trees.roots.get(index).unwrap_or(&none);
        all.push(seal_one(run, trees, roots, base.as_ref(), keep)?);
    }
    Ok(all)
}

fn seal_one(
    sealable: &Sealable,
    trees: &Trees,
    roots: &[Vec<Option<TreeOf>>],
    base: Option<&(PathBuf, u32)>,
    keep: bool,
) -> Result<Sizes, SealError> {
    let run = &sealable.run;
    let path = run.directory.join(sealed::FILE);
    sealable.check()?;
    let Told {
        threads,
        names,
        raw,
        sizes,
        beside,
    } = tell(sealable, trees, roots, base.is_some())?;
    let (header, base, nodes) = match base {
        None => (trees.header, Bytes::default(), &trees.nodes[..]),
        Some((store, check)) => {
            let nodes = trees.header.base_nodes + trees.header.nodes;
            let header = Header {
                base_nodes: nodes,
                ..Header::default()
            };
            let store = fs::canonicalize(store).map_err(file_error(store))?;
            (header, base_text(Some(&store), *check), &[][..])
        }
    };
    let (bytes, _) = assemble(&header, &base, &names, &threads, nodes, &raw.0);
    let sizes = Sizes {
        after: bytes.len() as u64,
        ..sizes
    };
    verify(sealable, &path, bytes.clone(), roots, &beside)?;
    replace(&path, &bytes, |draft| match sizes.kept {
        0 => Ok(()),
        _ => verify_kept(run, draft, roots),
    })?;
    if !keep {
        let processes = run.directory.join("processes");
        fs::remove_dir_all(&processes).map_err(file_error(&processes))?;
    }
    Ok(sizes)
}

impl Sealable {
    /// Whether the run can be sealed: it has ended, and is not.
    ///
    /// # Errors
    /// Where it is running, or is sealed.
    pub fn check(&self) -> Result<(), SealError> {
        let path = self.run.directory.clone();
        if self.is_sealed {
            return Err(SealError::Sealed { path });
        }
        let is_running = |process: &&Process| process.end.kind == EndKind::Running;
        match self.run.processes.iter().find(is_running) {
            Some(process) => Err(SealError::Running {
                path,
                process: process.name.to_string(),
            }),
            None => Ok(()),
        }
    }
}

impl Trees {
    /// The threads of one of the runs as they would be read from a sealed file, nothing beside their events; in
    /// the order of processes and threads. `None` for those that are kept as they are. For tests and measurements.
    ///
    /// # Errors
    /// Where the trees cannot be read.
    pub fn read_back(&self, run: &Run, index: usize) -> Result<Vec<Vec<Option<Thread>>>, String> {
        let names = names_text(&self.names);
        let (bytes, _) = assemble(
            &self.header,
            &Bytes::default(),
            &names,
            &none(),
            &self.nodes,
            &[],
        );
        let sealed = Arc::new(Sealed::open(Path::new(""), Mapped::Memory(bytes))?);
        sealed.tree().map_err(str::to_owned)?;
        let names = Arc::new(names_in(run, &sealed));
        let told = |thread: &Thread, root: &TreeOf| {
            let mut told = thread.clone();
            told.stream = Stream::Sealed(Arc::new(SealedStream {
                sealed: Arc::clone(&sealed),
                names: Arc::clone(&names),
                root: root.root,
                strays: root.strays.clone(),
            }));
            told
        };
        let roots = self.roots.get(index).map_or(&[][..], Vec::as_slice);
        let processes = run.processes.iter().zip(roots);
        Ok(processes
            .map(|(process, roots)| {
                let threads = process.threads.iter().zip(roots);
                threads
                    .map(|(thread, root)| root.as_ref().map(|root| told(thread, root)))
                    .collect()
            })
            .collect())
    }
}
