//! `lockstep events`: the exact event sequence of a trace, as it is decoded.

mod document;

use crate::{output, run};
use anyhow::Result;
use clap::Args;
pub use document::Document;
use lockstep_comm::communicators::{Communicators, Resolved};
use lockstep_trace::{Annotated, Event, Frames, Run, Selection, Thread, When};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Print the exact event sequence of a trace: one line an event, `call NAME` or `return`
///
/// A tail call shows nested, its frame returning after it; --raw shows it as `tail`, as recorded.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep events bad -t 5.0
  lockstep events bad -t 5.0 | grep -c 'call MPI_Send'
  lockstep events bad -t 5.0 --raw --ids | tail
  lockstep events bad -t 5.0 --from 1000000 --to 1000100
  lockstep events bad -t 5.0 --arguments --time | grep MPI_ | tail
")]
pub struct Events {
    /// Directory of the run
    run: PathBuf,
    /// The trace, such as 6.4
    #[arg(short = 't', value_name = "P.T")]
    trace: Selection,
    /// Begin with this event, counted from 0 as `--raw` shows them; in a sealed run it is found at once
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// End before this event
    #[arg(long, value_name = "N")]
    to: Option<u64>,
    /// Print the run's number of the function instead of its name (see `calls --json`)
    #[arg(long)]
    ids: bool,
    /// Show `tail` where a function hands over to the next call and ends with it
    #[arg(long)]
    raw: bool,
    /// Show the arguments of MPI calls, and what they gave back: the program's own communicators by a number and their
    /// members, ranks in them also as ranks in the world, both where the run shows them
    #[arg(long)]
    arguments: bool,
    /// Mark the returns that nobody saw (`return  (inferred)`): the frame was found gone at the thread's next event, after
    /// a jump, an exception or a switch of stacks
    #[arg(long)]
    inferred: bool,
    /// Show when each event was, in seconds since the run began: `*` where that was measured, else the time before
    /// which it was not, and behind `<` the one after which it was not
    #[arg(long)]
    time: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Events {
    pub fn run(self) -> Result<ExitCode> {
        let run = if self.arguments {
            // They name communicators, which all ranks tell of.
            run::open(&self.run)?
        } else {
            run::open_for(&self.run, &self.trace, |_, _| false)?
        };
        let thread = run::trace(&run, &self.trace)?;
        if self.json {
            output::json(&Document::new(&self, &run, thread))?;
        } else {
            output::print(|out| self.text(out, &run, thread))?;
        }
        if let Some(nothing) = self.nothing(thread) {
            output::complain(&nothing);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Why there is nothing to print, where a number is the reason.
    fn nothing(&self, thread: &Thread) -> Option<String> {
        let (from, events) = (self.from, thread.events);
        match self.to {
            Some(to) if to <= from => Some(format!(
                "--from {from} --to {to}: expected a range, found no event between them"
            )),
            _ if from > 0 && from >= events => Some(match events.checked_sub(1) {
                Some(last) => format!(
                    "--from {from}: expected an event of trace {}, from 0 to {last}",
                    thread.name
                ),
                None => format!("trace {} has no event", thread.name),
            }),
            _ => None,
        }
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
        self.each(run, thread, |shown| {
            if self.time {
                write!(out, "{}", column(shown.when))?;
            }
            match shown.event {
                Event::Call(function) if self.ids => write!(out, "call {}", function.0)?,
                Event::Call(function) => write!(out, "call {}", names[function.0 as usize])?,
                Event::Return => out.write_all(b"return")?,
                Event::Tail => out.write_all(b"tail")?,
            }
            match (shown.event, shown.arguments) {
                (_, None) => {}
                (Event::Return, Some(results)) if results.meanings.is_empty() => {}
                (Event::Return, Some(results)) => write!(out, " {}", shown.known.show(results))?,
                (_, Some(arguments)) => write!(out, "{}", shown.known.show(arguments))?,
            }
            if shown.inferred {
                out.write_all(b"  (inferred)")?;
            }
            out.write_all(b"\n")
        })
    }

    /// Gives every event to `write`; without `--raw`, tails as the extra returns that they stand for.
    fn each<E>(
        &self,
        run: &Run,
        thread: &Thread,
        mut write: impl FnMut(Shown<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let known = match self.arguments {
            true => Communicators::of(run),
            false => Communicators::default(),
        };
        let mut timeline = self.time.then(|| thread.timeline()).flatten();
        let needs_all = self.arguments || self.time || self.inferred;
        let mut frames = if needs_all {
            Frames::default()
        } else {
            thread.frames_before(self.from)
        };
        let mut one = |next: &Annotated, arguments: Option<&Resolved>| {
            let event = next.event;
            if next.index < self.from {
                frames.apply(event);
                return Ok(());
            }
            let shown = Shown {
                event,
                arguments,
                known: &known,
                inferred: self.inferred && next.inferred,
                when: timeline.as_mut().map(|line| line.at(next.symbols)),
            };
            if self.raw {
                return write(shown);
            }
            let ended = frames.apply(event);
            match event {
                Event::Call(_) => write(shown),
                Event::Tail => Ok(()),
                Event::Return => {
                    write(shown)?;
                    let more = Shown {
                        arguments: None,
                        ..shown
                    };
                    (1..ended).try_for_each(|_| write(more))
                }
            }
        };
        let to = self.to.unwrap_or(u64::MAX);
        if self.arguments {
            let mut all = known
                .events(thread)
                .take_while(|next| next.annotated.index < to);
            return all.try_for_each(|next| {
                let has_any = next.annotated.arguments.is_some();
                one(&next.annotated, has_any.then_some(&next))
            });
        }
        if self.time || self.inferred {
            let mut all = thread.arguments().take_while(|next| next.index < to);
            return all.try_for_each(|next| one(&next, None));
        }
        let mut events = thread.events_from(self.from).zip(self.from..to);
        events.try_for_each(|(event, index)| {
            let plain = Annotated {
                index,
                event,
                symbols: 0,
                inferred: false,
                arguments: None,
                line: None,
            };
            one(&plain, None)
        })
    }
}

/// An event and what is to be shown with it.
#[derive(Clone, Copy)]
struct Shown<'a> {
    event: Event,
    arguments: Option<&'a Resolved>,
    known: &'a Communicators,
    inferred: bool,
    when: Option<When>,
}

fn column(when: Option<When>) -> String {
    let seconds = |time: Duration| format!("{:13.9}", time.as_secs_f64());
    let wide = |text: String| format!("{text:<29} ");
    match when {
        Some(When::Known(time)) => wide(format!("*{}", seconds(time))),
        Some(When::Between(earliest, latest)) => {
            wide(format!(" {} <{}", seconds(earliest), seconds(latest)))
        }
        Some(When::After(earliest)) => wide(format!(" {}", seconds(earliest))),
        None => wide(format!("{:>14}", "-")),
    }
}
