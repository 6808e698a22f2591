//! The edge to the file system: files of a run, opened without following anything, and mapped.

use crate::container::Control;
use memmap2::Mmap;
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A directory that was opened; names are looked up in it, links are not followed.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
    /// For messages only.
    pub path: PathBuf,
    /// The first path for which no descriptor was free, of this directory and those that were opened by way of it: that
    /// says nothing of the run, so that what was read without it must not pass for all that is there.
    refused: Arc<OnceLock<(PathBuf, Shortage)>>,
}

/// Whose descriptors are all in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// Those of this process, which may have so many.
    Process(Option<u64>),
    System,
}

impl Shortage {
    pub fn of(error: &io::Error) -> Option<Self> {
        match Errno::from_io_error(error) {
            Some(Errno::MFILE) => Some(Self::Process(getrlimit(Resource::Nofile).current)),
            Some(Errno::NFILE) => Some(Self::System),
            _ => None,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(Some(most)) => write!(f, "ulimit -n is {most}"),
            Self::Process(None) => f.write_str("this process has no more"),
            Self::System => f.write_str("the system has no more"),
        }
    }
}

impl Folder {
    /// The run's directory itself: the one path that is followed.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            descriptor: fs::open(path, flags, Mode::empty())?,
            path: path.to_owned(),
            refused: Arc::default(),
        })
    }

    /// A directory elsewhere, as that of [`Folder::open`], whose shortages count as ours.
    pub fn elsewhere(&self, path: &Path) -> io::Result<Self> {
        let folder = Self::open(path).map_err(|error| self.noted(error, || path.to_owned()))?;
        let refused = Arc::clone(&self.refused);
        Ok(Self { refused, ..folder })
    }

    /// A path for which no descriptor was free, if there was one so far.
    pub fn refused(&self) -> Option<(&Path, Shortage)> {
        let (path, shortage) = self.refused.get()?;
        Some((path, *shortage))
    }

    /// The error, which is remembered where it is a shortage.
    fn noted(&self, error: io::Error, path: impl FnOnce() -> PathBuf) -> io::Error {
        if let Some(shortage) = Shortage::of(&error) {
            // Only the first is told.
            let _ = self.refused.set((path(), shortage));
        }
        error
    }

    fn at(&self, name: &str, flags: OFlags) -> io::Result<OwnedFd> {
        fs::openat(&self.descriptor, plain(name)?, flags, Mode::empty())
            .map_err(|error| self.noted(error.into(), || self.path.join(name)))
    }

    /// A directory in it.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Self {
            descriptor: self.at(name, flags)?,
            path: self.path.join(name),
            refused: Arc::clone(&self.refused),
        })
    }

    /// Names of what is in it, sorted; what is no UTF-8 is not ours.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = Dir::read_from(self.descriptor.as_fd())
            .map_err(|error| self.noted(error.into(), || self.path.clone()))?;
        for entry in entries {
            let entry = entry?;
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether something of this name is there.
    pub fn has(&self, name: &str) -> bool {
        plain(name)
            .is_ok_and(|name| fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    fn file(&self, name: &str) -> io::Result<(File, u64)> {
        // Non-blocking: a pipe in the place of a file must not hold us.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let descriptor = self.at(name, flags)?;
        let status = fs::fstat(&descriptor)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("expected a regular file"));
        }
        Ok((File::from(descriptor), status.st_size.unsigned_abs()))
    }

    /// The content of a file of at most `most` bytes.
    pub fn read(&self, name: &str, most: u64) -> io::Result<Vec<u8>> {
        let (file, size) = self.file(name)?;
        if size > most {
            return Err(io::Error::other(format!(
                "expected at most {most} bytes, found {size}"
            )));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A file, mapped.
    pub fn map(&self, name: &str) -> io::Result<Mapped> {
        let (file, size) = self.file(name)?;
        if size == 0 {
            return Ok(Mapped::Memory(Vec::new()));
        }
        let Some(place) = Place::take() else {
            return read(&file, size);
        };
        #[allow(unsafe_code)]
        // SAFETY: the file may be written while it is mapped (by the process that it is of, and then
        // only beyond what its states name as committed, or in control blocks, which are copied word
        // by word before use). Every offset is checked and every value is taken as a stranger's.
        let map = unsafe { Mmap::map(&file) };
        match map {
            Ok(map) => Ok(Mapped::File(map, place)),
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => read(&file, size),
            Err(error) => Err(error),
        }
    }
}

/// A file that is not mapped.
fn read(file: &File, size: u64) -> io::Result<Mapped> {
    let mut bytes = Vec::new();
    file.take(size).read_to_end(&mut bytes)?;
    Ok(Mapped::Memory(bytes))
}

/// Files that are mapped at the same time. A process has so many mappings at most (65,530, mostly), and without some for
/// its memory it ends; a run may have more files.
const MOST_MAPPED: usize = 60_000;
static MAPPED: AtomicUsize = AtomicUsize::new(0);

/// One of [`MOST_MAPPED`].
#[derive(Debug)]
pub(crate) struct Place(());

impl Place {
    fn take() -> Option<Self> {
        // Given back where there are too many.
        let place = Self(());
        (MAPPED.fetch_add(1, Ordering::Relaxed) < MOST_MAPPED).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        MAPPED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A file that is named from outside the run: part of a store that runs share.
pub(crate) fn map_path(path: &Path) -> io::Result<Mapped> {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::other("expected a file name"))?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    Folder::open(parent.unwrap_or(Path::new(".")))?.map(name)
}

/// Names that stand in a run's files must name something in that very directory.
fn plain(name: &str) -> io::Result<&str> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::Error::other(format!(
            "expected a plain file name, found {name:?}"
        )));
    }
    Ok(name)
}

/// A file's content.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// Mapped.
    File(Mmap, Place),
    /// A range of it.
    Part(Arc<Mapped>, Range<usize>),
    /// Copied; an empty file cannot be mapped.
    Memory(Vec<u8>),
}

impl Mapped {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::File(map, _) => map,
            Self::Part(whole, range) => whole.bytes().get(range.clone()).unwrap_or(&[]),
            Self::Memory(bytes) => bytes,
        }
    }

    /// Copies the control block at `at`, which its thread may be writing: word by word, again and
    /// again until the states at its front were the same before and after the rest was copied.
    pub fn control(&self, at: usize) -> Option<Box<Control>> {
        use lockstep_format::process::state;
        use lockstep_format::process::thread::{INTENT, PHASE};
        const TRIES: usize = 200;
        const FRONT: usize = INTENT + state::SIZE;
        let area = self
            .bytes()
            .get(at..at.checked_add(size_of::<Control>())?)?;
        let mut control: Box<Control> = Box::new([0; size_of::<Control>()]);
        let mut front = [0; FRONT];
        for _ in 0..TRIES {
            copy(area, &mut control[..]);
            copy(area, &mut front);
            let is_settled = front.get(PHASE) == Some(&0);
            if is_settled && control.get(..FRONT) == Some(&front[..]) {
                break;
            }
        }
        Some(control)
    }
}

/// Copies the first bytes of memory that somebody else may be writing: in ascending order, each
/// aligned 8-byte word at once. The length of `to` is a multiple of 8, and no longer than `from`.
fn copy(from: &[u8], to: &mut [u8]) {
    for (word, place) in from.chunks_exact(8).zip(to.chunks_exact_mut(8)) {
        let pointer = word.as_ptr().cast::<u64>();
        if !pointer.is_aligned() {
            // Never in a mapping: control blocks lie at page boundaries.
            place.copy_from_slice(word);
            continue;
        }
        #[allow(unsafe_code)]
        // SAFETY: eight bytes of a live slice, aligned.
        let value = unsafe { pointer.read_volatile() };
        place.copy_from_slice(&value.to_ne_bytes());
    }
}
