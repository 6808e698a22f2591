//! The run directory: who makes it, who may join it, and what is never replaced.
//!
//! Several recorders of one job (one a rank) come with the same directory. `mkdir` elects one; the
//! marker, written under another name and linked into place, tells the others which job it is.

use crate::Options;
use crate::error::Error;
use crate::own;
use crate::process::FileName;
use crate::program::plain;
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::process::{SUFFIX, VERSION};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a watcher said of a job that hung, in its run.
pub const SAID: &str = "hang.json";
/// What a run may hold besides its parts.
const OTHERS: [&str; 5] = [
    SAID,
    crate::probe::FOLDER,
    lockstep_format::buffer::FOLDER,
    lockstep_format::fault::report::DIRECTORY,
    lockstep_format::sealed::FILE,
];
/// The file whose presence makes a directory a run.
pub(crate) const MARKER: &str = "lockstep.json";
/// What a run holds besides.
const PARTS: [&str; 5] = ["processes", "plans", "lines", "ends", "budgets"];
/// Where runs lie that were not given a place.
const DEFAULT_PARENT: &str = "lockstep-runs";
/// A marker is a page of text.
const LARGEST_MARKER: u64 = 1 << 20;
/// How long a recorder that joins waits for the elected one's marker.
const PATIENCE: Duration = Duration::from_secs(10);

/// The directory of this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory {
    /// Absolute.
    pub path: PathBuf,
    /// As the user wrote it, or would have.
    pub shown: PathBuf,
    /// Whether this recorder made it, and not another of the same job.
    pub elected: bool,
    /// Whether other recorders of the same job may write here too.
    pub shared: bool,
}

/// What tells this job from every other, and the rank in it; `None` outside a launcher.
pub(crate) fn job_token() -> Option<String> {
    let number = |name: &str| std::env::var(name).ok()?.trim().parse::<u64>().ok();
    let launcher = LAUNCHERS
        .iter()
        .find(|launcher| number(launcher.rank).is_some())?;
    let parts: Vec<String> = launcher
        .token
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .collect();
    if parts.is_empty() {
        // Ranks of one job have the same parent on one node.
        let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
        let start = crate::process::start_time(parent).unwrap_or(0);
        return Some(format!("parent-{parent}-{start}"));
    }
    Some(parts.join("+"))
}

/// Makes or joins the directory for what `options` record.
pub(crate) fn claim(output: Option<&Path>, options: &Options) -> Result<Directory, Error> {
    let mut token = job_token();
    if options.redact {
        // It may hold the host's name.
        token = token.map(|token| crate::process::redacted(&token));
    }
    let shown = match output {
        Some(path) => path.to_owned(),
        None => return claim_default(options, token.as_deref()),
    };
    match claim_at(&shown, options, token.as_deref())? {
        Claim::Ours(directory) => Ok(directory),
        Claim::Taken(reason) if options.force && !reason.joinable => {
            remove_run(&shown)?;
            match claim_at(&shown, options, token.as_deref())? {
                Claim::Ours(directory) => Ok(directory),
                Claim::Taken(reason) => Err(Error::own(reason.text)),
            }
        }
        Claim::Taken(reason) => Err(Error::own(reason.text)),
    }
}

enum Claim {
    Ours(Directory),
    Taken(Taken),
}

struct Taken {
    text: String,
    joinable: bool,
}

fn claim_default(options: &Options, token: Option<&str>) -> Result<Directory, Error> {
    let name = options
        .command
        .first()
        .and_then(|program| Path::new(program).file_name())
        .map_or_else(
            || "run".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
    if let Some(token) = token {
        let shown = Path::new(DEFAULT_PARENT).join(format!("{name}-{}", file_safe(token)));
        return match claim_at(&shown, options, Some(token))? {
            Claim::Ours(directory) => Ok(directory),
            Claim::Taken(reason) => Err(Error::own(reason.text)),
        };
    }
    for number in 1..100_000u32 {
        let shown = Path::new(DEFAULT_PARENT).join(format!("{name}-{number}"));
        if shown.symlink_metadata().is_ok() {
            continue;
        }
        if let Claim::Ours(directory) = claim_at(&shown, options, None)? {
            return Ok(directory);
        }
    }
    Err(Error::own(format!(
        "{DEFAULT_PARENT}: full of runs of {name}; give -o DIR"
    )))
}

fn file_safe(token: &str) -> String {
    token
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._+-".contains(c) {
                c
            } else {
                '_'
            }
        })
        .take(100)
        .collect()
}

fn claim_at(shown: &Path, options: &Options, token: Option<&str>) -> Result<Claim, Error> {
    let failed = |what: &str, error: &std::io::Error| {
        Error::own(format!("{}: {what}: {}", shown.display(), plain(error)))
    };
    if let Some(parent) = shown
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        fs::create_dir_all(parent)
            .map_err(|error| failed("the run cannot be made here", &error))?;
    }
    let made = match own::create_directory(shown, options.mode) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(failed("the run cannot be made here", &error)),
    };
    let path = shown
        .canonicalize()
        .map_err(|error| failed("not a directory to write to", &error))?;
    let directory = |elected| Directory {
        path: path.clone(),
        shown: shown.to_owned(),
        elected,
        shared: token.is_some(),
    };
    if !made {
        let metadata =
            fs::symlink_metadata(&path).map_err(|error| failed("not accessible", &error))?;
        if !metadata.is_dir() {
            return Ok(taken(format!(
                "{}: expected a new or empty directory, found a file",
                shown.display()
            )));
        }
        if !own::is_own(metadata.uid()) && !belongs_to_us(&path, metadata.uid()) {
            return Ok(taken(format!(
                "{}: expected a new directory or one of yours, found one of user {}, who could replace what is in it",
                shown.display(),
                metadata.uid()
            )));
        }
        if !is_empty(&path).map_err(|error| failed("not readable", &error))? {
            return join(&path, shown, token).map(|joined| match joined {
                Ok(()) => Claim::Ours(directory(false)),
                Err(reason) => Claim::Taken(reason),
            });
        }
    }
    // New, or empty: whoever links the marker into place has won.
    if !made {
        // Where it belongs to root, what is in it is still closed to others.
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(options.mode));
    }
    let won = begin(&path, options, token).map_err(|error| {
        if token.is_none() {
            abandon(&path, made);
        }
        failed("the run cannot be written", &error)
    })?;
    if won {
        return Ok(Claim::Ours(directory(true)));
    }
    join(&path, shown, token).map(|joined| match joined {
        Ok(()) => Claim::Ours(directory(false)),
        Err(reason) => Claim::Taken(reason),
    })
}

/// Writes what each run has; false where another recorder was first.
fn begin(path: &Path, options: &Options, token: Option<&str>) -> std::io::Result<bool> {
    for part in PARTS {
        match own::create_directory(&path.join(part), options.mode) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    write_marker(path, options, token)
}

/// Whether what we make in the directory belongs to the same user as the directory: some file systems give it to another one.
fn belongs_to_us(path: &Path, owner: u32) -> bool {
    let draft = draft_of(path);
    let made = own::create(&draft).and_then(|file| file.metadata());
    let _ = fs::remove_file(&draft);
    made.is_ok_and(|made| made.uid() == owner)
}

/// Takes back what [`begin`] wrote until it failed: without a marker nobody would know whose it is. Only empty directories go.
fn abandon(path: &Path, made: bool) {
    for part in PARTS {
        let _ = fs::remove_dir(path.join(part));
    }
    if made {
        let _ = fs::remove_dir(path);
    }
}

fn taken(text: String) -> Claim {
    Claim::Taken(Taken {
        text,
        joinable: false,
    })
}

fn is_empty(path: &Path) -> std::io::Result<bool> {
    Ok(fs::read_dir(path)?.next().is_none())
}

/// Whether the run at `path` is of this very job.
fn join(path: &Path, shown: &Path, token: Option<&str>) -> Result<Result<(), Taken>, Error> {
    let deadline = Instant::now() + PATIENCE;
    let expected = "expected a new or empty directory, found";
    loop {
        match read_token(path) {
            Ok(Some(found)) => {
                if token.is_some() && found.as_deref() == token {
                    return same_version(path, shown).map(Ok);
                }
                let whose = match (token, found) {
                    (Some(_), Some(_)) => "the run of another job",
                    _ => "a former run",
                };
                return Ok(Err(Taken {
                    text: format!(
                        "{}: {expected} {whose} (--force replaces it)",
                        shown.display()
                    ),
                    joinable: false,
                }));
            }
            // Another recorder of this job has made the directory and writes its marker right now.
            Ok(None) if token.is_some() && Instant::now() < deadline && is_ours_in_part(path) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => {
                return Ok(Err(Taken {
                    text: format!("{}: {expected} other files", shown.display()),
                    joinable: false,
                }));
            }
            Err(error) => {
                return Err(Error::own(format!(
                    "{}: {}",
                    shown.display(),
                    plain(&error)
                )));
            }
        }
    }
}

/// Refuses to join a run whose first recorder writes another version of the format.
fn same_version(path: &Path, shown: &Path) -> Result<(), Error> {
    let marker = read_marker(path).ok().flatten().unwrap_or_default();
    let version = marker.get("version").and_then(serde_json::Value::as_u64);
    if version == Some(u64::from(VERSION)) {
        return Ok(());
    }
    let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    let tool = marker.get("tool").and_then(serde_json::Value::as_str);
    Err(Error::own(format!(
        "{}: expected that all recorders of a job are of one version, found format {version} of lockstep {} there, and format {VERSION} of lockstep {} here",
        shown.display(),
        tool.unwrap_or("?"),
        env!("CARGO_PKG_VERSION"),
    )))
}

/// Whether everything in the directory is part of a run in the making.
fn is_ours_in_part(path: &Path) -> bool {
    fs::read_dir(path).is_ok_and(|entries| {
        entries.flatten().all(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            PARTS.contains(&&*name) || OTHERS.contains(&&*name) || name.starts_with(MARKER)
        })
    })
}

/// The marker's job token; the outer `None` where there is no marker of ours.
#[allow(clippy::option_option)]
fn read_token(path: &Path) -> std::io::Result<Option<Option<String>>> {
    Ok(read_marker(path)?.map(|marker| {
        let token = marker.get("job").and_then(|job| job.as_str());
        token.map(str::to_owned)
    }))
}

/// The marker of the run at `path`; `None` where there is none of ours.
fn read_marker(path: &Path) -> std::io::Result<Option<serde_json::Value>> {
    let mut text = Vec::new();
    let read = own::open(&path.join(MARKER));
    match read.and_then(|file| file.take(LARGEST_MARKER).read_to_end(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Ok(marker) = serde_json::from_slice::<serde_json::Value>(&text) else {
        return Ok(None);
    };
    let is_ours = marker.get("tool").is_some() && marker.get("version").is_some();
    Ok(is_ours.then_some(marker))
}

/// Writes the marker; false where another recorder was first.
fn write_marker(path: &Path, options: &Options, token: Option<&str>) -> std::io::Result<bool> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let lossy = |text: &OsString| text.to_string_lossy().into_owned();
    let told = |value: String| (!options.redact).then_some(value);
    let words = if options.redact {
        1
    } else {
        options.command.len()
    };
    let marker = serde_json::json!({
        "version": VERSION,
        "tool": env!("CARGO_PKG_VERSION"),
        "command": options.command.iter().take(words).map(lossy).collect::<Vec<_>>(),
        "directory": std::env::current_dir().ok().and_then(|path| told(lossy(&path.into()))),
        "host": told(crate::process::host()),
        "codec": options.codec.name(),
        "job": token,
        "recorder": own_name(options.redact),
        "started": now.as_secs(),
    });
    let draft = draft_of(path);
    // A link is made or not: no reader ever sees half a marker.
    let linked = own::create_draft(&draft)
        .and_then(|mut file| file.write_all(format!("{marker:#}\n").as_bytes()))
        .and_then(|()| fs::hard_link(&draft, path.join(MARKER)));
    let removed = fs::remove_file(&draft);
    match linked.and(removed) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// This recorder, as files of processes are named.
pub(crate) fn own_name(redact: bool) -> String {
    let host = if redact {
        crate::process::redacted(&crate::process::host())
    } else {
        crate::process::host_in_names()
    };
    let pid = std::process::id();
    let start = crate::process::start_time(pid.cast_signed()).unwrap_or(0);
    format!("{host}-{pid}-{start}")
}

/// A name for a marker that is being written.
fn draft_of(path: &Path) -> PathBuf {
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    path.join(format!(
        "{MARKER}.{}-{}-{}",
        crate::process::host_in_names(),
        std::process::id(),
        DRAFTS.fetch_add(1, Ordering::Relaxed)
    ))
}

/// A directory for what is not to be kept.
pub(crate) fn temporary() -> Result<Directory, Error> {
    let id = std::process::id();
    let start = crate::process::start_time(id.cast_signed()).unwrap_or(0);
    remove_left_over(&std::env::temp_dir());
    let path = std::env::temp_dir().join(format!("{}{id}-{start}", temporary_prefix()));
    let failed = |error: std::io::Error| {
        let shown = path.display();
        Error::own(format!("{shown}: cannot be made: {}", plain(&error)))
    };
    own::create_directory(&path, 0o700).map_err(failed)?;
    own::create_directory(&path.join("plans"), 0o700).map_err(failed)?;
    let path = path.canonicalize().map_err(failed)?;
    Ok(Directory {
        shown: path.clone(),
        path,
        elected: false,
        shared: false,
    })
}

/// What the names of this host's temporary directories begin with; process id and start time follow.
fn temporary_prefix() -> String {
    format!("lockstep-inject-{}-", crate::process::host_in_names())
}

/// Removes what processes of this user and host left that were killed before they could.
fn remove_left_over(among: &Path) {
    let prefix = temporary_prefix();
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(among).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let Some((id, start)) = maker.and_then(|maker| maker.split_once('-')) else {
            continue;
        };
        let (Ok(id), Ok(start)) = (id.parse::<i32>(), start.parse::<u64>()) else {
            continue;
        };
        let is_own = entry
            .metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == user);
        if is_own && crate::process::start_time(id) != Some(start) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether this is a run with nothing of anybody else's in it, so that it may be removed. Links are not
/// followed.
///
/// # Errors
/// What was found instead.
pub fn check_run(shown: &Path) -> Result<(), Error> {
    let refuse = |found: &str| {
        let shown = shown.display();
        Error::own(format!(
            "{shown}: expected a run (a directory with {MARKER}), found {found}"
        ))
    };
    let metadata = match fs::symlink_metadata(shown) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(refuse("nothing")),
        Err(error) => return Err(refuse(&plain(&error))),
    };
    if metadata.is_symlink() {
        return Err(refuse("a symbolic link"));
    }
    if !metadata.is_dir() {
        return Err(refuse("no directory"));
    }
    let marker = fs::symlink_metadata(shown.join(MARKER));
    if !marker.is_ok_and(|marker| marker.is_file() && marker.len() <= LARGEST_MARKER) {
        return Err(refuse(&format!("a directory without {MARKER}")));
    }
    match read_token(shown) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(refuse(&format!("a {MARKER} of something else"))),
        Err(error) => return Err(refuse(&plain(&error))),
    }
    let known = |name: &[u8]| {
        let mut parts = PARTS.iter().chain(&OTHERS);
        let draft = name.strip_prefix(b".").unwrap_or(name);
        parts.any(|part| part.as_bytes() == name)
            || name.starts_with(MARKER.as_bytes())
            || draft == SAID.as_bytes()
    };
    let foreign = fs::read_dir(shown)
        .map_err(|error| refuse(&plain(&error)))?
        .flatten()
        .find(|entry| !known(entry.file_name().as_bytes()));
    if let Some(entry) = foreign {
        return Err(refuse(&format!(
            "a run with a file of somebody else's in it ({})",
            entry.file_name().display()
        )));
    }
    Ok(())
}

/// Whether this is a run that may be removed: [`check_run`], and no process of this host writes to it any more.
///
/// # Errors
/// What was found instead.
pub fn check_ended(shown: &Path) -> Result<(), Error> {
    check_run(shown)?;
    let running = |what: &str, pid| {
        Err(Error::own(format!(
            "{}: expected a run that has ended, found its {what} {pid} running",
            shown.display()
        )))
    };
    if let Some(process) = names_of_processes(shown).find(FileName::is_alive_here) {
        return running("process", process.pid);
    }
    // Before a process has a file, and after all have ended, the recorder is at work.
    match recorder(shown) {
        Some(it) if it.is_alive_here() && it.pid.unsigned_abs() != std::process::id() => {
            running("recorder", it.pid)
        }
        _ => Ok(()),
    }
}

/// The same where nobody looks: and no process of another host is known that may be running.
///
/// # Errors
/// What was found instead.
pub fn check_settled(shown: &Path) -> Result<(), Error> {
    check_ended(shown)?;
    let has_ended = |name: &FileName| {
        // A process that no watcher saw end may have said so itself; a run that is packed or sealed has ended.
        !name.is_alive() || shown.join("ends").join(name.end()).exists()
    };
    match names_of_processes(shown).find(|name| !has_ended(name)) {
        None => Ok(()),
        Some(process) => Err(Error::own(format!(
            "{}: expected a run that has ended, found its process {} on {}, which nobody saw end",
            shown.display(),
            process.pid,
            process.host
        ))),
    }
}

fn names_of_processes(run: &Path) -> impl Iterator<Item = FileName> {
    let files = fs::read_dir(run.join(PARTS[0])).into_iter().flatten();
    let names = files.flatten().map(|it| it.file_name());
    names.filter_map(|it| FileName::parse(it.to_str()?))
}

/// The recorder that made the run, as its marker has it.
fn recorder(run: &Path) -> Option<FileName> {
    let marker = read_marker(run).ok()??;
    let name = marker.get("recorder")?.as_str()?;
    FileName::parse(&format!("{name}-0{SUFFIX}"))
}

/// Removes a run that has ended, and nothing but that.
///
/// # Errors
/// If [`check_ended`] refuses it, or it cannot be removed.
pub fn remove_run(shown: &Path) -> Result<(), Error> {
    check_ended(shown)?;
    fs::remove_dir_all(shown).map_err(|error| {
        Error::own(format!(
            "{}: cannot be removed: {}",
            shown.display(),
            plain(&error)
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("lockstep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn options(force: bool) -> Options {
        Options {
            images: Vec::new(),
            command: vec![OsString::from("./app")],
            output: None,
            buffer: None,
            mode: 0o700,
            pack: false,
            trace: Vec::new(),
            skip: Vec::new(),
            codec: lockstep_format::codec::Kind::None,
            memory: crate::Memory::Normal,
            size: crate::Size::Unbounded,
            redact: false,
            arguments: true,
            time: true,
            every_time: false,
            events: true,
            force,
            untraced_is_fine: false,
            probe: crate::Probe::Carried(b""),
        }
    }

    fn ours(claim: Result<Claim, Error>) -> Option<bool> {
        match claim.unwrap() {
            Claim::Ours(directory) => Some(directory.elected),
            Claim::Taken(_) => None,
        }
    }

    #[test]
    fn one_is_elected_others_of_the_job_join_and_strangers_are_refused() {
        let root = scratch("claim");
        let run = root.join("a run");
        let options = options(false);
        let claim = |token| ours(claim_at(&run, &options, token));
        assert_eq!(claim(Some("job 1")), Some(true));
        assert_eq!(claim(Some("job 1")), Some(false));
        assert_eq!(claim(Some("job 2")), None);
        assert_eq!(claim(None), None);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn many_at_once_elect_exactly_one() {
        let root = scratch("election");
        let run = root.join("run");
        let elected = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| scope.spawn(|| ours(claim_at(&run, &options(false), Some("job")))))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .filter(|joined| joined.unwrap())
                .count()
        });
        assert_eq!(elected, 1);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn force_replaces_runs_only() {
        let root = scratch("force");
        let other = root.join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("thesis.tex"), "years of work").unwrap();
        assert!(claim(Some(&other), &options(true)).is_err());
        assert!(other.join("thesis.tex").exists());
        let run = root.join("run");
        assert!(claim(Some(&run), &options(false)).is_ok());
        assert!(claim(Some(&run), &options(false)).is_err());
        assert!(claim(Some(&run), &options(true)).is_ok());
        fs::write(run.join("notes.txt"), "mine").unwrap();
        assert!(claim(Some(&run), &options(true)).is_err());
        assert!(run.join("notes.txt").exists());
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn what_killed_processes_left_goes() {
        let root = std::env::temp_dir().join(format!("lockstep-left-{}", std::process::id()));
        let id = std::process::id();
        let start = crate::process::start_time(id.cast_signed()).unwrap();
        let prefix = temporary_prefix();
        let names = [
            format!("{prefix}{id}-{start}"),
            format!("{prefix}{id}-{}", start + 1),
            format!("{prefix}x-{start}"),
            format!("other-{id}-{}", start + 1),
        ];
        for name in &names {
            fs::create_dir_all(root.join(name).join("plans")).unwrap();
        }
        remove_left_over(&root);
        let there: Vec<bool> = names.iter().map(|name| root.join(name).exists()).collect();
        assert_eq!(there, [true, false, true, true]);
        fs::remove_dir_all(&root).unwrap();
    }
}
