//! Names of processes and traces: `P.T`, as `cli.md` defines them.

use std::fmt;
use std::str::FromStr;

/// `P`, `P~1`, `J:P`: a process of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessName {
    /// Job within the run, from 0; only later jobs are written (`1:6`).
    pub job: u32,
    /// MPI rank, or start order without MPI.
    pub rank: u32,
    /// 0 for the process itself, 1.. for others of its family, in order of start.
    pub sibling: u32,
}

/// `T`, `h1`: a thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadName {
    /// Threads that entered the main program's code, in order of creation; 0 started the process.
    Main(u32),
    /// Threads that only ever ran library code, from 1.
    Helper(u32),
}

/// `P.T`: the trace of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceName {
    /// The process.
    pub process: ProcessName,
    /// The thread in it.
    pub thread: ThreadName,
}

impl ProcessName {
    /// Process `rank` of the first job.
    #[must_use]
    pub const fn rank(rank: u32) -> Self {
        Self {
            job: 0,
            rank,
            sibling: 0,
        }
    }
}

impl TraceName {
    /// Thread `thread` of rank `rank`.
    #[must_use]
    pub const fn new(rank: u32, thread: u32) -> Self {
        Self {
            process: ProcessName::rank(rank),
            thread: ThreadName::Main(thread),
        }
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.job > 0 {
            write!(f, "{}:", self.job)?;
        }
        write!(f, "{}", self.rank)?;
        if self.sibling > 0 {
            write!(f, "~{}", self.sibling)?;
        }
        Ok(())
    }
}

impl fmt::Display for ThreadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main(number) => write!(f, "{number}"),
            Self::Helper(number) => write!(f, "h{number}"),
        }
    }
}

impl fmt::Display for TraceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.process, self.thread)
    }
}

impl FromStr for TraceName {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (process, thread) = text.split_once('.').ok_or(())?;
        let (job, process) = match process.split_once(':') {
            Some((job, rest)) => (job.parse().map_err(|_| ())?, rest),
            None => (0, process),
        };
        let (rank, sibling) = match process.split_once('~') {
            Some((rank, sibling)) => (rank, sibling.parse().map_err(|_| ())?),
            None => (process, 0),
        };
        let rank = rank.parse().map_err(|_| ())?;
        let thread = match thread.strip_prefix('h') {
            Some(number) => ThreadName::Helper(number.parse().map_err(|_| ())?),
            None => ThreadName::Main(thread.parse().map_err(|_| ())?),
        };
        Ok(Self {
            process: ProcessName { job, rank, sibling },
            thread,
        })
    }
}
