//! Processes as the kernel lists them, and as their files are named.

use lockstep_format::digest::Digest;
use lockstep_format::process::SUFFIX;
use lockstep_format::stat::Stat;

/// The host's name.
pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(
        |_| "localhost".to_owned(),
        |name| name.trim_end().to_owned(),
    )
}

/// The host's name as it stands in file names: as the probe writes it.
pub(crate) fn host_in_names() -> String {
    let safe = |c: u8| c.is_ascii_alphanumeric() || b"._".contains(&c);
    host()
        .bytes()
        .map(|byte| if safe(byte) { char::from(byte) } else { '_' })
        .collect()
}

/// What stands in files for a name that must not be told.
pub(crate) fn redacted(name: &str) -> String {
    String::from_utf8_lossy(&Digest::of(name.as_bytes())).into_owned()
}

/// Whether `host`, as it stands in a file name, is this host.
pub(crate) fn is_here(host: &str) -> bool {
    host == host_in_names() || host == redacted(&self::host())
}

/// Clock ticks from boot to the start of process `pid`; `None` where there is none, or only what is
/// left of one that ended.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    stat(pid).filter(|it| !it.is_over()).map(|it| it.start)
}

/// The same of a child that was not waited for: it may have ended already.
pub(crate) fn child_start_time(pid: i32) -> Option<u64> {
    stat(pid).map(|it| it.start)
}

/// How process `pid` ended, as `wait` codes it, where nobody waited for it yet; `None` where it ended well, or nobody tells.
pub(crate) fn status_left(pid: i32, start: u64) -> Option<i32> {
    stat(pid).filter(|it| it.start == start)?.status
}

/// What the kernel says of process `pid`.
pub(crate) fn stat(pid: i32) -> Option<Stat> {
    Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// A process file's name, taken apart: `HOST-PID-START-K.lockstep`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileName {
    pub host: String,
    pub pid: i32,
    pub start: u64,
}

impl FileName {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.strip_suffix(SUFFIX)?.rsplitn(4, '-');
        let _count: u32 = parts.next()?.parse().ok()?;
        let start = parts.next()?.parse().ok()?;
        let pid = parts.next()?.parse().ok()?;
        let host = parts.next()?.to_owned();
        Some(Self { host, pid, start })
    }

    /// The name of the file about its end.
    pub(crate) fn end(&self) -> String {
        format!("{}-{}-{}.json", self.host, self.pid, self.start)
    }

    /// Whether the process is there; processes of other hosts may be.
    pub(crate) fn is_alive(&self) -> bool {
        !is_here(&self.host) || self.is_alive_here()
    }

    /// Whether the process is there, on this host.
    pub(crate) fn is_alive_here(&self) -> bool {
        is_here(&self.host) && start_time(self.pid) == Some(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_from_the_end() {
        let name = FileName::parse("node-7.cluster-12-345-0.lockstep");
        let expected = FileName {
            host: "node-7.cluster".to_owned(),
            pid: 12,
            start: 345,
        };
        assert_eq!(name, Some(expected));
        assert_eq!(FileName::parse("node-12-345.lockstep"), None);
        assert_eq!(FileName::parse("node-12-345-0"), None);
    }

    #[test]
    fn this_process_is_alive() {
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        assert!(start_time(own).is_some_and(|start| start > 0));
    }

    #[test]
    fn a_child_that_has_ended_still_has_its_start_time() {
        let mut child = std::process::Command::new("true").spawn().expect("a child");
        let pid = child.id().cast_signed();
        let started = child_start_time(pid);
        while start_time(pid).is_some() {
            std::thread::yield_now();
        }
        assert!(started.is_some());
        assert_eq!(child_start_time(pid), started);
        child.wait().expect("its end");
    }

    #[test]
    fn how_a_child_ended_is_there_until_it_is_waited_for() {
        let mut child = std::process::Command::new("sh");
        let mut child = child.args(["-c", "exit 3"]).spawn().expect("a child");
        let pid = child.id().cast_signed();
        let started = child_start_time(pid).expect("a start");
        while start_time(pid).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(status_left(pid, started), Some(3 << 8));
        assert_eq!(status_left(pid, started + 1), None);
        child.wait().expect("its end");
        assert_eq!(status_left(pid, started), None);
    }
}
