//! What the recorder does while the command runs: sees processes come and end, and writes down how
//! they ended; has source lines looked up, at low priority.

use crate::directory::Directory;
use crate::error::Error;
use crate::lines;
use crate::process::{FileName, is_here};
use crate::program::plain;
use crate::stop::Stop;
use crate::tally::{ProcessFile, files};
use crate::thread::{STACK, thread};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Signalled(i32),
}

impl End {
    /// From a status as `wait` codes it.
    pub(crate) fn from_status(status: i32) -> Self {
        match status & 0x7f {
            0 => Self::Exited(status >> 8 & 0xff),
            signal => Self::Signalled(signal),
        }
    }

    /// Writes `ends/NAME`, of a process that ended at this time.
    pub(crate) fn write(self, run: &Path, name: &FileName, at: u128) {
        put(run, name, &self.text(&format!(",\"at\":{at}")));
    }

    fn text(self, at: &str) -> String {
        let (kind, code) = match self {
            Self::Exited(code) => ("exited", code),
            Self::Signalled(signal) => ("signalled", signal),
        };
        format!("{{\"kind\":\"{kind}\",\"code\":{code}{at}}}\n")
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> u128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_micros()
}

fn put(run: &Path, name: &FileName, text: &str) {
    let place = run.join("ends").join(name.end());
    let draft = run.join("ends").join(format!(".{}", name.end()));
    // The end is a convenience: without it, the process's own word counts.
    let _ = crate::own::put(&draft, &place, text.as_bytes());
}

/// A process that has ended.
struct Gone {
    name: FileName,
    fd: Option<OwnedFd>,
    /// When that was seen, in microseconds since 1970: the first of a job that is gone may be why the others are.
    at: u128,
    /// By so many looks it was not known how it ended.
    asked: u32,
}

impl Gone {
    fn new(name: FileName, fd: Option<OwnedFd>, at: u128) -> Self {
        Self {
            name,
            fd,
            at,
            asked: 0,
        }
    }

    /// Asks how it ended, and writes that down; whether it is worth asking again. Before somebody waits for it `/proc` tells, and
    /// new kernels do afterwards.
    fn ask(&mut self, run: &Path) -> bool {
        let left = crate::process::status_left(self.name.pid, self.name.start);
        let status = left.or_else(|| crate::pidfd::exit_status(self.fd.as_ref()?));
        let at = format!(",\"at\":{}", self.at);
        self.asked += 1;
        match status {
            Some(status) => put(run, &self.name, &End::from_status(status).text(&at)),
            None if self.asked == 1 => {
                put(run, &self.name, &format!("{{\"kind\":\"gone\"{at}}}\n"));
            }
            None => {}
        }
        status.is_none() && self.asked < MOST_ASKED
    }
}

/// So many looks after its end a process is not asked for any more: this kernel does not tell.
const MOST_ASKED: u32 = 100;

/// The watcher of a run's processes on this host.
pub(crate) struct Watcher<'scope> {
    stop: &'scope Stop,
    threads: Vec<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope> Watcher<'scope> {
    /// Starts watching; nothing where another recorder of the job watches.
    pub(crate) fn start<'env>(
        scope: &'scope Scope<'scope, 'env>,
        directory: &'env Directory,
        stop: &'scope Stop,
    ) -> Result<Self, Error> {
        let mut threads = Vec::new();
        if directory.elected {
            let run = &directory.path;
            // Ranks of one job end within moments of each other: their numbers belong into one sum.
            let grace = if directory.shared {
                GRACE
            } else {
                Duration::ZERO
            };
            threads.push(beside(scope, move || watch(run, stop, grace))?);
            threads.push(beside(scope, move || look_up(run, stop))?);
        }
        Ok(Self { stop, threads })
    }

    /// Looks once more, and ends.
    pub(crate) fn finish(self) {
        self.stop.set();
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Starts a thread beside the command.
pub(crate) fn beside<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, ()>, Error> {
    let started = thread(STACK).and_then(|it| it.spawn_scoped(scope, work));
    started.map_err(|error| {
        let error = plain(&error);
        Error::own(format!(
            "expected to have a thread beside the command, found none (ulimit -u, ulimit -v): {error}"
        ))
    })
}

/// Milliseconds between two looks at the directory: short at first, when a launcher starts its ranks.
fn pause(looks: u32) -> u64 {
    u64::from((5 + looks / 4).min(50))
}

/// How long the elected recorder of a job waits for the other ranks' ends after that of its own.
const GRACE: Duration = Duration::from_secs(1);

fn watch(run: &Path, stop: &Stop, grace: Duration) {
    let mut stopped: Option<Instant> = None;
    let mut known = HashSet::new();
    let mut open: HashMap<FileName, Option<OwnedFd>> = HashMap::new();
    let mut gone: Vec<Gone> = Vec::new();
    for looks in 0.. {
        let last = stop.is_set()
            && (open.is_empty() || stopped.get_or_insert_with(Instant::now).elapsed() >= grace);
        for (name, _) in files(run) {
            if !is_here(&name.host) || !known.insert(name.clone()) {
                continue;
            }
            let Some(pid) = Pid::from_raw(name.pid) else {
                continue;
            };
            // The number may be another process's by now: its start time tells.
            let fd = match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(fd) => Some(fd),
                // Kernels before 5.3 have none: `/proc` is asked at every look.
                Err(Errno::NOSYS) => None,
                Err(_) => continue,
            };
            if name.is_alive_here() {
                open.insert(name, fd);
            }
        }
        let mut ended = Vec::new();
        {
            let pollable = open
                .iter()
                .filter_map(|(name, fd)| Some((name, fd.as_ref()?)));
            let (names, mut fds): (Vec<&FileName>, Vec<_>) = pollable
                .map(|(name, fd)| (name, PollFd::new(fd, PollFlags::IN)))
                .unzip();
            let wait = if last { 0 } else { pause(looks) };
            let timeout = Timespec {
                tv_sec: 0,
                tv_nsec: (wait * 1_000_000).cast_signed(),
            };
            if fds.is_empty() {
                stop.sleep(Duration::from_millis(wait));
            } else if poll(&mut fds, Some(&timeout)).is_ok() {
                for (name, fd) in names.iter().zip(&fds) {
                    if !fd.revents().is_empty() {
                        ended.push((*name).clone());
                    }
                }
            }
        }
        let unpolled = open.iter().filter(|(_, fd)| fd.is_none());
        let over = unpolled
            .map(|(name, _)| name)
            .filter(|name| !name.is_alive_here());
        ended.extend(over.cloned());
        // In which order those of one look went nobody knows.
        let at = now();
        let ended = ended
            .into_iter()
            .filter_map(|name| open.remove_entry(&name));
        gone.extend(ended.map(|(name, fd)| Gone::new(name, fd, at)));
        gone.retain_mut(|it| it.ask(run));
        if last {
            return;
        }
    }
}

/// Looks up the source lines of every main program that appears.
fn look_up(run: &Path, stop: &Stop) {
    let _ = rustix::process::nice(10);
    let mut seen = HashSet::new();
    let mut done: HashSet<(PathBuf, String)> = HashSet::new();
    for looks in 0.. {
        let last = stop.is_set();
        for (_, place) in files(run) {
            if seen.contains(&place) {
                continue;
            }
            let Ok(Some(file)) = ProcessFile::open(&place) else {
                continue;
            };
            seen.insert(place);
            for image in file.images().into_iter().filter(|image| image.is_recorded) {
                if done.insert((image.path.clone(), image.plan.clone())) {
                    // Lines are a convenience: an image that is gone has none.
                    let _ = lines::ensure(run, &image.plan, &image.path);
                }
            }
        }
        if last {
            return;
        }
        stop.sleep(Duration::from_millis(4 * pause(looks)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_as_wait_codes_them() {
        assert_eq!(End::from_status(3 << 8), End::Exited(3));
        assert_eq!(End::from_status(9), End::Signalled(9));
        assert_eq!(End::from_status(0x80 | 11), End::Signalled(11));
        let text = End::Signalled(11).text(",\"at\":7");
        assert_eq!(text, "{\"kind\":\"signalled\",\"code\":11,\"at\":7}\n");
    }
}
