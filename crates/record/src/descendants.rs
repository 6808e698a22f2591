//! Everything that a recorder started, at any depth, and how it is ended.
//!
//! ```text
//!  record ─┬─ COMMAND ─── mpirun ─── rank     a process whose parent ends becomes a child of the recorder, its
//!          └─ daemon, lost by its parent      subreaper: none gets lost, and without a child there is no descendant
//! ```
//! Those at the top are asked first: a launcher that is asked to end ends its job in good order, on other nodes, too.
//! (A cgroup would need delegated rights, and the program could see it. The subreaper needs none.)
//! Whatever is left [`AT_THE_TOP`] later is asked itself, and killed after [`GRACE`].
//!
//! *Guarantees*: what a number names is signalled only if it is the process that was found under it. It ends when nothing
//! is left; or after [`PATIENCE`] (another user's processes, some that start new ones without end), and then it says which are.
//! *Costs*: one pass over `/proc` every [`STEP`] while something is left. *Not for*: processes that other services start
//! on behalf of the command, unless they write into a run that is this recorder's alone.

use crate::process::{FileName, is_here, stat};
use crate::stop::Stop;
use crate::tally;
use lockstep_format::stat::Stat;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, wait, waitid,
};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the processes at the top have to end what they started themselves.
const AT_THE_TOP: Duration = Duration::from_secs(2);
/// How long every process has from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// How long they may take to be gone once they were killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const STEP: Duration = Duration::from_millis(20);

/// A process: its number, and when it started.
type Name = (i32, u64);

/// What a recorder started.
pub(crate) struct Descendants<'a> {
    /// The run that only they write, if there is one.
    run: Option<&'a Path>,
    /// Children that were there before: a shell that became this process had started them.
    before: HashSet<Name>,
    is_doomed: AtomicBool,
    /// When the first was asked to end, and who was asked.
    asked: Mutex<(Option<Instant>, HashSet<Name>)>,
}

impl<'a> Descendants<'a> {
    /// Those that are started from here on. Who loses its parent becomes a child of this process.
    pub(crate) fn new(run: Option<&'a Path>) -> Self {
        // Where that is forbidden, those that lost their parents are not found.
        let _ = set_child_subreaper(Some(getpid()));
        Self {
            run,
            before: children(),
            is_doomed: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }

    /// From here on it is certain that all of them have to end, whoever ends first.
    pub(crate) fn doom(&self) {
        self.is_doomed.store(true, Ordering::Release);
    }

    pub(crate) fn are_doomed(&self) -> bool {
        self.is_doomed.load(Ordering::Acquire)
    }

    /// Asks them to end, and kills them after a while, until `stop` is set: for a thread beside the one that waits.
    pub(crate) fn press(&self, stop: &Stop) {
        loop {
            self.signal();
            if stop.sleep(STEP) {
                return;
            }
        }
    }

    /// Ends those that are left, and waits for them; the numbers of those that cannot be ended. For the thread that waits
    /// for children, when the command has ended.
    pub(crate) fn end(&self) -> Vec<i32> {
        let begin = Instant::now();
        let mut empty = 0;
        loop {
            let are_children_left = reap();
            let left = self.left();
            empty = if left.is_empty() { empty + 1 } else { 0 };
            // Among children of before, one look may miss a process whose parent ends just then.
            let is_sure = !are_children_left || !self.before.is_empty() && empty > 1;
            if is_sure && left.is_empty() {
                return Vec::new();
            }
            self.signal();
            if begin.elapsed() >= AT_THE_TOP + GRACE + PATIENCE {
                return left.iter().filter_map(Left::number).collect();
            }
            let is_killing = begin.elapsed() >= AT_THE_TOP + GRACE;
            // Some start new ones as fast as they are killed.
            std::thread::sleep(if is_killing { STEP / 20 } else { STEP });
        }
    }

    /// Sends them what is due.
    fn signal(&self) {
        let left = self.left();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, known) = &mut *asked;
        let time = since.get_or_insert_with(Instant::now).elapsed();
        for it in left {
            let Some(name) = it.line.first().copied() else {
                continue;
            };
            let is_due = it.is_at_the_top || time >= AT_THE_TOP;
            if time >= AT_THE_TOP + GRACE {
                send(&it.line, Signal::KILL);
            } else if is_due && !known.contains(&name) && send(&it.line, Signal::TERM) {
                known.insert(name);
                // A stopped process hears of it when it goes on.
                send(&it.line, Signal::CONT);
            }
        }
    }

    /// Those that have not ended.
    fn left(&self) -> Vec<Left> {
        let own = getpid().as_raw_pid();
        let all = processes();
        let mut left = descendants(own, &all);
        let is_before = |it: &Left| it.line.last().is_some_and(|it| self.before.contains(it));
        left.retain(|it| !is_before(it));
        let known: HashSet<i32> = left.iter().filter_map(Left::number).collect();
        let files = self.run.map(tally::files).unwrap_or_default();
        let others = files.into_iter().map(|(name, _)| name);
        let is_left = |it: &FileName| {
            let found = all.get(&it.pid).filter(|stat| stat.start == it.start);
            is_here(&it.host) && !known.contains(&it.pid) && found.is_some_and(|it| !it.is_over())
        };
        left.extend(others.filter(is_left).map(|it| Left {
            line: vec![(it.pid, it.start)],
            is_at_the_top: false,
        }));
        left
    }
}

/// A process that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Left {
    /// Itself, its parent, and so on, up to a child of the recorder.
    line: Vec<Name>,
    /// Whether it is the recorder's own child.
    is_at_the_top: bool,
}

impl Left {
    fn number(&self) -> Option<i32> {
        self.line.first().map(|it| it.0)
    }
}

/// The children that this process has.
fn children() -> HashSet<Name> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    if waitid(WaitId::All, options).is_err() {
        return HashSet::new();
    }
    let own = getpid().as_raw_pid();
    let all = processes().into_iter();
    let children = all.filter(|(_, stat)| stat.parent == own);
    children.map(|(pid, stat)| (pid, stat.start)).collect()
}

/// All processes of this host.
fn processes() -> HashMap<i32, Stat> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
    numbers.filter_map(|pid| Some((pid, stat(pid)?))).collect()
}

/// Those that descend from process `own`, without those that have ended.
fn descendants(own: i32, all: &HashMap<i32, Stat>) -> Vec<Left> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, stat) in all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut parents = vec![(own, Vec::new())];
    while let Some((parent, line)) = parents.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            let Some(stat) = all.get(&pid) else { continue };
            let mut own_line = vec![(pid, stat.start)];
            own_line.extend_from_slice(&line);
            parents.push((pid, own_line.clone()));
            if !stat.is_over() {
                found.push(Left {
                    line: own_line,
                    is_at_the_top: parent == own,
                });
            }
        }
    }
    found
}

/// Signals the first of a line, if the line is still as it was found: processes were not looked at in one moment, and
/// numbers come again. Whether it was.
fn send(line: &[Name], signal: Signal) -> bool {
    let Some(number) = line.first().and_then(|it| Pid::from_raw(it.0)) else {
        return false;
    };
    let is_it = || {
        let stats = line
            .iter()
            .map(|(pid, start)| stat(*pid).filter(|it| it.start == *start));
        let parents = line.iter().skip(1).map(|it| Some(it.0)).chain([None]);
        stats.zip(parents).all(|(stat, parent)| {
            stat.is_some_and(|it| parent.is_none_or(|parent| it.parent == parent))
        })
    };
    // What cannot be signalled (another user's) is among those that are left in the end.
    let sent = match pidfd_open(number, PidfdFlags::empty()) {
        Ok(fd) if is_it() => pidfd_send_signal(fd, signal),
        // Before Linux 5.3 there is no better way.
        Err(Errno::NOSYS | Errno::PERM) if is_it() => kill_process(number, signal),
        _ => return false,
    };
    sent.is_ok() || sent == Err(Errno::PERM)
}

/// Takes the ends of children that have ended; whether there are others.
fn reap() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parent: i32, state: u8) -> Stat {
        Stat {
            state,
            parent,
            ticks: 0,
            start: 7,
            status: None,
        }
    }

    #[test]
    fn descendants_at_any_depth_and_nobody_else() {
        let all = [
            (1, of(0, b'S')),
            (10, of(1, b'S')),
            (11, of(10, b'S')),
            (12, of(11, b'Z')),
            (13, of(11, b'T')),
            (14, of(13, b'R')),
            (20, of(1, b'S')),
            // Whose parent ended while the list was read is found the next time.
            (21, of(99, b'S')),
        ];
        let mut found = descendants(10, &all.into_iter().collect());
        found.sort_by_key(Left::number);
        let lines: Vec<(Vec<i32>, bool)> = found
            .iter()
            .map(|it| (it.line.iter().map(|it| it.0).collect(), it.is_at_the_top))
            .collect();
        let expected = [
            (vec![11], true),
            (vec![13, 11], false),
            (vec![14, 13, 11], false),
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_number_that_names_another_process_is_not_signalled() {
        let mut child = std::process::Command::new("sleep");
        let mut child = child.arg("60").spawn().expect("a child");
        let pid = child.id().cast_signed();
        let start = crate::process::start_time(pid).expect("a start");
        send(&[(pid, start + 1)], Signal::KILL);
        send(&[(pid, start), (pid, start)], Signal::KILL);
        assert!(child.try_wait().expect("its state").is_none());
        send(&[(pid, start)], Signal::KILL);
        assert!(!child.wait().expect("its end").success());
    }
}
