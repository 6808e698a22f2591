//! `lockstep stack`: the calls that are open at an event, or at the end.

use crate::output::{self, Style};
use crate::run;
use anyhow::{Context, Result};
use clap::Args;
use lockstep_comm::communicators::Communicators;
use lockstep_trace::{Frame, FunctionId, Run, Selection, Thread, TraceName, mpi};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show the call stack of a trace: at an event, or the calls that are open at its end
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep stack bad -t 5.0
  lockstep stack bad -t 5.0 --at 1000
")]
pub struct Stack {
    /// Directory of the run
    run: PathBuf,
    /// The trace, such as 6.4
    #[arg(short = 't', value_name = "P.T")]
    trace: Selection,
    /// The stack right after this event, counted from 0
    #[arg(long, value_name = "N")]
    at: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The open calls of a trace.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The trace.
    trace: TraceName,
    /// Number of the event (`--at`) right after which the calls are open, from 0. Null for the end of the trace.
    at: Option<u64>,
    /// Names of the functions, outermost first.
    stack: Vec<&'a str>,
    /// The same calls with everything that is known about them.
    frames: Vec<FrameRow<'a>>,
    /// The function called last inside the innermost open call, if it may still be running. Null otherwise, and with `--at`.
    may_be_open: Option<&'a str>,
}

/// One open call.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Frame")]
struct FrameRow<'a> {
    /// Name of the function.
    name: &'a str,
    /// File name of the program or library that contains the function; `library` if the program calls it in a library.
    image: &'a str,
    /// Whether the call handed over to the next frame (a tail call). Both end together.
    handed_over: bool,
    /// Arguments of an MPI call, such as `(dest=6, tag=77)`. Null if they are unknown, for other calls, and with `--at`.
    arguments: Option<&'a str>,
    /// Source line of the call. Null if it is unknown, and with `--at`.
    called_at: Option<Place<'a>>,
}

/// A line of the source.
#[derive(Serialize, JsonSchema)]
struct Place<'a> {
    /// The file, as the debug information names it.
    file: &'a str,
    /// The line, from 1.
    line: u32,
}

impl Stack {
    pub fn run(self) -> Result<ExitCode> {
        let shows = |run: &Run, thread: &Thread| self.shows_arguments(run, thread);
        let run = run::open_for(&self.run, &self.trace, shows)?;
        let thread = run::trace(&run, &self.trace)?;
        let frames = self.frames(thread)?;
        let mut arguments: Vec<Option<String>> = Vec::new();
        if self.shows_arguments(&run, thread) {
            let known = Communicators::of(&run);
            let open = known.open(thread);
            let show = |it: &Option<_>| it.as_ref().map(|it| known.show(it).to_string());
            arguments = open.iter().map(show).collect();
        }
        arguments.resize(frames.len(), None);
        if self.json {
            output::json(&self.document(&run, thread, &frames, &arguments))?;
        } else {
            output::print(|out| self.print_text(out, &run, thread, &frames, &arguments))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// To know arguments is a pass over all events of all ranks, whose communicators they name: only MPI calls have some.
    fn shows_arguments(&self, run: &Run, thread: &Thread) -> bool {
        let mut open = thread.open.iter().map(|it| run.function(it.function));
        self.at.is_none()
            && open.any(|it| it.imported && mpi::Function::of(it.linkage.as_bytes()).is_some())
    }

    fn frames(&self, thread: &Thread) -> Result<Vec<Frame>> {
        let Some(at) = self.at else {
            return Ok(thread.open.clone());
        };
        thread.stack_at(at).with_context(|| {
            format!(
                "expected --at below {}, the number of events of {}, found {at}",
                thread.events, thread.name
            )
        })
    }

    /// The function whose call and return, recorded as one, came last.
    fn leaf(&self, thread: &Thread) -> Option<FunctionId> {
        thread
            .open_leaf
            .filter(|_| self.at.is_none() && !thread.open.is_empty())
    }

    fn document<'a>(
        &self,
        run: &'a Run,
        thread: &Thread,
        frames: &'a [Frame],
        arguments: &'a [Option<String>],
    ) -> Document<'a> {
        let name = |of: FunctionId| run.function(of).name.as_str();
        let rows = frames.iter().zip(arguments);
        let rows = rows.map(|(frame, arguments)| FrameRow {
            name: name(frame.function),
            image: &run.function(frame.function).image,
            handed_over: frame.handed_over,
            arguments: arguments.as_deref(),
            called_at: frame.called_at.as_ref().map(|at| Place {
                file: &at.file,
                line: at.line,
            }),
        });
        Document {
            trace: thread.name,
            at: self.at,
            stack: frames.iter().map(|frame| name(frame.function)).collect(),
            frames: rows.collect(),
            may_be_open: self.leaf(thread).map(name),
        }
    }

    fn print_text(
        &self,
        out: &mut output::Out<'_>,
        run: &Run,
        thread: &Thread,
        frames: &[Frame],
        arguments: &[Option<String>],
    ) -> std::io::Result<()> {
        let place = match self.at {
            Some(at) => format!("at event {at}"),
            None => format!(
                "at the end, after {}",
                output::plural(thread.events, "event")
            ),
        };
        writeln!(out, "{} {place}, outermost first:", thread.name)?;
        if frames.is_empty() {
            writeln!(out, "  nothing is open")?;
        }
        // Files below the current directory need no longer name.
        let here = std::env::current_dir().ok();
        let mut arrow = "";
        for (depth, (frame, arguments)) in frames.iter().zip(arguments).enumerate() {
            let mut name = run::function_name(run, frame.function);
            name.push_str(arguments.as_deref().unwrap_or_default());
            let at = frame.called_at.as_ref().map_or_else(String::new, |at| {
                let file = here
                    .as_deref()
                    .and_then(|here| Path::new(&at.file).strip_prefix(here).ok());
                let file = file.map_or_else(|| at.file.clone(), |file| file.display().to_string());
                let place = format!("  called at {}:{}", output::printable(&file), at.line);
                output::styled(Style::Faint, place)
            });
            writeln!(
                out,
                "  {:indent$}{arrow}{name}{at}",
                "",
                indent = 2 * depth.min(20)
            )?;
            arrow = if frame.handed_over { "~> " } else { "" };
        }
        if let Some(leaf) = self.leaf(thread) {
            let name = run::function_name(run, leaf);
            let indent = 2 * frames.len().min(20);
            writeln!(
                out,
                "  {:indent$}{name} was the last call, and may still be running",
                ""
            )?;
        }
        Ok(())
    }
}
