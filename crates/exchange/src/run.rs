//! Writes runs, from whatever somebody has: functions by name, threads of processes, calls and returns, times.
//!
//! ```text
//! Builder ── function("main") ── thread(process) ── call, ret, ... ── finish
//!              plans/*.plan        processes/*.lockstep              lockstep.json
//! ```
//! The files are what `docs/trace-format.md` says of a process that has ended: events are committed when a thread
//! is finished, and nothing is staged. A thread is written from beginning to end before the next one of its process
//! begins, so that one codec's memory is enough for any number of threads.

mod catalogue;

pub(crate) use catalogue::Named;
use catalogue::{Images, PlanFact};

use crate::error::Error;
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::memory::Memory;
use lockstep_format::codec::{AnyEncoder, Kind, Sink};
use lockstep_format::launcher::LAUNCHERS;
use lockstep_format::plan::Role;
use lockstep_format::process::{
    BYTE_ORDER, DATA_CHUNK, MAGIC, PAGE, SUFFIX, THREAD_CHUNK, VERSION, chunk, clock, end,
    extent_end, fact, flag, header, kind, state, thread,
};
use lockstep_format::side::{self, FIRST_CHUNK, control};
use lockstep_format::symbol::{FIRST_FUNCTION, RETURN};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The codec of imported runs.
const CODEC: Kind = Kind::Lockstep;
/// Processes of a run.
const MOST_PROCESSES: usize = 1 << 17;
/// Threads of a run.
const MOST_THREADS: usize = 1 << 18;
/// Symbols that are encoded at once.
const BATCH: usize = 256;
/// Parts of a nanosecond in a tick: what a clock is worth follows from readings that are far apart in ticks.
const TICKS: u64 = 1 << 10;
/// Points that a thread may have for each event; later ones stand at least [`GAP`] apart.
const DENSE_POINTS: u64 = 1 << 22;
/// Ticks between later points.
const GAP: u64 = 1 << 21;

/// A function of the run that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FunctionNumber(u32);

/// What is known of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessFacts {
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
pub(crate) struct Builder {
    directory: PathBuf,
    images: Images,
    processes: Vec<Process>,
    encoder: Box<AnyEncoder<Growing, Growing>>,
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
}

/// A codec's memory: as much as was needed so far, doubled.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growing(Vec<u32>);

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
    pub(crate) fn new(directory: &Path) -> Result<Self, Error> {
        for part in ["processes", "plans", "lines", "ends"] {
            let path = directory.join(part);
            fs::create_dir(&path).map_err(|error| Error::write(&path, error))?;
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
    pub(crate) fn bound(&mut self, events: u64) {
        self.left = events;
    }

    /// Times are told in nanoseconds from here on; earlier ones count as this one.
    pub(crate) fn set_epoch(&mut self, nanoseconds: u64) {
        self.epoch = nanoseconds;
    }

    /// The function of this name in the image of this path.
    pub(crate) fn function(&mut self, named: &Named<'_>) -> Result<FunctionNumber, Error> {
        self.images.function(named)
    }

    /// A process; its number, for threads.
    pub(crate) fn process(&mut self, facts: ProcessFacts) -> Result<usize, Error> {
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
        });
        Ok(number)
    }

    /// Begins a thread; the one before must be finished.
    pub(crate) fn begin(&mut self, process: usize, tid: u32) -> Result<(), Error> {
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
        let at = owner.pages.take(THREAD_CHUNK)?;
        let data = at + thread::DATA as u64;
        let index = owner.threads;
        owner.threads += 1;
        self.thread = Some(Trace {
            process,
            index,
            tid,
            at,
            batch: Vec::with_capacity(BATCH),
            stream: Chunks::new(kind::DATA, index, data, at + THREAD_CHUNK),
            symbols: 0,
            check: 0,
            times: None,
        });
        Ok(())
    }

    /// A call of `function`, at a time in nanoseconds where it is known.
    pub(crate) fn call(
        &mut self,
        function: FunctionNumber,
        time: Option<u64>,
    ) -> Result<(), Error> {
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
    pub(crate) fn ret(&mut self, time: Option<u64>) -> Result<(), Error> {
        self.event(RETURN, time)
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
        trace.symbols += 1;
        trace.batch.push(symbol);
        if let Some(time) = time {
            let ticks = ticks(time.saturating_sub(self.epoch));
            trace.time(ticks, &mut owner.pages)?;
        }
        if trace.batch.len() == BATCH {
            trace.encode(&mut self.encoder, &mut owner.pages)?;
        }
        Ok(())
    }

    /// The thread is over.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        let Some(mut trace) = self.thread.take() else {
            return Ok(());
        };
        let Some(owner) = self.processes.get_mut(trace.process) else {
            return Ok(());
        };
        trace.encode(&mut self.encoder, &mut owner.pages)?;
        let tail = self.encoder.tail(CODEC);
        let committed = trace.stream.finish(&mut owner.pages)?;
        let mut area = [0; state::SIZE];
        put_u64(&mut area, state::BYTES, committed);
        put_u64(&mut area, state::SYMBOLS, trace.symbols);
        put_u32(&mut area, state::STREAM_CHECK, trace.check);
        put_u32(&mut area, state::TAIL_LENGTH, tail.length as u32);
        put(&mut area, state::TAIL, &tail.bytes);
        let sum = check::crc32c(&area[..state::CHECK]);
        put_u32(&mut area, state::CHECK, sum);

        let mut head = [0; thread::STAGING];
        chunk_header(&mut head, kind::THREAD, THREAD_CHUNK, trace.index, 0, &[]);
        put_u32(&mut head, thread::TID, trace.tid);
        put_u64(&mut head, thread::STARTED, u64::from(trace.index));
        put_u32(&mut head, thread::FIRST, trace.index);
        let sum = check::crc32c(&head[thread::TID..thread::CHECK]);
        put_u32(&mut head, thread::CHECK, sum);
        put(&mut head, thread::COMMITTED, &area);
        if let Some(times) = trace.times {
            // A second reading, far enough from the first to tell what a tick is worth.
            let readings = [
                (times.first, 0),
                (times.first + (GAP << 1), (GAP << 1) / TICKS),
            ];
            for (index, (ticks, more)) in readings.into_iter().enumerate() {
                let nanoseconds = self.epoch + times.first / TICKS + more;
                let at = thread::CLOCKS + clock::SIZE * index;
                put_u64(&mut head, at + clock::TICKS, ticks);
                put_u64(&mut head, at + clock::NANOSECONDS, nanoseconds);
                put_u64(&mut head, at + clock::CHECK, !(ticks ^ nanoseconds));
            }
            put_u64(&mut head, thread::LAST_SYMBOLS, times.last_symbols);
            put_u64(&mut head, thread::LAST_TICKS, times.last);
            times.finish(&mut owner.pages)?;
        }
        owner.pages.write(trace.at, &head)?;
        owner.pages.file = None;
        Ok(())
    }

    /// Writes what is left: the run can be opened then.
    pub(crate) fn finish(mut self, told: &serde_json::Value) -> Result<(), Error> {
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

fn ticks(nanoseconds: u64) -> u64 {
    // 0 means that there is none.
    nanoseconds
        .saturating_mul(TICKS)
        .saturating_add(TICKS)
        .min(u64::MAX / 4)
}

/// A thread that is being written.
#[derive(Debug)]
struct Trace {
    process: usize,
    index: u32,
    tid: u32,
    /// Where its chunk lies.
    at: u64,
    /// Symbols that are not encoded yet.
    batch: Vec<u32>,
    stream: Chunks,
    symbols: u64,
    check: u32,
    times: Option<Points>,
}

impl Trace {
    fn encode(
        &mut self,
        encoder: &mut AnyEncoder<Growing, Growing>,
        pages: &mut Pages,
    ) -> Result<(), Error> {
        let mut bytes = Bytes(Vec::new());
        encoder.push_batch(CODEC, &self.batch, &mut bytes);
        self.batch.clear();
        self.check = check::extend(self.check, &bytes.0);
        self.stream.put(&bytes.0, pages)
    }

    /// The event that was stored last happened at this time.
    fn time(&mut self, ticks: u64, pages: &mut Pages) -> Result<(), Error> {
        if self.times.is_none() {
            let at = pages.take(FIRST_CHUNK)?;
            let data = at + control::DATA as u64;
            self.times = Some(Points {
                at,
                stream: Chunks::new(kind::TIMES, self.index, data, at + FIRST_CHUNK),
                first: ticks,
                count: 0,
                told: (0, ticks),
                last: ticks,
                last_symbols: self.symbols,
            });
        }
        match &mut self.times {
            Some(times) => times.point(self.symbols, ticks, pages),
            None => Ok(()),
        }
    }
}

/// The times of a thread.
#[derive(Debug)]
struct Points {
    /// Where its first chunk lies.
    at: u64,
    stream: Chunks,
    first: u64,
    count: u64,
    /// The point written last: symbols and ticks.
    told: (u64, u64),
    last: u64,
    last_symbols: u64,
}

impl Points {
    fn point(&mut self, symbols: u64, ticks: u64, pages: &mut Pages) -> Result<(), Error> {
        // Times do not run backwards.
        let ticks = ticks.max(self.last);
        (self.last, self.last_symbols) = (ticks, symbols);
        if self.count >= DENSE_POINTS && ticks - self.told.1 < GAP {
            return Ok(());
        }
        let mut bytes = Bytes(Vec::new());
        side::put_varint(&mut bytes, symbols - self.told.0);
        side::put_varint(&mut bytes, ticks - self.told.1);
        self.told = (symbols, ticks);
        self.count += 1;
        self.stream.put(&bytes.0, pages)
    }

    fn finish(mut self, pages: &mut Pages) -> Result<(), Error> {
        let bytes = self.stream.finish(pages)?;
        let mut head = [0; control::DATA];
        chunk_header(
            &mut head,
            kind::TIMES,
            FIRST_CHUNK,
            self.stream.thread,
            0,
            &[],
        );
        put_u64(&mut head, control::WORD, side::word(bytes, 0));
        pages.write(self.at, &head)
    }
}

struct Bytes(Vec<u8>);

impl Sink for Bytes {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// A stream in a first chunk and as many data chunks as it needs.
#[derive(Debug)]
struct Chunks {
    kind: u32,
    thread: u32,
    /// Where the stream goes on, and up to where there is room.
    next: u64,
    end: u64,
    sequence: u32,
    bytes: u64,
    /// What is not written yet.
    waiting: Vec<u8>,
}

impl Chunks {
    fn new(kind: u32, thread: u32, next: u64, end: u64) -> Self {
        Self {
            kind,
            thread,
            next,
            end,
            sequence: 0,
            bytes: 0,
            waiting: Vec::new(),
        }
    }

    fn put(&mut self, bytes: &[u8], pages: &mut Pages) -> Result<(), Error> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < DATA_CHUNK as usize {
            return Ok(());
        }
        self.write(pages)
    }

    fn write(&mut self, pages: &mut Pages) -> Result<(), Error> {
        let waiting = std::mem::take(&mut self.waiting);
        self.bytes += waiting.len() as u64;
        let mut rest = &waiting[..];
        while !rest.is_empty() {
            if self.next == self.end {
                self.sequence += 1;
                let at = pages.take(DATA_CHUNK)?;
                let mut head = [0; chunk::SIZE];
                chunk_header(
                    &mut head,
                    self.kind,
                    DATA_CHUNK,
                    self.thread,
                    self.sequence,
                    &[],
                );
                pages.write(at, &head)?;
                (self.next, self.end) = (at + chunk::SIZE as u64, at + DATA_CHUNK);
            }
            let room = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
            let (now, later) = rest.split_at(rest.len().min(room));
            pages.write(self.next, now)?;
            self.next += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Writes what waits; how many bytes the stream has.
    fn finish(&mut self, pages: &mut Pages) -> Result<u64, Error> {
        self.write(pages)?;
        Ok(self.bytes)
    }
}

fn chunk_header(head: &mut [u8], kind: u32, length: u64, index: u32, sequence: u32, used: &[u8]) {
    put_u32(head, chunk::MAGIC, chunk::MAGIC_VALUE);
    put_u32(head, chunk::KIND, kind);
    put_u32(head, chunk::LENGTH, length as u32);
    put_u32(head, chunk::THREAD, index);
    put_u32(head, chunk::SEQUENCE, sequence);
    put_u32(head, chunk::USED, used.len() as u32);
    put_u32(head, chunk::PAYLOAD_CHECK, check::crc32c(used));
    let sum = check::crc32c(&head[..chunk::CHECK]);
    put_u32(head, chunk::CHECK, sum);
}

/// A process file, grown as chunks are taken.
#[derive(Debug)]
struct Pages {
    path: PathBuf,
    /// Open while a thread is written: there may be more processes than a process may have files.
    file: Option<File>,
    /// First byte that no chunk has.
    free: u64,
}

impl Pages {
    fn new(path: PathBuf) -> Self {
        let (file, free) = (None, PAGE);
        Self { path, file, free }
    }

    fn with<T>(&mut self, change: impl FnOnce(&File) -> io::Result<T>) -> Result<T, Error> {
        let path = &self.path;
        let failed = |error| Error::write(path, error);
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let mut options = File::options();
                let options = options.write(true).create(true).truncate(false);
                options.open(path).map_err(failed)?
            }
        };
        let done = change(&file).map_err(failed);
        self.file = Some(file);
        done
    }

    /// Room for a chunk, which crosses no extent's end.
    fn take(&mut self, length: u64) -> Result<u64, Error> {
        let mut at = self.free;
        if at + length > extent_end(at) {
            at = extent_end(at);
        }
        let end = at + length;
        self.free = end;
        self.with(|file| file.set_len(end))?;
        Ok(at)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.with(|file| file.write_all_at(bytes, at))
    }
}

impl Process {
    fn finish(&mut self, number: usize, plans: &[PlanFact]) -> Result<(), Error> {
        let text = self.facts.lines(plans);
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
        self.pages.file = None;
        Ok(())
    }
}

impl ProcessFacts {
    /// The lines of its facts chunk.
    fn lines(&self, plans: &[PlanFact]) -> String {
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
