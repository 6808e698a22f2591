//! Starts a program under the probe, and makes one run of what its processes write.
//!
//! The principal function is [`record`]: it checks that the command can be traced at all, makes or
//! joins the run directory, starts the command with the probe preloaded, passes signals on, and
//! waits. [`plan_command`] is the hidden `__plan` subcommand, by which the probe has a patch plan
//! made for an image that nobody has seen before.
//!
//! *Guarantees*: the program's standard streams, arguments, working directory and exit status are
//! its own; nothing but a run of ours is ever replaced.
//! *Costs*: the plan of the main program before it starts (cached in the run), and two threads beside it:
//! one watches for ends, one looks up source lines at low priority.
//! *Not for*: reading a run (that is `trace`), or printing (that is the command line's).

mod ahead;
mod bound;
mod buffer;
mod cache;
mod descendants;
mod directory;
mod error;
mod heap;
mod images;
mod inject;
mod kept;
mod launch;
mod lines;
mod look;
mod own;
mod pack;
mod pidfd;
mod plan;
mod probe;
mod process;
mod program;
mod spot;
mod stop;
mod tally;
mod thread;
mod watch;

pub use bound::{Bound, Keep, Size};
pub use buffer::gather;
pub use cache::Cache;
pub use directory::{SAID, check_ended, check_run, check_settled, remove_run};
pub use error::Error;
pub use heap::Heap;
pub use inject::{Injection, inject};
pub use launch::file_limit_is_an_error;
pub use launch::{Asked, asked, remember_signals};
pub use look::Watcher;
pub use own::put;
pub use plan::plan_command;
pub use probe::Probe;
pub use spot::spots;
pub use tally::Missing;
pub use thread::{STACK, thread};

use buffer::Buffer;
use descendants::Descendants;
use directory::Directory;
use lockstep_format::codec::Kind;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// What to record and where to.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program and its arguments; at least one.
    pub command: Vec<OsString>,
    /// The run directory; `lockstep-runs/NAME-N` (`NAME-TOKEN` inside a launcher) where `None`.
    pub output: Option<PathBuf>,
    /// Where this node's process files are while their processes run, if not in the run.
    pub buffer: Option<PathBuf>,
    /// Permissions of the run's directory.
    pub mode: u32,
    /// Put this node's process files into one when they come into the run from the buffer.
    pub pack: bool,
    /// Libraries whose own functions are recorded too: `all`, parts of file names, or regular
    /// expressions on paths. `main` says nothing.
    pub images: Vec<String>,
    /// Record only functions that one of these regular expressions finds by name; all, if empty.
    pub trace: Vec<String>,
    /// Do not record functions that one of these finds.
    pub skip: Vec<String>,
    /// How event streams are stored.
    pub codec: Kind,
    /// How much memory the probe may use in the program.
    pub memory: Memory,
    /// How large the run's process files may become.
    pub size: Size,
    /// Keep arguments, environment and host's name out of the run.
    pub redact: bool,
    /// Record the arguments of MPI calls.
    pub arguments: bool,
    /// Record times.
    pub time: bool,
    /// Of every call and return, not only of calls that may wait.
    pub every_time: bool,
    /// Record calls and returns; else all is patched as ever, for measuring what that alone costs.
    pub events: bool,
    /// Replace a run that is there already.
    pub force: bool,
    /// Run a program that cannot be traced untraced, instead of refusing it.
    pub untraced_is_fine: bool,
    /// The probe's shared library.
    pub probe: Probe,
}

/// How much memory the probe may use in each thread of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Memory {
    /// As much as makes recording fast and small: up to 4 MB.
    #[default]
    Normal,
    /// At most 0.5 MB.
    Low,
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
    /// Options that chose functions by name and found none, as they were written.
    pub unmatched: Vec<String>,
    /// Values of `--images` that no image of the run matches.
    pub unmatched_images: Vec<String>,
    /// What stayed in the buffer, and why.
    pub buffered: Option<String>,
    /// Numbers of processes that were to end with the command and could not be ended.
    pub left: Vec<i32>,
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
    /// Those of them for which the run was too large already.
    pub too_many: u64,
    /// The bound of its size, if it has one.
    pub bound: Option<Bound>,
    /// Bytes of all streams (committed bytes and tails), without names and headers.
    pub bytes: u64,
    /// Ranks that left no file, of jobs that the command started.
    pub missing: Vec<Missing>,
}

/// Runs `options.command` under the probe and waits for it. Where this process is asked to end (SIGINT, SIGTERM) or `watcher`
/// wants the command ended, nothing that the command started is left behind. Meanwhile `watcher` looks at the run; of
/// several recorders of one job, that of one of them.
///
/// # Errors
/// If the command was not started; [`Error::status`] is the exit status to end with.
pub fn record(options: &Options, watcher: Option<&mut dyn Watcher>) -> Result<Outcome, Error> {
    let name = options
        .command
        .first()
        .ok_or_else(|| Error::own("expected a command to record, found none"))?;
    let choice = choice(options)?;
    let images = images::Images::new(&options.images)?;
    let path = program::find(name)?;
    let program = match program::check(&path) {
        Ok(program) => program,
        Err(error) if error.is_untraceable() && options.untraced_is_fine => {
            return run_untraced(options, &path, error.to_string());
        }
        Err(error) => return Err(error),
    };
    let probe = options.probe.check()?;
    let directory = directory::claim(options.output.as_deref(), options)?;
    // Made now, the plan is there when the first process asks. Where it cannot be written (a full
    // disk), the process says so itself.
    if let Err(plan::PlanError::Image(reason)) =
        plan::ensure(&directory.path, &program.image, &choice)
    {
        let reason = format!("{}: cannot be recorded: {reason}", program.image.display());
        if directory.elected {
            let _ = remove_run(&directory.path);
        }
        if options.untraced_is_fine {
            return run_untraced(options, &path, reason);
        }
        return Err(Error::untraceable(reason));
    }
    plan::recall(&directory.path, &choice, &images, &options.command);
    let buffer = options.buffer.as_deref();
    let buffer = buffer
        .map(|parent| Buffer::make(parent, &directory.path, options))
        .transpose()
        .inspect_err(|_| {
            if directory.elected {
                let _ = remove_run(&directory.path);
            }
        })?;
    let places = [Some(&*directory.path), buffer.as_ref().map(Buffer::place)];
    let bound = Bound::new(options.size, places.into_iter().flatten());
    let command = |probe: &_| {
        let mut command = launch::command(
            options, &choice, &images, &program, &directory, bound, probe,
        );
        if let Some(buffer) = &buffer {
            command.env(lockstep_format::buffer::VARIABLE, buffer.variable());
        }
        command
    };
    let watcher = watcher.filter(|_| directory.elected);
    let ended = execute(&probe, &directory, options, watcher, command);
    let buffered = buffer.and_then(|buffer| buffer.leave(&directory.path));
    let ended = ended.inspect_err(|_| {
        if directory.elected {
            let _ = remove_run(&directory.path);
        }
    })?;
    if directory.elected {
        plan::remember(&directory.path, &choice, &images, &options.command);
    }
    let summary = directory.elected.then(|| summary(&directory, bound));
    let is_empty = summary
        .as_ref()
        .is_some_and(|summary| summary.processes == 0);
    let (mut unmatched, mut unmatched_images) = (Vec::new(), Vec::new());
    if directory.elected && !is_empty {
        unmatched = plan::unmatched(&directory.path, &choice);
        unmatched_images = images.unmatched(&directory.path);
    }
    if directory.elected {
        kept::trim(&directory.path);
    }
    Ok(Outcome {
        status: exit_code(ended.status),
        left: ended.left,
        unmatched,
        unmatched_images,
        buffered,
        untraced: is_empty.then(|| {
            format!(
                "{}: no process left a file there (disk full, file size limit, or the directory removed?)",
                directory.shown.display()
            )
        }),
        summary: summary.filter(|_| !is_empty),
    })
}

/// How a command ended.
struct Ended {
    status: ExitStatus,
    /// Processes that it left and that could not be ended.
    left: Vec<i32>,
}

/// Starts the command that `command` makes with the probe in its place, and waits for it; if it was to be ended, also
/// for all that it started. Meanwhile the directory is watched.
fn execute(
    probe: &probe::Checked,
    directory: &Directory,
    options: &Options,
    looker: Option<&mut dyn Watcher>,
    command: impl FnOnce(&probe::Placed) -> std::process::Command,
) -> Result<Ended, Error> {
    let far = launch::has_other_nodes(&options.command);
    let probe = probe.place(directory, &options.command, far)?;
    launch::catch_signals();
    let mut command = command(&probe);
    let (stop, over) = (stop::Stop::default(), stop::Stop::default());
    let own_run = (!directory.shared).then_some(directory.path.as_path());
    let descendants = Descendants::new(own_run);
    let ended = std::thread::scope(|scope| {
        // Before any thread: the C library handles signals of its own from the first one on, which the command would inherit
        // otherwise than we did.
        let child = launch::start(&mut command)?;
        let begin = || {
            let watcher = watch::Watcher::start(scope, directory, &stop)?;
            let look = |looker| look::watch_over(&directory.path, &over, &descendants, looker);
            let looks = looker.map(|looker| watch::beside(scope, move || look(looker)));
            Ok((watcher, looks.transpose()?))
        };
        let (watcher, looks) = begin().inspect_err(|_| {
            stop.set();
            // Nobody would see how it ends.
            descendants.end();
        })?;
        let own = own_name(child.id(), options.redact);
        let status = launch::wait(&child);
        let at = watch::now();
        over.set();
        // It may be about to say that this has to end.
        let _ = looks.map(std::thread::ScopedJoinHandle::join);
        let is_to_end = descendants.are_doomed() || launch::is_asked_to_end();
        let left = match is_to_end {
            true => descendants.end(),
            false => Vec::new(),
        };
        watcher.finish();
        let status = status?;
        if let Some(own) = own {
            watch::End::from_status(status.into_raw()).write(&directory.path, &own, at);
            if !directory.elected {
                tally::trim(&directory.path, |name| *name == own);
            }
        }
        Ok(Ended { status, left })
    });
    probe.remove();
    ended
}

/// The functions that the options choose.
fn choice(options: &Options) -> Result<lockstep_patch::Options, Error> {
    let choice = lockstep_patch::Options {
        trace: options.trace.clone(),
        skip: options.skip.clone(),
        fault: None,
        silent: !options.events,
    };
    choice
        .check()
        .map_err(|error| Error::own(error.to_string()))?;
    let broken = |pattern: &&String| pattern.is_empty() || pattern.contains(['\n', '\r', '\0']);
    if let Some(pattern) = choice.trace.iter().chain(&choice.skip).find(broken) {
        return Err(Error::own(format!(
            "expected a pattern in one line (\\n stands for a line break), found {pattern:?}"
        )));
    }
    Ok(choice)
}

fn run_untraced(
    options: &Options,
    path: &std::path::Path,
    reason: String,
) -> Result<Outcome, Error> {
    launch::catch_signals();
    let descendants = Descendants::new(None);
    let child = launch::start(&mut launch::plain_command(options, path))?;
    let status = launch::wait(&child)?;
    Ok(Outcome {
        status: exit_code(status),
        left: match launch::is_asked_to_end() {
            true => descendants.end(),
            false => Vec::new(),
        },
        summary: None,
        untraced: Some(reason),
        unmatched: Vec::new(),
        unmatched_images: Vec::new(),
        buffered: None,
    })
}

/// How the command's own process is named in the run.
fn own_name(pid: u32, redact: bool) -> Option<process::FileName> {
    let pid = pid.cast_signed();
    Some(process::FileName {
        host: if redact {
            process::redacted(&process::host())
        } else {
            process::host_in_names()
        },
        pid,
        start: process::child_start_time(pid)?,
    })
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .unwrap_or(125);
    u8::try_from(code & 0xff).unwrap_or(125)
}

fn summary(directory: &Directory, bound: Option<Bound>) -> Summary {
    let (tally, missing) = tally::close(&directory.path);
    Summary {
        directory: directory.shown.clone(),
        processes: tally.processes,
        events: tally.events,
        lost: tally.lost,
        too_many: tally.too_many,
        bound,
        bytes: tally.bytes,
        // Inside a launcher others record the other ranks.
        missing: match inject::own_rank() {
            Some(_) => Vec::new(),
            None => missing,
        },
    }
}
