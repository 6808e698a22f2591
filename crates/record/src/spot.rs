//! Where a process that goes on computes right now, as a debugger would say it: the source lines in which one of its running threads
//! is found, looked at some times. A trace shows the call that such a thread is in, not where in it.
//!
//! *Guarantees*: a thread that waits in the kernel is left alone (a system call might come back early); one that runs stops for
//! a moment at each look and goes on as before. Its parent hears nothing of that. Where it may not be looked at (Yama, another
//! user, a debugger that is attached), nothing is found. *Costs*: [`LOOKS`] looks, [`BETWEEN`] between two of them, [`PATIENCE`] at most, and the debug information of the images that it is in
//! is read. *Not for*: code without source lines, or of other hosts.

use crate::lines::MOST;
use crate::thread::{STACK, thread};
use lockstep_binary::{Image, Lines};
use lockstep_format::stat::Stat;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// So often a thread is looked at, with so much time between two looks.
const LOOKS: usize = 9;
const BETWEEN: Duration = Duration::from_millis(3);
/// All looks together take no longer. A thread that does not stop by then is in the kernel: where others want the processor, too,
/// it may be long until it gets one.
const PATIENCE: Duration = Duration::from_secs(1);

/// Files and lines in which a running thread of process `pid` was found, each as often as it was: thread `tid`, or any.
#[must_use]
pub fn spots(pid: u32, tid: Option<u32>) -> Vec<(String, u32)> {
    // Whoever traces a thread lets go of it when it ends, whatever happened.
    let looked = thread(STACK).and_then(|it| it.spawn(move || counters(pid, tid)));
    let counters = looked.ok().and_then(|it| it.join().ok());
    lines(pid, &counters.unwrap_or_default())
}

/// The program counters of a running thread.
fn counters(pid: u32, tid: Option<u32>) -> Vec<u64> {
    let mut found = Vec::new();
    let begin = Instant::now();
    for look in 0..LOOKS {
        if look > 0 {
            std::thread::sleep(BETWEEN);
        }
        if begin.elapsed() >= PATIENCE {
            break;
        }
        let Some(thread) = running(pid, tid) else {
            continue;
        };
        match counter(thread, begin) {
            Ok(Some(counter)) => found.push(counter),
            Ok(None) => {}
            // It may not be traced, or does not stop.
            Err(_) => break,
        }
    }
    found
}

/// A thread of the process that runs, or this one: the first, if it does.
fn running(pid: u32, tid: Option<u32>) -> Option<i32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let threads = tasks.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut threads: Vec<i32> = threads.collect();
    threads.retain(|it| tid.is_none_or(|tid| u32::try_from(*it) == Ok(tid)));
    threads.sort_unstable();
    threads.into_iter().find(|thread| {
        let stat = fs::read(format!("/proc/{pid}/task/{thread}/stat"));
        let stat = stat.ok().and_then(|line| Stat::parse(&line));
        let call = || fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
        stat.is_some_and(|it| it.state == b'R') && call().is_ok_and(|it| it.trim() == "running")
    })
}

/// Stops a thread, reads where it is, and lets it go on; the looks began at `begin`.
fn counter(thread: i32, begin: Instant) -> nix::Result<Option<u64>> {
    let thread = Pid::from_raw(thread);
    ptrace::seize(thread, ptrace::Options::empty())?;
    ptrace::interrupt(thread)?;
    loop {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
        match waitpid(thread, Some(flags))? {
            WaitStatus::StillAlive if begin.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_micros(20));
            }
            WaitStatus::PtraceEvent(..) => {
                let registers = ptrace::getregs(thread);
                ptrace::detach(thread, None)?;
                return Ok(Some(registers?.rip));
            }
            // A signal comes to it right now: that is its own.
            WaitStatus::Stopped(_, signal) => {
                ptrace::detach(thread, signal)?;
                return Ok(None);
            }
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(None),
            _ => return Err(nix::Error::ETIMEDOUT),
        }
    }
}

/// A mapped part of a file.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ').map(str::trim_start);
    let (start, end) = words.next()?.split_once('-')?;
    let offset = words.nth(1)?;
    let path = words.nth(2)?.trim_start();
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    path.starts_with('/').then_some(Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
    })
}

/// Their source lines.
fn lines(pid: u32, counters: &[u64]) -> Vec<(String, u32)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let maps: Vec<Mapping> = maps.lines().filter_map(mapping).collect();
    let mut by_file: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for counter in counters {
        let holds = |it: &&Mapping| (it.start..it.end).contains(counter);
        if let Some(it) = maps.iter().find(holds) {
            let of_file = by_file.entry(&it.path).or_default();
            of_file.push(counter - it.start + it.offset);
        }
    }
    let mut found = Vec::new();
    for (path, offsets) in by_file {
        // As the process sees it: it may be in a container.
        let own = fs::read(format!("/proc/{pid}/root{path}"));
        let Ok(bytes) = own.or_else(|_| fs::read(path)) else {
            continue;
        };
        let Ok(image) = Image::parse(&bytes) else {
            continue;
        };
        let Some(lines) = Lines::new(&image, MOST) else {
            continue;
        };
        let address = |offset: u64| {
            image.segments().iter().find_map(|segment| {
                let begin = segment.bytes.as_ptr().addr() - bytes.as_ptr().addr();
                let inside = offset.checked_sub(begin as u64)?;
                let holds = segment.executable && inside < segment.bytes.len() as u64;
                holds.then_some(segment.address + inside)
            })
        };
        let addresses = offsets.into_iter().filter_map(address);
        found.extend(addresses.filter_map(|it| lines.find(it)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    #[test]
    fn mappings_of_files() {
        let line = "55e0c0a00000-55e0c0b00000 r-xp 0001c000 fe:01 42                 /opt/a b/solve (deleted)";
        let found = mapping(line).expect("a mapping");
        assert_eq!(
            (found.start, found.end, found.offset),
            (0x55e0_c0a0_0000, 0x55e0_c0b0_0000, 0x1c000)
        );
        assert_eq!(found.path, "/opt/a b/solve (deleted)");
        assert!(mapping("7ffd1000-7ffd2000 rw-p 00000000 00:00 0    [stack]").is_none());
        assert!(mapping("7ffd1000-7ffd2000 rw-p 00000000 00:00 0").is_none());
        assert!(mapping("").is_none());
    }

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn started(word: &str) -> Ended {
        let mut command = Command::new("sh");
        let child = command.args(["-c", word]).spawn().expect("a shell");
        std::thread::sleep(Duration::from_millis(200));
        Ended(child)
    }

    #[test]
    fn who_computes_is_looked_at_and_who_sleeps_is_not() {
        let mut busy = started("while :; do :; done");
        let idle = started("exec sleep 60");
        let found = counters(busy.0.id(), None);
        // Where it may be looked at: not under every policy.
        assert!(found.is_empty() || found.len() == LOOKS, "{found:x?}");
        assert!(counters(idle.0.id(), None).is_empty() && counters(0, None).is_empty());
        assert!(spots(idle.0.id(), None).is_empty());
        // Its only thread, and none of that name.
        let (own, other) = (busy.0.id(), idle.0.id());
        assert!(running(own, Some(own)).is_some() && running(own, Some(other)).is_none());
        // It goes on, and nobody heard of a stop.
        assert!(busy.0.try_wait().expect("its state").is_none());
        assert!(running(busy.0.id(), None).is_some());
    }
}
