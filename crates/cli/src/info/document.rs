//! What `info --json` prints.

use super::raw_bytes;
use lockstep_trace::{End, Process, ProcessName, Refused, Run, Thread, Times, TraceName};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// What a run holds, how its processes ended, and what was not recorded.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// Name of the compression of the events.
    codec: &'static str,
    /// Whether the run is of an MPI program.
    mpi: bool,
    /// What to know before reading the rest, such as damage, in sentences.
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
    /// Name of the process.
    process: ProcessName,
    /// Its rank in `MPI_COMM_WORLD`. Null if it has none.
    rank: Option<u32>,
    /// Whether it called `MPI_Init`.
    mpi: bool,
    /// Process id on its host.
    pid: u32,
    /// Name of its host.
    host: &'a str,
    /// Path of its program.
    program: &'a str,
    /// How it ended.
    end: End,
    /// Share of its counted calls that was recorded, from 0 to 1. Null if no call was counted.
    coverage_dynamic: Option<f64>,
    /// The numbers behind that share.
    coverage: Covered,
    /// Number of events that were lost.
    events_lost: u64,
    /// Why events were lost. Empty if none were.
    losses: Vec<Loss<'a>>,
    /// Which functions are recorded.
    functions: Functions<'a>,
    /// Which functions `record` was asked to record.
    chosen: Chosen<'a>,
    /// Programs and libraries of which nothing was recorded.
    untraced_images: Vec<Untraced<'a>>,
    /// Its threads, in the order of their names.
    threads: Vec<ThreadRow<'a>>,
}

/// Numbers of calls.
#[derive(Serialize, JsonSchema)]
struct Covered {
    /// Number of calls that were recorded.
    recorded_calls: u64,
    /// Number of calls that were counted but not recorded.
    unrecorded_calls: u64,
    /// Number of functions that may have been called more often than was counted.
    uncounted_functions: usize,
}

/// Events that were lost for one reason.
#[derive(Serialize, JsonSchema)]
struct Loss<'a> {
    /// The reason.
    reason: &'a str,
    /// Number of lost events.
    events: u64,
}

/// The functions of a process.
#[derive(Serialize, JsonSchema)]
struct Functions<'a> {
    /// Number of functions that are recorded.
    traced: u64,
    /// Functions that are not recorded.
    refused: &'a [Refused],
    /// Functions that are recorded, except when they are called through a pointer that the program takes.
    pointers: &'a [Refused],
}

/// Which functions `record` was asked to record.
#[derive(Serialize, JsonSchema)]
struct Chosen<'a> {
    /// Patterns of `--trace`. If there are none, everything is recorded.
    trace: &'a [String],
    /// Patterns of `--skip`.
    skip: &'a [String],
    /// Number of functions and library calls that these patterns leave out.
    left_out: u64,
}

/// A program or library of which nothing was recorded.
#[derive(Serialize, JsonSchema)]
struct Untraced<'a> {
    /// File name of the program or library.
    image: &'a str,
    /// Why it was not recorded.
    reason: &'a str,
}

/// One thread.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Thread")]
// Long: its fields are the keys of the JSON, which are a contract.
struct ThreadRow<'a> {
    /// Name of its trace.
    trace: TraceName,
    /// Thread id of the kernel.
    tid: u32,
    /// Number of events in its trace.
    events: u64,
    /// Number of earlier events that `--keep last` dropped.
    dropped: u64,
    /// Bytes that hold these events.
    bytes: u64,
    /// Bytes of these events without compression: 2 for each, as the ParLOT paper counts them.
    raw_bytes: u64,
    /// Number of events at the end of the trace that no checksum covers.
    unverified: u64,
    /// What is damaged or missing. Null if nothing is.
    damage: Option<&'a str>,
    /// Number of MPI calls whose arguments could not be stored.
    arguments_lost: u64,
    /// Number of returns that nobody saw. Their frames were gone later, after a jump, an exception or a switch of stacks.
    inferred: u64,
    /// When the thread was first seen, in seconds since the run began. Null if no times were recorded.
    first_seen: Option<f64>,
    /// When the thread was last seen, in seconds since the run began. Null if no times were recorded.
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
