//! What `info --json` prints.

use super::raw_bytes;
use lockstep_trace::{End, Process, ProcessName, Refused, Run, Thread, Times, TraceName};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// What a run holds, how its processes ended, and what was not recorded.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The compression of events.
    codec: &'static str,
    /// Whether it is a run of an MPI program.
    mpi: bool,
    /// What should be known before the rest is read: damage, for example.
    notes: &'a [String],
    /// All processes, in the order of their names.
    #[schemars(with = "Vec<Row>")]
    processes: Rows<'a>,
}

impl<'a> Document<'a> {
    pub fn new(run: &'a Run) -> Self {
        Self {
            codec: run.codec.name(),
            mpi: run.is_mpi,
            notes: &run.notes,
            processes: Rows(run),
        }
    }
}

/// A process is put into words when it is written, as there may be many.
struct Rows<'a>(&'a Run);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.0.processes.iter();
        serializer.collect_seq(all.map(|process| Row::of(self.0, process)))
    }
}

/// One process.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Process")]
// Long: its fields are the keys of the JSON, which are a contract.
struct Row<'a> {
    /// Its name.
    process: ProcessName,
    /// Its rank in `MPI_COMM_WORLD`.
    rank: Option<u32>,
    /// Whether it called `MPI_Init`.
    mpi: bool,
    /// Process id on its host.
    pid: u32,
    /// Its host.
    host: &'a str,
    /// Path of its program.
    program: &'a str,
    /// How it ended.
    end: End,
    /// Share of its calls that was recorded, from 0 to 1, of the calls that were counted; null if there are none.
    coverage_dynamic: Option<f64>,
    /// The same in numbers.
    coverage: Covered,
    /// Number of events that were lost.
    events_lost: u64,
    /// Why they were lost.
    losses: Vec<Loss<'a>>,
    /// Which functions record.
    functions: Functions<'a>,
    /// Which functions were chosen to be recorded.
    chosen: Chosen<'a>,
    /// Programs and libraries that were not recorded at all.
    untraced_images: Vec<Untraced<'a>>,
    /// Its threads, in the order of their names.
    threads: Vec<ThreadRow<'a>>,
}

/// How many calls were recorded.
#[derive(Serialize, JsonSchema)]
struct Covered {
    /// Calls that were recorded.
    recorded_calls: u64,
    /// Calls that were counted and not recorded.
    unrecorded_calls: u64,
    /// Number of functions that may have been called more often than was counted.
    uncounted_functions: usize,
}

/// Events that were lost for one reason.
#[derive(Serialize, JsonSchema)]
struct Loss<'a> {
    /// The reason.
    reason: &'a str,
    /// Number of events.
    events: u64,
}

/// Functions of a process.
#[derive(Serialize, JsonSchema)]
struct Functions<'a> {
    /// Number of functions that record.
    traced: u64,
    /// Functions that do not record.
    refused: &'a [Refused],
    /// Functions that record, except if they are called through a pointer that the program takes.
    pointers: &'a [Refused],
}

/// What `record` was told to record.
#[derive(Serialize, JsonSchema)]
struct Chosen<'a> {
    /// The patterns of `--trace`; if there are none, everything is recorded.
    trace: &'a [String],
    /// The patterns of `--skip`.
    skip: &'a [String],
    /// Number of functions and library calls that these leave out.
    left_out: u64,
}

/// A program or library that was not recorded.
#[derive(Serialize, JsonSchema)]
struct Untraced<'a> {
    /// Its name.
    image: &'a str,
    /// The reason.
    reason: &'a str,
}

/// One thread.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Thread")]
// Long: its fields are the keys of the JSON, which are a contract.
struct ThreadRow<'a> {
    /// Its trace.
    trace: TraceName,
    /// Thread id of the kernel.
    tid: u32,
    /// Number of its events.
    events: u64,
    /// Number of events that `--keep last` dropped before these.
    dropped: u64,
    /// Bytes that hold its events.
    bytes: u64,
    /// Bytes that they would take at 2 bytes an event, as the ParLOT paper counts them.
    raw_bytes: u64,
    /// Number of the last events that no checksum covers.
    unverified: u64,
    /// What is damaged or missing.
    damage: Option<&'a str>,
    /// Number of MPI calls whose arguments could not be stored.
    arguments_lost: u64,
    /// Number of returns that were inferred: their frames were left by a jump or an exception.
    inferred: u64,
    /// When it was first seen: seconds since the run began.
    first_seen: Option<f64>,
    /// When it was last seen: seconds since the run began.
    last_seen: Option<f64>,
    /// Functions whose calls were open at the end, outermost first.
    open: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn of(run: &'a Run, process: &'a Process) -> Self {
        let covered = &process.coverage;
        let losses = process.losses.iter().map(|(reason, events)| Loss {
            reason,
            events: *events,
        });
        let images = covered.untraced_images.iter();
        let threads = process.threads.iter();
        Self {
            process: process.name,
            rank: process.rank,
            mpi: process.is_mpi,
            pid: process.pid,
            host: &process.host,
            program: &process.program,
            end: process.end,
            coverage_dynamic: covered.dynamic,
            coverage: Covered {
                recorded_calls: covered.recorded_calls,
                unrecorded_calls: covered.unrecorded_calls,
                uncounted_functions: covered.uncounted(),
            },
            events_lost: process.losses.iter().map(|(_, events)| events).sum(),
            losses: losses.collect(),
            functions: Functions {
                traced: covered.traced,
                refused: &covered.refused,
                pointers: &covered.pointers,
            },
            chosen: Chosen {
                trace: &covered.trace,
                skip: &covered.skip,
                left_out: covered.left_out,
            },
            untraced_images: images
                .map(|(image, reason)| Untraced { image, reason })
                .collect(),
            threads: threads.map(|thread| ThreadRow::of(run, thread)).collect(),
        }
    }
}

impl<'a> ThreadRow<'a> {
    fn of(run: &'a Run, thread: &'a Thread) -> Self {
        let seen = |time: fn(&Times) -> Option<Duration>| {
            let time = thread.times.as_ref().and_then(time);
            time.map(|time| time.as_secs_f64())
        };
        let open = thread.open.iter().map(|frame| run.function(frame.function));
        Self {
            trace: thread.name,
            tid: thread.tid,
            events: thread.events,
            dropped: thread.dropped,
            bytes: thread.bytes,
            raw_bytes: raw_bytes(thread.events),
            unverified: thread.unverified,
            damage: thread.damage.as_deref(),
            arguments_lost: thread.arguments_lost,
            inferred: thread.inferred,
            first_seen: seen(Times::first),
            last_seen: seen(Times::last),
            open: open.map(|function| function.name.as_str()).collect(),
        }
    }
}
