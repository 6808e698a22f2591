//! `lockstep events`: the exact event sequence of a trace, as it is decoded.

use crate::{output, run};
use anyhow::Result;
use clap::Args;
use lockstep_trace::{Event, Frames, Run, Selection, Thread};
use serde_json::json;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the exact event sequence of a trace: one line an event, `call NAME` or `return`
///
/// A tail call shows nested, its frame returning after it; --raw shows it as `tail`, as recorded.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep events bad -t 5.0
  lockstep events bad -t 5.0 | grep -c 'call MPI_Send'
  lockstep events bad -t 5.0 --raw --ids | tail
")]
pub struct Events {
    /// Directory of the run
    run: PathBuf,
    /// The trace, such as 6.4
    #[arg(short = 't', value_name = "P.T")]
    trace: Selection,
    /// Print the run's number of the function instead of its name (see `calls --json`)
    #[arg(long)]
    ids: bool,
    /// Show `tail` where a function hands over to the next call and ends with it
    #[arg(long)]
    raw: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Events {
    pub fn run(self) -> Result<ExitCode> {
        let run = run::open(&self.run)?;
        let thread = run::trace(&run, &self.trace)?;
        if self.json {
            output::print(|out| self.json(out, &run, thread))?;
        } else {
            output::print(|out| self.text(out, &run, thread))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn text(&self, out: &mut impl Write, run: &Run, thread: &Thread) -> io::Result<()> {
        // A name is made fit for a terminal once, not once a call.
        let names: Vec<String> = if self.ids {
            Vec::new()
        } else {
            run.functions
                .iter()
                .map(|function| output::printable(&function.name))
                .collect()
        };
        self.each(thread, |event| match event {
            Event::Call(function) if self.ids => writeln!(out, "call {}", function.0),
            Event::Call(function) => writeln!(out, "call {}", names[function.0 as usize]),
            Event::Return => out.write_all(b"return\n"),
            Event::Tail => out.write_all(b"tail\n"),
        })
    }

    fn json(&self, out: &mut impl Write, run: &Run, thread: &Thread) -> io::Result<()> {
        write!(out, "{{\"trace\":\"{}\",\"events\":[", thread.name)?;
        let mut first = true;
        self.each(thread, |event| {
            if !std::mem::take(&mut first) {
                out.write_all(b",")?;
            }
            let value = match event {
                Event::Call(function) => json!({
                    "event": "call", "id": function.0, "name": run.function(function).name
                }),
                Event::Return => json!({"event": "return"}),
                Event::Tail => json!({"event": "tail"}),
            };
            Ok(serde_json::to_writer(&mut *out, &value)?)
        })?;
        writeln!(out, "]}}")
    }

    /// Gives every event to `write`; without `--raw`, tails as the extra returns that they stand for.
    fn each(
        &self,
        thread: &Thread,
        mut write: impl FnMut(Event) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut frames = Frames::default();
        for event in thread.events() {
            if self.raw {
                write(event)?;
                continue;
            }
            let ended = frames.apply(event);
            match event {
                Event::Call(_) => write(event)?,
                Event::Tail => {}
                Event::Return => (0..ended.max(1)).try_for_each(|_| write(Event::Return))?,
            }
        }
        Ok(())
    }
}
