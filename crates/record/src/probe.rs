//! The probe that the command carries: checked, and put where the recorded programs can load it.
//!
//! ```text
//! CACHE/lockstep/probe/DIGEST/liblockstep_probe.so     by default
//! /var/cache/lockstep/probe/DIGEST/...                 of root, whose programs may go on as other users, if these
//!                                                      cannot look into root's cache
//! RUN/probe/DIGEST/liblockstep_probe.so                if the cache cannot be written, or not be seen from where the
//!                                                      programs run (containers, other nodes)
//! /proc/PID/fd/N                                       if neither can hold it: memory, as long as the recorder lives
//! ```
//! The digest keeps versions apart. A file is used only if it belongs to this user, nobody else can write it, and it
//! holds the very bytes that the command carries.

use crate::cache::{Cache, draft, is_ours};
use crate::directory::Directory;
use crate::error::Error;
use crate::own;
use crate::program::plain;
use lockstep_format::digest::Digest;
use lockstep_format::{plan, process, stamp};
use rustix::fs::{MemfdFlags, StatVfsMountFlags, memfd_create, statvfs};
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The probe's file name.
const NAME: &str = "liblockstep_probe.so";
/// Where it lies in a run; the command's own file lies beside it for programs in containers.
pub(crate) const FOLDER: &str = "probe";
/// The command's own file there.
const PLANNER: &str = "lockstep";

/// Programs that start others with another root directory: neither the cache nor the command need be there. The run
/// directory usually is.
const CONTAINERS: [&str; 15] = [
    "apptainer",
    "bwrap",
    "ch-run",
    "charliecloud",
    "chroot",
    "docker",
    "enroot",
    "nsenter",
    "podman",
    "sarus",
    "shifter",
    "singularity",
    "systemd-nspawn",
    "udocker",
    "unshare",
];

/// Where the probe comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// The command carries it.
    Carried(&'static [u8]),
    /// A file (`--probe`).
    File(PathBuf),
}

impl Probe {
    /// Reads the probe, and sees that it is of our build.
    pub(crate) fn check(&self) -> Result<Checked, Error> {
        let (file, bytes) = match self {
            Self::Carried(bytes) => (None, Cow::Borrowed(*bytes)),
            Self::File(path) => {
                let failed = |error: io::Error| failed(path.display(), &plain(&error));
                let file = path.canonicalize().map_err(failed)?;
                let bytes = fs::read(&file).map_err(failed)?;
                (Some(file), Cow::Owned(bytes))
            }
        };
        let shown = file.as_deref().unwrap_or(Path::new(NAME)).display();
        let ours = (process::VERSION, plan::VERSION);
        match stamp::find(&bytes) {
            Some(versions) if versions == ours => Ok(Checked { file, bytes }),
            Some((process, plan)) => Err(failed(
                shown,
                &format!(
                    "expected process files of version {} and plans of version {}, found {process} and {plan}: it is of \
                     another build",
                    ours.0, ours.1
                ),
            )),
            None => Err(failed(
                shown,
                "expected lockstep's probe, found another library",
            )),
        }
    }

    /// Where programs would load it from.
    ///
    /// # Errors
    /// If it is of another build, or there is no place for it but a run directory or memory.
    pub fn place(&self) -> Result<PathBuf, Error> {
        let checked = self.check()?;
        checked.given().map_or_else(|| checked.in_cache(), Ok)
    }
}

fn failed(shown: impl std::fmt::Display, reason: &str) -> Error {
    Error::own(format!("the probe {shown}: {reason}"))
}

/// A probe of our build.
pub(crate) struct Checked {
    file: Option<PathBuf>,
    bytes: Cow<'static, [u8]>,
}

/// A probe that programs can load.
pub(crate) struct Placed {
    /// What `LD_PRELOAD` names.
    pub name: PathBuf,
    /// The program that makes plans.
    pub planner: Option<PathBuf>,
    /// Whether the programs may have another root directory.
    pub is_contained: bool,
    /// In the run, and nobody else's.
    removed: Option<PathBuf>,
    /// Memory that lives as long as this.
    _held: Option<File>,
}

impl Checked {
    /// Puts it where the programs of `command` can load it.
    pub(crate) fn place(
        &self,
        directory: &Directory,
        command: &[OsString],
        has_other_nodes: bool,
    ) -> Result<Placed, Error> {
        let is_contained = command.iter().any(|word| is_container(word));
        let in_run = directory.path.join(FOLDER);
        let mut placed = Placed {
            name: PathBuf::new(),
            planner: std::env::current_exe().ok(),
            is_contained,
            removed: None,
            _held: None,
        };
        let near = || self.given().map_or_else(|| self.in_cache(), Ok);
        let far = || self.put_into(&in_run.join(self.digest()));
        let is_far = is_contained || has_other_nodes;
        let found = if is_far {
            far().or_else(|_| near())
        } else {
            near().or_else(|_| far())
        };
        placed.name = match found {
            Ok(name) => name,
            Err(error) => {
                let (file, name) = self.in_memory().map_err(|_| error)?;
                placed._held = Some(file);
                name
            }
        };
        if placed.name.starts_with(&in_run) {
            if is_far && let Some(planner) = &placed.planner {
                let copy = placed.name.with_file_name(PLANNER);
                placed.planner = Some(
                    copy_program(planner, &copy)
                        .map_err(|error| failed(copy.display(), &plain(&error)))?,
                );
            }
            // Other recorders of the job use it, too.
            placed.removed = (!directory.shared).then_some(in_run);
        }
        Ok(placed)
    }

    /// The file that was given, if `LD_PRELOAD` can name it.
    fn given(&self) -> Option<PathBuf> {
        self.file.clone().filter(|file| can_be_preloaded(file))
    }

    fn digest(&self) -> String {
        String::from_utf8_lossy(&Digest::of(&self.bytes)).into_owned()
    }

    fn in_cache(&self) -> Result<PathBuf, Error> {
        let digest = self.digest();
        let cache = Cache::of_all_users(FOLDER, &digest)
            .ok_or_else(|| failed(NAME, "the cache directory cannot be written"))?;
        let name = self.put_into(cache.place())?;
        cache.trim();
        Ok(name)
    }

    /// Makes sure that a private directory holds it.
    fn put_into(&self, directory: &Path) -> Result<PathBuf, Error> {
        let place = directory.join(NAME);
        let refuse = |reason: &str| failed(place.display(), reason);
        if !can_be_preloaded(&place) {
            return Err(refuse(
                "LD_PRELOAD cannot name a path with spaces or colons",
            ));
        }
        let io = |error: io::Error| refuse(&plain(&error));
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(io)?;
        if !fs::symlink_metadata(directory).is_ok_and(|it| it.is_dir() && is_ours(&it)) {
            return Err(refuse("others can write its directory"));
        }
        let flags = statvfs(directory).map_err(|error| io(error.into()))?.f_flag;
        if flags.contains(StatVfsMountFlags::NOEXEC) {
            return Err(refuse(
                "code in this file system cannot be executed (noexec)",
            ));
        }
        if !self.is_in(&place) {
            put_executable(&place, &self.bytes).map_err(io)?;
            if !self.is_in(&place) {
                return Err(refuse(
                    "expected what was just written, found something else",
                ));
            }
        }
        Ok(place)
    }

    /// Whether a file is this user's, and holds these very bytes.
    fn is_in(&self, place: &Path) -> bool {
        let Ok(mut file) = own::open_trusted(place) else {
            return false;
        };
        let length = self.bytes.len() as u64;
        let is_as_long = file.metadata().is_ok_and(|found| found.len() == length);
        let mut bytes = Vec::new();
        let holds = is_as_long && file.read_to_end(&mut bytes).is_ok() && bytes == *self.bytes;
        if holds {
            // The cache removes first what was not used for longest.
            let _ = file.set_modified(std::time::SystemTime::now());
        }
        holds
    }

    /// Keeps it in memory, under a name that other processes of this user can open.
    fn in_memory(&self) -> io::Result<(File, PathBuf)> {
        let mut file = File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?);
        file.write_all(&self.bytes)?;
        let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Ok((file, PathBuf::from(name)))
    }
}

impl Placed {
    /// Removes what only this recorder's programs used: processes that are left start nothing under the probe any more.
    pub(crate) fn remove(&self) {
        if let Some(folder) = &self.removed {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Whether an entry of `LD_PRELOAD` is a probe, which an outer recorder put there.
pub(crate) fn is_probe(entry: &Path) -> bool {
    entry.ends_with(NAME) || entry.starts_with("/proc")
}

/// `LD_PRELOAD` divides at spaces and colons, and `$` begins a variable of the dynamic linker.
fn can_be_preloaded(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    !bytes.iter().any(|byte| b" :\t\n$".contains(byte))
}

fn is_container(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default();
    CONTAINERS.iter().any(|container| name == *container)
        // Slurm's own.
        || word.as_bytes().starts_with(b"--container")
}

/// Puts an executable file in place as a whole or not at all.
fn put_executable(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = draft(place);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o700);
    options
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            // The umask would close it.
            file.set_permissions(Permissions::from_mode(0o755))
        })
        .and_then(|()| fs::rename(&draft, place))
        .inspect_err(|_| {
            let _ = fs::remove_file(&draft);
        })
}

/// Copies the command's own file, unless it is there already.
fn copy_program(program: &Path, place: &Path) -> io::Result<PathBuf> {
    // By its descriptor: the path may have become another version's.
    let bytes = fs::read("/proc/self/exe").or_else(|_| fs::read(program))?;
    if fs::read(place).is_ok_and(|found| found == bytes) {
        return Ok(place.to_owned());
    }
    put_executable(place, &bytes)?;
    Ok(place.to_owned())
}
