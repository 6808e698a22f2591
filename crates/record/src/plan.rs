//! Plans of images, there once a run: put there ahead by the recorder, or for the probe by `__plan`;
//! from the user's cache where they were made before.

use crate::ahead;
use crate::cache::{Cache, checked, draft};
use crate::images::Images;
use crate::own;
use crate::thread::{STACK, thread};
use lockstep_binary::{Image, debug_file};
use lockstep_format::plan::{Role, choice, planner};
use lockstep_patch::{FileIdentity, Scope, image_key, plan_name};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The environment variables that pass the choice of functions on: expressions, one a line, and what
/// tells this choice from others in the names of plans.
pub(crate) const CHOICE: [&str; 3] = ["LOCKSTEP_TRACE", "LOCKSTEP_SKIP", "LOCKSTEP_CHOICE"];

/// The environment variable that says that nothing is recorded.
pub(crate) const SILENT: &str = "LOCKSTEP_SILENT";

/// Larger files of debug information are left alone.
const MOST_NAMES: u64 = 512 << 20;

/// The choice of functions of the run that this process is part of.
fn inherited_choice() -> lockstep_patch::Options {
    let lines = |name: &str| -> Vec<String> {
        let value = std::env::var(name).unwrap_or_default();
        value.lines().map(str::to_owned).collect()
    };
    lockstep_patch::Options {
        trace: lines(CHOICE[0]),
        skip: lines(CHOICE[1]),
        fault: crate::inject::inherited(),
        silent: std::env::var_os(SILENT).is_some(),
    }
}

/// The expressions that found no name in any of the run's plans, as they were written; none where
/// there is no plan.
pub(crate) fn unmatched(run: &Path, choice: &lockstep_patch::Options) -> Vec<String> {
    if choice.is_everything() {
        return Vec::new();
    }
    let ending = format!("-{}.plan", choice.digest());
    let mut found: BTreeMap<(u32, String), u64> = BTreeMap::new();
    for entry in fs::read_dir(run.join("plans"))
        .into_iter()
        .flatten()
        .flatten()
    {
        if !entry.file_name().as_bytes().ends_with(ending.as_bytes()) {
            continue;
        }
        let Ok(bytes) = own::read(&entry.path()) else {
            continue;
        };
        for row in checked(&bytes)
            .into_iter()
            .flat_map(|plan| plan.choices())
            .filter(|row| row.kind != choice::FAULT)
        {
            let pattern = String::from_utf8_lossy(row.pattern).into_owned();
            *found.entry((row.kind, pattern)).or_default() += u64::from(row.found);
        }
    }
    found
        .into_iter()
        .filter(|(_, count)| *count == 0)
        .map(|((kind, pattern), _)| match kind {
            choice::SKIP => format!("--skip '{pattern}'"),
            _ => format!("--trace '{pattern}'"),
        })
        .collect()
}

/// Why an image has no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("the file is another than the one that was loaded")]
    Replaced,
    #[error("{0}")]
    Image(#[from] lockstep_patch::PlanFailure),
}

/// The hidden subcommand `__plan --run RUN [ROLE NAME IMAGE]...`: puts the plans of images into the
/// run, under these names, unless they are there. Silent; the status says whether all are there now.
#[must_use]
pub fn plan_command(arguments: &[OsString]) -> u8 {
    let [flag, run, wanted @ ..] = arguments else {
        return planner::USAGE;
    };
    let (triples, rest) = wanted.as_chunks::<3>();
    if flag != "--run" || !rest.is_empty() {
        return planner::USAGE;
    }
    let run = Path::new(run);
    let planner = Planner {
        plans: run.join("plans"),
        choice: inherited_choice(),
        images: Images::inherited(),
        cache: Cache::open(),
    };
    let mut jobs = Vec::new();
    for [role, name, path] in triples {
        let role = role.to_str().and_then(Role::from_name);
        let (Some(role), Some(name)) = (role, name.to_str().filter(|name| !name.contains('/')))
        else {
            return planner::USAGE;
        };
        jobs.push(Job {
            role,
            name: name.to_owned(),
            path: PathBuf::from(path),
        });
    }
    ahead::note(&planner.plans, &jobs);
    match planner.provide(jobs) {
        Ok(()) => planner::DONE,
        Err(error) => status(&error),
    }
}

/// The exit status that tells the probe of it.
fn status(error: &PlanError) -> u8 {
    use io::ErrorKind::{FileTooLarge, OutOfMemory, QuotaExceeded, StorageFull};
    let PlanError::File(error) = error else {
        return planner::FAILED;
    };
    match (Errno::from_io_error(error), error.kind()) {
        (Some(Errno::MFILE | Errno::NFILE), _) => planner::DESCRIPTORS,
        (_, OutOfMemory) => planner::MEMORY,
        (_, StorageFull | QuotaExceeded | FileTooLarge) => planner::DISK,
        _ => planner::FAILED,
    }
}

/// Puts the plan of the main program at `path` into the run.
pub(crate) fn ensure(
    run: &Path,
    path: &Path,
    choice: &lockstep_patch::Options,
) -> Result<(), PlanError> {
    let name = name_of(path, &fs::read(path)?, Role::Main, choice)?;
    let planner = Planner {
        plans: run.join("plans"),
        choice: choice.clone(),
        images: Images::default(),
        cache: Cache::open(),
    };
    planner.provide(vec![Job {
        role: Role::Main,
        name,
        path: path.to_owned(),
    }])
}

/// Puts plans into the run that a former run of `command` asked for, as far as they were kept.
pub(crate) fn recall(
    run: &Path,
    choice: &lockstep_patch::Options,
    images: &Images,
    command: &[OsString],
) {
    let Some(cache) = Cache::open() else {
        return;
    };
    let jobs = ahead::recall(&cache, &ahead::key(command, images, choice));
    let planner = Planner {
        plans: run.join("plans"),
        choice: choice.clone(),
        images: images.clone(),
        cache: Some(cache),
    };
    ahead::note(&planner.plans, &planner.fetch_all(jobs));
}

/// Keeps what processes of the run asked for, for the next run of `command`. The images that they were.
pub(crate) fn remember(
    run: &Path,
    choice: &lockstep_patch::Options,
    images: &Images,
    command: &[OsString],
) -> Vec<PathBuf> {
    let asked = ahead::asked(&run.join("plans"));
    if let Some(cache) = Cache::open() {
        ahead::keep(&cache, &ahead::key(command, images, choice), &asked);
    }
    asked.into_iter().map(|job| job.path).collect()
}

/// The name of the plan of the file at `path`.
fn name_of(
    path: &Path,
    bytes: &[u8],
    role: Role,
    choice: &lockstep_patch::Options,
) -> Result<String, PlanError> {
    let metadata = fs::metadata(path)?;
    let image = Image::parse(bytes).map_err(lockstep_patch::PlanFailure::from)?;
    let identity = FileIdentity {
        path: path.as_os_str().as_bytes(),
        size: metadata.size(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
    };
    let key = image_key(image.build_id(), &identity);
    Ok(plan_name(&key, role, choice))
}

/// Whether runs name the image at `path` so: by its file's name, which may lack the version behind `.so`.
fn is_told_by(path: &Path, image: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix(image);
    rest.is_some_and(|rest| rest.is_empty() || image.ends_with(".so") && rest.starts_with('.'))
}

/// A plan to put into the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub role: Role,
    /// Name of its file.
    pub name: String,
    /// The image.
    pub path: PathBuf,
}

/// How long another process of the run is waited for, which makes the plans that this one needs. It may have been stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for a file's lock, which only saves work: where another process keeps it for longer than this (it may be stopped, and
/// may never go on), or locks do not work, both do the same.
pub(crate) fn lock(file: &File, patience: Duration) {
    let end = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    while let Err(Errno::WOULDBLOCK | Errno::INTR) =
        flock(file, FlockOperation::NonBlockingLockExclusive)
    {
        if Instant::now() > end {
            return;
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(32));
    }
}

/// Puts plans into a run.
struct Planner {
    plans: PathBuf,
    choice: lockstep_patch::Options,
    images: Images,
    cache: Option<Cache>,
}

impl Planner {
    /// Puts the plans of all jobs into the run. The error is that of the first job that failed.
    fn provide(&self, mut jobs: Vec<Job>) -> Result<(), PlanError> {
        jobs.retain(|job| !self.is_there(job));
        if jobs.is_empty() {
            return Ok(());
        }
        // One process provides them, the others wait. Where locks do not work, several do the same.
        let run_lock = File::open(&self.plans)?;
        lock(&run_lock, PATIENCE);
        jobs.retain(|job| !self.is_there(job) && !self.fetch(job));
        if jobs.is_empty() {
            return Ok(());
        }
        let cache_lock = self.cache.as_ref().and_then(Cache::lock);
        jobs.retain(|job| !self.fetch(job));
        let result = self.make_all(jobs);
        if let Some(cache) = &self.cache {
            cache.trim();
        }
        drop(cache_lock);
        result
    }

    /// Puts what the cache has into the run; those that are there then.
    fn fetch_all(&self, mut jobs: Vec<Job>) -> Vec<Job> {
        let lock = File::open(&self.plans);
        if let Ok(file) = &lock {
            self::lock(file, PATIENCE);
        }
        jobs.retain(|job| {
            let place = self.plans.join(&job.name);
            let ahead = |cache: &Cache| cache.fetch_ahead(&self.entry(job), &place);
            own::open_trusted(&place).is_ok() || self.cache.as_ref().is_some_and(ahead)
        });
        jobs
    }

    /// Whether the run has a plan that the probe can use, or an empty one, which says that there can be none.
    fn is_there(&self, job: &Job) -> bool {
        own::read(&self.plans.join(&job.name))
            .is_ok_and(|bytes| bytes.is_empty() || checked(&bytes).is_ok())
    }

    fn fetch(&self, job: &Job) -> bool {
        let place = self.plans.join(&job.name);
        self.cache
            .as_ref()
            .is_some_and(|cache| cache.fetch(&self.entry(job), &place))
    }

    /// The job's name in the cache, where plans of one image with and without its own functions lie
    /// side by side.
    fn entry(&self, job: &Job) -> String {
        let stem = job.name.strip_suffix(".plan").unwrap_or(&job.name);
        let scope = self.scope(job);
        let own = match (scope.own_functions, scope.library_calls) {
            (true, true) => "-own-calls",
            (true, false) => "-own",
            _ if scope.mpi_calls => "-mpi",
            _ => "",
        };
        let names = match Self::debug_file(job) {
            Some((_, size)) => format!("-names{size:x}"),
            None => String::new(),
        };
        // A stripped file has the build id of the whole one, and fewer names.
        let size = fs::metadata(&job.path).map_or(0, |found| found.size());
        format!("{stem}{own}{names}-{size:x}.plan")
    }

    /// The file with debug information for the job's image, and its size.
    fn debug_file(job: &Job) -> Option<(PathBuf, u64)> {
        let (build_id, _) = job.name.split_once('-')?;
        let digits = build_id.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
        let build_id: Option<Vec<u8>> = digits.map(byte).collect();
        let path = debug_file(&build_id?)?;
        let size = fs::metadata(&path).ok()?.size();
        Some((path, size))
    }

    fn scope(&self, job: &Job) -> Scope {
        let is_library = !matches!(job.role, Role::Main | Role::Linker);
        let own_functions = is_library && self.images.wants(&job.path);
        let name = job.path.file_name().unwrap_or_default();
        let is_part_of_mpi = Role::is_part_of_mpi(&name.to_string_lossy());
        Scope {
            role: job.role,
            own_functions,
            library_calls: own_functions && !self.images.are_all(),
            mpi_calls: job.role == Role::Library && !own_functions && !is_part_of_mpi,
        }
    }

    /// The choice in the job's image: a function without a name is one of the image that it is told by.
    fn choice_of(&self, job: &Job) -> lockstep_patch::Options {
        let mut choice = self.choice.clone();
        if let Some(fault) = &mut choice.fault
            && let Some(image) = fault.image()
            && !is_told_by(&job.path, image)
        {
            fault.at = String::new();
        }
        choice
    }

    /// Makes the plans, the largest images first, on as many processors as there are.
    fn make_all(&self, mut jobs: Vec<Job>) -> Result<(), PlanError> {
        jobs.sort_by_cached_key(|job| fs::metadata(&job.path).map_or(0, |found| found.size()));
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = workers.min(jobs.len());
        let jobs = Mutex::new(jobs);
        let failure = Mutex::new(None);
        let next = |jobs: &Mutex<Vec<Job>>| match jobs.lock() {
            Ok(mut jobs) => jobs.pop(),
            Err(_) => None,
        };
        let work = || {
            while let Some(job) = next(&jobs) {
                if let Err(error) = self.make(&job) {
                    if matches!(error, PlanError::Image(_)) {
                        // An empty one says that there is none: nobody asks again in this run.
                        let place = self.plans.join(&job.name);
                        let _ = own::put(&draft(&place), &place, &[]);
                    }
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..workers {
                // Where no thread can be had (`ulimit -u`, `ulimit -v`) this one does it all.
                let _ = thread(STACK).and_then(|it| it.spawn_scoped(scope, work));
            }
            work();
        });
        match failure.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn make(&self, job: &Job) -> Result<(), PlanError> {
        let bytes = fs::read(&job.path)?;
        // The file may have been replaced since it was loaded.
        if name_of(&job.path, &bytes, job.role, &self.choice)? != job.name {
            return Err(PlanError::Replaced);
        }
        let choice = self.choice_of(job);
        let debug = Self::debug_file(job).filter(|(_, size)| *size <= MOST_NAMES);
        let scope = self.scope(job);
        let plan = match debug.and_then(|(path, _)| fs::read(path).ok()) {
            Some(names) => lockstep_patch::plan_with_names(&bytes, &names, scope, &choice)?,
            None => lockstep_patch::plan(&bytes, scope, &choice)?,
        };
        let place = self.plans.join(&job.name);
        let entry = self.entry(job);
        let kept = |cache: &Cache| cache.keep(&entry, &plan) && cache.link(&entry, &place);
        if !self.cache.as_ref().is_some_and(kept) {
            own::put(&draft(&place), &place, &plan)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn images_are_told_by_their_names_with_and_without_a_version() {
        let is_told = |image| is_told_by(Path::new("/usr/lib/libsolver.so.0.1"), image);
        assert!(is_told("libsolver.so") && is_told("libsolver.so.0.1"));
        assert!(!is_told("libsolver") && !is_told("libsolve") && !is_told("other.so"));
    }

    #[test]
    fn the_status_tells_what_was_lacking() {
        let of = |number| status(&PlanError::File(io::Error::from_raw_os_error(number)));
        let (no_memory, too_large, many_files, no_space) = (12, 27, 24, 28);
        assert_eq!(of(many_files), planner::DESCRIPTORS);
        assert_eq!(of(no_memory), planner::MEMORY);
        assert_eq!([no_space, too_large].map(of), [planner::DISK; 2]);
        let (no_file, not_permitted) = (2, 1);
        assert_eq!([no_file, not_permitted].map(of), [planner::FAILED; 2]);
        // As `fs::read` says it.
        let memory = PlanError::File(io::ErrorKind::OutOfMemory.into());
        assert_eq!(status(&memory), planner::MEMORY);
        assert_eq!(status(&PlanError::Replaced), planner::FAILED);
    }

    #[test]
    fn nobody_waits_for_ever_for_whoever_has_a_lock() {
        let path = std::env::temp_dir().join(format!("lockstep-lock-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let open = || File::open(&path).unwrap();
        let (one, other) = (open(), open());
        lock(&one, Duration::ZERO);
        let begun = Instant::now();
        lock(&other, Duration::from_millis(50));
        assert!(begun.elapsed() >= Duration::from_millis(50));
        drop(one);
        lock(&other, PATIENCE);
        assert!(begun.elapsed() < PATIENCE);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_cannot_be_planned_is_asked_for_once() {
        let plans = std::env::temp_dir().join(format!("lockstep-plan-{}", std::process::id()));
        fs::create_dir_all(&plans).unwrap();
        let path = plans.join("no-image.so");
        fs::write(&path, "text").unwrap();
        let planner = Planner {
            plans: plans.clone(),
            choice: lockstep_patch::Options::default(),
            images: Images::default(),
            cache: None,
        };
        let job = Job {
            role: Role::Library,
            name: "00-library.plan".to_owned(),
            path,
        };
        assert!(planner.provide(vec![job.clone()]).is_err());
        assert_eq!(fs::read(plans.join(&job.name)).unwrap(), b"");
        assert!(planner.provide(vec![job]).is_ok());
        fs::remove_dir_all(&plans).unwrap();
    }
}
