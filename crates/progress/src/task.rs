//! What a run is made of once it was looked at: tasks, where each stands, and groups of them.

use lockstep_trace::{End, SourceLine, TraceName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What kind of standstill the job is in. A task is a rank, or without MPI a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tasks wait for something that can never happen.
    Deadlock,
    /// A task repeats the same calls in a loop, and other tasks wait for it.
    Livelock,
    /// A task runs its own code, and other tasks wait for it.
    Slow,
    /// No such standstill.
    #[default]
    None,
}

/// What a group of tasks is doing.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// The tasks run their own code, or a library other than MPI.
    Computation,
    /// The tasks are in an MPI call, or wait for other tasks.
    Communication,
    /// The processes of the tasks have ended, but not because the whole job was killed.
    Ended,
    /// The tasks ended after `MPI_Finalize`.
    Finished,
}

/// A task: a rank, or without MPI a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Rank, or number of the trace.
    pub number: u32,
    /// Its (main) trace.
    pub trace: TraceName,
    /// How its process ended.
    pub end: End,
    /// Open calls, outermost first.
    pub stack: Arc<[Place]>,
    /// A function that it may still be in, within the innermost open call: its call and its return were
    /// recorded together, and nothing since.
    pub leaf: Option<String>,
    /// What it is doing.
    pub activity: Activity,
    /// Where it waits by asking again and again: it stands then where it began to, however often it asked since.
    pub polls: Option<Polling>,
    /// Whether it brought its job down: it died, or ended with a status that says so.
    pub crashed: bool,
    /// Events recorded of it; of a rank, those of all its threads.
    pub events: u64,
    /// Whether it is there to start others only, as `mpirun` is.
    pub is_launcher: bool,
}

/// How a task waits that asks again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Polling {
    /// The function of MPI that it calls.
    pub name: Arc<str>,
    /// The first of these calls, by its event in the task's trace; `None` where another thread of it makes them.
    pub since: Option<u64>,
}

/// An open call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function.
    pub function: String,
    /// Whether it is a library's.
    pub imported: bool,
    /// Where it was called.
    pub called_at: Option<SourceLine>,
}

/// Tasks at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its tasks, by number.
    pub tasks: Vec<u32>,
    /// Open calls, outermost first.
    pub stack: Arc<[Place]>,
    /// A function that they may still be in, as of [`Task::leaf`].
    pub leaf: Option<String>,
    /// Loops around its place, outermost first, whose iteration is certain: by the function they are in and
    /// the first that they call, and the iteration, from 1.
    pub loops: Vec<(String, u64)>,
    /// The same, where it may be another: who goes on counts further.
    pub turns: Vec<(String, u64)>,
    /// What it is doing.
    pub activity: Activity,
}
