//! Writes runs, from whatever somebody has: functions by name, threads of processes, calls and returns, times, arguments.
//!
//! ```text
//! Builder ── function("main") ── thread(process) ── call, ret, ... ── finish
//!              plans/*.plan        processes/*.lockstep              lockstep.json
//! ```
//! The files are what `docs/trace-format.md` says of a process that has ended: events are committed when a thread
//! is finished, and nothing is staged. A thread is written from beginning to end before the next one of its process
//! begins, so that one codec's memory is enough for any number of threads.
//!
//! *Guarantees*: what was written is read back event by event; more than a run has room for is refused.
//! *Costs*: a codec's memory and the names. *Not for*: recording as it happens: a run is readable when it is
//! finished.

mod catalogue;
mod file;
mod thread;

pub use catalogue::Named;
use catalogue::{Images, PlanFact};
use file::{Pages, chunk_header};
use thread::{BATCH, Encoder, Trace};

use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyEncoder, Kind};
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::plan::Role;
use lockstep_format::process::{
    BYTE_ORDER, MAGIC, PAGE, SUFFIX, VERSION, chunk, end, fact, flag, header, kind,
};
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Why a run cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More than a run has room for.
    #[error("{0}")]
    TooMuch(String),
    /// The operating system refused to write.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Why it could not be.
        source: io::Error,
    },
}

impl Error {
    fn write(path: &Path, source: io::Error) -> Self {
        Self::Write {
            path: path.to_owned(),
            source,
        }
    }
}

/// The codec of imported runs.
const CODEC: Kind = Kind::Lockstep;
/// Processes of a run.
const MOST_PROCESSES: usize = 1 << 17;
/// Threads of a run.
const MOST_THREADS: usize = 1 << 18;
/// The last epoch, in nanoseconds: a century and more is left of the clock behind it.
const LATEST: u64 = u64::MAX / 4;

/// A function of the run that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionNumber(u32);

/// What is known of a process.
#[derive(Debug, Clone, Default)]
pub struct ProcessFacts {
    /// Its host; may be empty.
    pub host: String,
    /// Path of its program.
    pub program: String,
    /// Its process id.
    pub pid: u32,
    /// Its rank in the job, where it is known to have one.
    pub rank: Option<u32>,
    /// Its exit status, where it is known.
    pub status: Option<u32>,
}

/// A run that is being written into a directory.
#[derive(Debug)]
pub struct Builder {
    directory: PathBuf,
    images: Images,
    processes: Vec<Process>,
    encoder: Box<Encoder>,
    /// The thread that is being written.
    thread: Option<Trace>,
    /// How many there were.
    threads: usize,
    epoch: u64,
    left: u64,
}

#[derive(Debug)]
struct Process {
    facts: ProcessFacts,
    pages: Pages,
    threads: u32,
    is_mpi: bool,
    /// Handles that its MPI library predefines, and where they are.
    handles: Vec<(String, u64)>,
}

/// A codec's memory: as much as was needed so far, doubled.
#[derive(Debug, Clone, Default)]
pub struct Growing(Vec<u32>);

impl Memory for Growing {
    fn words(&mut self, count: usize) -> &mut [u32] {
        if self.0.len() < count {
            self.0.resize(count.next_power_of_two().max(BATCH), 0);
        }
        &mut self.0
    }

    fn present(&self) -> &[u32] {
        &self.0
    }
}

impl Builder {
    /// Begins a run in `directory`, which must be there and empty.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn new(directory: &Path) -> Result<Self, Error> {
        for part in ["processes", "plans", "lines", "ends"] {
            let path = directory.join(part);
            let made = fs::DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| Error::write(&path, error))?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            images: Images::default(),
            processes: Vec::new(),
            encoder: Box::default(),
            thread: None,
            threads: 0,
            epoch: 0,
            left: u64::MAX,
        })
    }

    /// Events after which it is enough, for tests with hostile input.
    pub fn bound(&mut self, events: u64) {
        self.left = events;
    }

    /// Times are told in nanoseconds from here on; earlier ones count as this one.
    /// An epoch that no clock reaches is damage: it counts as the last one.
    pub fn set_epoch(&mut self, nanoseconds: u64) {
        self.epoch = nanoseconds.min(LATEST);
    }

    /// The function of this name in the image of this path.
    pub fn function(&mut self, named: &Named<'_>) -> Result<FunctionNumber, Error> {
        self.images.function(named)
    }

    /// A process; its number, for threads.
    pub fn process(&mut self, facts: ProcessFacts) -> Result<usize, Error> {
        let number = self.processes.len();
        if number == MOST_PROCESSES {
            return Err(Error::TooMuch(format!(
                "expected at most {MOST_PROCESSES} processes, found more"
            )));
        }
        let host = if facts.host.is_empty() {
            "imported"
        } else {
            &facts.host
        };
        let safe = |c: char| {
            if c.is_ascii_alphanumeric() || "._".contains(c) {
                c
            } else {
                '_'
            }
        };
        let host: String = host.chars().take(64).map(safe).collect();
        let name = format!("{host}-{}-{}-0{SUFFIX}", facts.pid, number + 1);
        let pages = Pages::new(self.directory.join("processes").join(name));
        self.processes.push(Process {
            facts,
            pages,
            threads: 0,
            is_mpi: false,
            handles: Vec::new(),
        });
        Ok(number)
    }

    /// The address of a handle that the MPI library of a process predefines.
    pub fn handle(&mut self, process: usize, name: &str, address: u64) {
        if let Some(process) = self.processes.get_mut(process) {
            process.handles.push((name.to_owned(), address));
        }
    }

    /// Begins a thread; the one before must be finished.
    pub fn begin(&mut self, process: usize, tid: u32) -> Result<(), Error> {
        self.threads += 1;
        if self.threads > MOST_THREADS {
            return Err(Error::TooMuch(format!(
                "expected at most {MOST_THREADS} threads, found more"
            )));
        }
        *self.encoder = AnyEncoder::default();
        let Some(owner) = self.processes.get_mut(process) else {
            return Ok(());
        };
        let index = owner.threads;
        owner.threads += 1;
        self.thread = Some(Trace::new(process, index, tid, &mut owner.pages)?);
        Ok(())
    }

    /// A call of `function`, at a time in nanoseconds where it is known.
    pub fn call(&mut self, function: FunctionNumber, time: Option<u64>) -> Result<(), Error> {
        let symbol = FIRST_FUNCTION + function.0;
        if self.images.is_init(function)
            && let Some(trace) = &self.thread
            && let Some(process) = self.processes.get_mut(trace.process)
        {
            process.is_mpi = true;
        }
        self.event(symbol, time)
    }

    /// The innermost open call returns.
    pub fn ret(&mut self, time: Option<u64>) -> Result<(), Error> {
        self.event(RETURN, time)
    }

    /// What the latest call of an MPI function was given: the address that it returns to, then the values of its parameters
    /// as `lockstep_trace::mpi` has them; or what it gives back, before its return.
    pub fn arguments(
        &mut self,
        function: FunctionNumber,
        gives_back: bool,
        values: &[i64],
    ) -> Result<(), Error> {
        let Some(trace) = &mut self.thread else {
            return Ok(());
        };
        let Some(owner) = self.processes.get_mut(trace.process) else {
            return Ok(());
        };
        let key = (FIRST_FUNCTION + function.0) << 1 | u32::from(gives_back);
        trace.tuple(key, values, &mut owner.pages)
    }

    fn event(&mut self, symbol: u32, time: Option<u64>) -> Result<(), Error> {
        let Some(trace) = &mut self.thread else {
            return Ok(());
        };
        let Some(owner) = self.processes.get_mut(trace.process) else {
            return Ok(());
        };
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| Error::TooMuch("more events than this reader was allowed".to_owned()))?;
        if let Some(time) = time {
            trace.time(time.saturating_sub(self.epoch), &mut owner.pages)?;
        }
        trace.push(symbol, &mut self.encoder, &mut owner.pages)
    }

    /// The thread is over.
    pub fn end(&mut self) -> Result<(), Error> {
        let Some(trace) = self.thread.take() else {
            return Ok(());
        };
        let Some(owner) = self.processes.get_mut(trace.process) else {
            return Ok(());
        };
        trace.finish(&mut self.encoder, self.epoch, &mut owner.pages)
    }

    /// Writes what is left: the run can be opened then.
    pub fn finish(mut self, told: &serde_json::Value) -> Result<(), Error> {
        let plans = self.images.write(&self.directory)?;
        for (number, process) in self.processes.iter_mut().enumerate() {
            process.finish(number, &plans)?;
        }
        let path = self.directory.join(lockstep_trace::MARKER);
        let marker = serde_json::json!({
            "version": VERSION,
            "tool": env!("CARGO_PKG_VERSION"),
            "codec": CODEC.name(),
            "imported": told,
        });
        fs::write(&path, format!("{marker:#}\n")).map_err(|error| Error::write(&path, error))
    }
}

impl Process {
    fn finish(&mut self, number: usize, plans: &[PlanFact]) -> Result<(), Error> {
        let text = self.facts.lines(&self.handles, plans);
        let length = (chunk::SIZE + text.len()).next_multiple_of(PAGE as usize) as u64;
        let at = self.pages.take(length)?;
        let mut head = [0; chunk::SIZE];
        chunk_header(&mut head, kind::FACTS, length, 0, 0, text.as_bytes());
        self.pages.write(at, &head)?;
        self.pages.write(at + chunk::SIZE as u64, text.as_bytes())?;

        let number = number as u64 + 1;
        let mut head = [0; header::LOSSES];
        put(&mut head, header::MAGIC, &MAGIC);
        put_u32(&mut head, header::VERSION, VERSION);
        put_u32(&mut head, header::BYTE_ORDER, BYTE_ORDER);
        put_u32(&mut head, header::CODEC, CODEC as u32);
        put_u32(&mut head, header::PID, self.facts.pid);
        put_u64(&mut head, header::START_TIME, number);
        put_u64(&mut head, header::CREATED, number);
        let sum = check::crc32c(&head[..header::CHECK]);
        put_u32(&mut head, header::CHECK, sum);
        let is_mpi = if self.is_mpi { flag::MPI } else { 0 };
        put_u32(&mut head, header::FLAGS, is_mpi);
        let (kind, status) = match self.facts.status {
            Some(status) => (end::EXITED, status),
            None => (end::OVER, 0),
        };
        put_u32(&mut head, header::END_KIND, kind);
        put_u32(&mut head, header::END_CODE, status);
        self.pages.write(0, &head)?;
        self.pages.close();
        Ok(())
    }
}

impl ProcessFacts {
    /// The lines of its facts chunk.
    fn lines(&self, handles: &[(String, u64)], plans: &[PlanFact]) -> String {
        let mut text = String::new();
        let mut line = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| escaped(word)).collect();
            text.push_str(&words.join("\t"));
            text.push('\n');
        };
        if !self.host.is_empty() {
            line(&[fact::HOST, &self.host]);
        }
        line(&[fact::PROGRAM, &self.program]);
        if let (Some(rank), Some(launcher)) = (self.rank, LAUNCHERS.first()) {
            line(&[fact::ENVIRONMENT, launcher.rank, &rank.to_string()]);
        }
        for (name, address) in handles {
            line(&[fact::HANDLE, name, &format!("{address:x}")]);
        }
        for plan in plans {
            let (first, count) = (plan.first.to_string(), plan.count.to_string());
            let role = Role::Library.name();
            line(&[
                fact::IMAGE,
                &plan.image,
                &plan.name,
                role,
                &first,
                &count,
                "0",
            ]);
        }
        text
    }
}

/// As a value in a facts line.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('\t', "\\t")
        .replace('\n', "\\n")
}
