//! What was found once stays, for every later run of this user: plans in `$XDG_CACHE_HOME/lockstep/plans`,
//! else `~/.cache/lockstep/plans`, and what others keep beside them.
//!
//! ```text
//! plans/PATCHER/NAME        a plan by this very patcher (`lockstep_patch::patcher`)
//! plans/PATCHER/asked-KEY   which plans the last run of a program asked for (`ahead`)
//! KIND/MAKER/NAME           a text of another kind, by this very maker of it
//! ```
//! An entry is put in place by a rename and never changed. A run that is being recorded has links to plans, not copies. Together
//! the entries of a kind take at most so much; those that were not used for longest go first. A cache that cannot be
//! written, or that somebody else may write, is no cache; and an entry that belongs to somebody else is none.

use crate::own;
use lockstep_format::plan::{Plan, PlanError};
use std::fs::{self, File, Metadata, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How long plans of other runs are waited for, which may be large.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of all plans together, or of what others keep.
const MOST: u64 = 512 << 20;

/// The cache of this user, of one kind of things.
#[derive(Debug, Clone)]
pub struct Cache {
    /// What every maker kept, and this one.
    all: PathBuf,
    own: PathBuf,
}

impl Cache {
    /// That of plans.
    pub(crate) fn open() -> Option<Self> {
        Self::of("plans", lockstep_patch::patcher())
    }

    /// The cache for things of a `kind` by a `maker` (both names of directories), made if it was not there; `None`
    /// where there can be none.
    #[must_use]
    pub fn of(kind: &str, maker: &str) -> Option<Self> {
        Self::at(&place_of(kind)?, maker, 0o700)
    }

    /// The cache for files that programs of other users read, too: root starts such programs. It is the system's if others cannot
    /// look into root's own.
    pub(crate) fn of_all_users(kind: &str, maker: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            return Self::of(kind, maker);
        }
        let is_open = |cache: &Self| {
            let mut all = cache.own.ancestors();
            all.all(|it| fs::metadata(it).is_ok_and(|it| it.mode() & 0o001 != 0))
        };
        let own = Self::at(&place_of(kind)?, maker, 0o755)?;
        let all = Path::new("/var/cache/lockstep").join(kind);
        let system = (!is_open(&own)).then(|| Self::at(&all, maker, 0o755));
        Some(system.flatten().unwrap_or(own))
    }

    /// The directory of this maker.
    pub(crate) fn place(&self) -> &Path {
        &self.own
    }

    fn at(all: &Path, maker: &str, mode: u32) -> Option<Self> {
        let own = all.join(maker);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(mode).create(&own).ok()?;
        // A link in the place of one of these would lead to a directory of somebody's choice.
        let is_private = |path: &Path| {
            fs::symlink_metadata(path).is_ok_and(|found| found.is_dir() && is_ours(&found))
        };
        if mode != 0o700 {
            // The umask may have closed them.
            for made in own.ancestors().take(3).filter(|it| is_private(it)) {
                fs::set_permissions(made, Permissions::from_mode(mode)).ok()?;
            }
        }
        (is_private(all) && is_private(&own)).then(|| Self {
            all: all.to_owned(),
            own,
        })
    }

    /// Lets one process at a time make plans, as long as the guard lives. Where locks do not work,
    /// several make the same.
    pub(crate) fn lock(&self) -> Option<File> {
        let directory = File::open(&self.own).ok()?;
        crate::plan::lock(&directory, PATIENCE);
        Some(directory)
    }

    /// Puts the entry `name` at `place`, if there is one that holds.
    pub(crate) fn fetch(&self, name: &str, place: &Path) -> bool {
        let entry = self.own.join(name);
        let Ok(bytes) = own::read(&entry) else {
            return false;
        };
        if checked(&bytes).is_err() {
            let _ = fs::remove_file(&entry);
            return false;
        }
        self.link(name, place) || own::put(&draft(place), place, &bytes).is_ok()
    }

    /// The same ahead of need: the probe checks what it uses, and asks for what does not hold.
    pub(crate) fn fetch_ahead(&self, name: &str, place: &Path) -> bool {
        let is_there = own::open_trusted(&self.own.join(name)).is_ok();
        is_there && self.link(name, place) || self.fetch(name, place)
    }

    /// Puts a link to an entry at `place`, in the place of what is there. Not possible between file systems, nor on some.
    pub(crate) fn link(&self, name: &str, place: &Path) -> bool {
        let (entry, draft) = (self.own.join(name), draft(place));
        let linked = fs::hard_link(&entry, &draft).and_then(|()| fs::rename(&draft, place));
        match linked {
            Ok(()) => used(&entry),
            Err(_) => drop(fs::remove_file(&draft)),
        }
        linked.is_ok()
    }

    /// The text of the entry `name`, if there is one.
    #[must_use]
    pub fn note(&self, name: &str) -> Option<String> {
        let entry = self.own.join(name);
        let text = own::read(&entry).ok()?;
        used(&entry);
        String::from_utf8(text).ok()
    }

    /// Keeps a plan, or a text, as the entry `name`; false where it cannot be written.
    pub fn keep(&self, name: &str, bytes: &[u8]) -> bool {
        let entry = self.own.join(name);
        own::put(&draft(&entry), &entry, bytes).is_ok()
    }

    /// Removes what was not used for longest, as long as there is too much.
    pub fn trim(&self) {
        self.trim_to(MOST);
    }

    fn trim_to(&self, most: u64) {
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        let makers = fs::read_dir(&self.all).into_iter().flatten().flatten();
        for maker in makers {
            let files = fs::read_dir(maker.path()).into_iter().flatten().flatten();
            entries.extend(files.filter_map(|entry| {
                let found = entry.metadata().ok().filter(Metadata::is_file)?;
                Some((found.modified().ok()?, found.len(), entry.path()))
            }));
        }
        let mut sum: u64 = entries.iter().map(|(_, size, _)| size).sum();
        entries.sort();
        for (_, size, path) in entries {
            if sum <= most {
                break;
            }
            let _ = fs::remove_file(&path);
            // Another maker's directory goes with its last entry.
            if let Some(maker) = path.parent().filter(|maker| *maker != self.own) {
                let _ = fs::remove_dir(maker);
            }
            sum -= size;
        }
    }
}

/// The plan in `bytes`, if it holds. By the processor's own instruction, where it has it, which is much faster than tables: plans
/// are 20 MB where every image of an MPI program is recorded.
pub(crate) fn checked(bytes: &[u8]) -> Result<Plan<'_>, PlanError> {
    Plan::checked_by(bytes, crc32c::crc32c_append)
}

/// So that it counts as used.
fn used(entry: &Path) {
    if let Ok(file) = own::open(entry) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Whether nobody but this user (and root) can have written it.
pub(crate) fn is_ours(found: &Metadata) -> bool {
    own::is_trusted(found.uid(), found.mode())
}

/// Where this user's things of a kind are kept.
fn place_of(kind: &str) -> Option<PathBuf> {
    let named = |variable: &str| {
        let path = std::env::var_os(variable).map(PathBuf::from)?;
        path.is_absolute().then_some(path)
    };
    let base = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))?;
    Some(base.join("lockstep").join(kind))
}

/// A name beside `place` that nobody else uses.
pub(crate) fn draft(place: &Path) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let host = crate::process::host_in_names();
    place.with_file_name(format!(
        ".{name}.{host}-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use lockstep_format::plan::Role;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lockstep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn some_plan() -> Vec<u8> {
        let program = fs::read(std::env::current_exe().unwrap()).unwrap();
        // An image without hooks: the smallest plan.
        lockstep_patch::plan(&program, Role::Library, &lockstep_patch::Options::default()).unwrap()
    }

    #[test]
    fn what_is_kept_is_found_and_what_is_damaged_is_not() {
        let root = scratch("cache");
        let cache = Cache::at(&root.join("plans"), "maker", 0o700).unwrap();
        let (plan, place) = (some_plan(), root.join("fetched"));
        assert!(!cache.fetch("a", &place));
        cache.keep("a", &plan);
        assert!(cache.fetch("a", &place));
        assert_eq!(fs::read(&place).unwrap(), plan);
        for length in [0, 11, plan.len() / 2, plan.len() - 1] {
            cache.keep("b", &plan[..length]);
            assert!(!cache.fetch("b", &root.join("b")), "{length}");
            assert!(!cache.own.join("b").exists());
        }
        let mut foreign = plan.clone();
        foreign[8] ^= 1; // the version
        cache.keep("c", &foreign);
        assert!(!cache.fetch("c", &root.join("c")));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_oldest_go_first() {
        let root = scratch("cache-trim");
        let cache = Cache::at(&root.join("plans"), "maker", 0o700).unwrap();
        let old = root.join("plans/another");
        fs::create_dir(&old).unwrap();
        for (path, seconds) in [
            (old.join("x"), 1),
            (cache.own.join("y"), 2),
            (cache.own.join("z"), 3),
        ] {
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            File::options()
                .write(true)
                .open(&path)
                .unwrap()
                .set_modified(time)
                .unwrap();
        }
        cache.trim_to(250);
        assert!(!old.exists() && cache.own.join("y").exists());
        cache.trim_to(100);
        assert!(!cache.own.join("y").exists() && cache.own.join("z").exists());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_cache_that_others_can_write_is_none() {
        let root = scratch("cache-others");
        let plans = root.join("plans");
        fs::create_dir(&plans).unwrap();
        fs::set_permissions(&plans, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(Cache::at(&plans, "maker", 0o700).is_none());
        assert!(Cache::at(Path::new("/proc/nothing/plans"), "maker", 0o700).is_none());
        fs::remove_dir_all(&root).unwrap();
    }
}
