//! Starts a program under the probe, and makes one run of what its processes write.
//!
//! The principal function is [`record`]: it checks that the command can be traced at all, makes or
//! joins the run directory, starts the command with the probe preloaded, passes signals on, and
//! waits. [`plan_command`] is the hidden `__plan` subcommand, by which the probe has a patch plan
//! made for an image that nobody has seen before.
//!
//! *Guarantees*: the program's standard streams, arguments, working directory and exit status are
//! its own; nothing but a run of ours is ever replaced.
//! *Costs*: one helper thread that plans ahead and watches for ends; a few milliseconds of start-up.
//! *Not for*: reading a run (that is `trace`), or printing (that is the command line's).

use lockstep_format::codec::Kind;
use std::ffi::OsString;
use std::path::PathBuf;

/// What to record and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program and its arguments; at least one.
    pub command: Vec<OsString>,
    /// The run directory; `lockstep-runs/NAME-N` (`NAME-TOKEN` inside a launcher) where `None`.
    pub output: Option<PathBuf>,
    /// How event streams are stored.
    pub codec: Kind,
    /// Replace a run that is there already.
    pub force: bool,
    /// Run a program that cannot be traced untraced, instead of refusing it.
    pub untraced_is_fine: bool,
    /// The probe's shared library; searched beside the executable where `None`.
    pub probe: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The command's own exit status: 0..=255, 128 + n when signal n killed it.
    pub status: u8,
    /// What was recorded; `None` where another recorder of the same job tells it, or where the
    /// program ran untraced.
    pub summary: Option<Summary>,
    /// Why the program ran untraced, if it did.
    pub untraced: Option<String>,
}

/// The size of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Where it lies.
    pub directory: PathBuf,
    /// Processes that left a file.
    pub processes: u64,
    /// Events of all threads.
    pub events: u64,
    /// Events that were lost, for whatever reason (`lockstep info` tells which).
    pub lost: u64,
    /// Bytes of all streams (committed bytes and tails), without names and headers.
    pub bytes: u64,
}

/// Why the command was not started. One line each: what was expected, what was found, where.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    message: String,
    status: u8,
}

impl Error {
    /// The exit status that says so: 127 no such program, 126 not executable, 125 anything else.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.status
    }

    fn new(status: u8, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            status,
        }
    }
}

/// Runs `options.command` under the probe and waits for it.
///
/// # Errors
/// If the command was not started; [`Error::status`] is the exit status to end with.
pub fn record(options: &Options) -> Result<Outcome, Error> {
    let _ = options;
    Err(Error::new(125, "recording: not built yet"))
}

/// The hidden subcommand `__plan --run RUN --role ROLE IMAGE`: makes the plan of one image, unless
/// it is there. Silent; the status says whether the plan is there now.
#[must_use]
pub fn plan_command(arguments: &[OsString]) -> u8 {
    let _ = arguments;
    125
}
