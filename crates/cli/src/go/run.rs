//! `lockstep go run`: a Go program under many schedules.

use super::document::OfProgram;
use super::options::{Flags, Schedule, built, sources, unmake};
use super::outcome::kept_as;
use super::test::{Scratch, Stopped, row};
use super::words;
use crate::output;
use anyhow::Result;
use clap::Args;
use lockstep_goroutines::campaign::Subject;
use lockstep_goroutines::execution::End;
use lockstep_goroutines::store::{Campaign, Stored};
use lockstep_goroutines::symbols::{Program, Symbols};
use lockstep_goroutines::verdict::Verdict;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Run a main package, once or under many schedules, and judge what its goroutines did
///
/// The program's input and output are its own; the verdict goes to stderr (with --json too). Ends with the program's
/// status, 128 + n when signal n ended it, 137 where it was ended because nothing could move any more. SIGINT, SIGTERM
/// and SIGHUP are passed on: a server ends as it likes, and is judged by how it did.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep go run ./cmd/pipeline input.txt
  lockstep go run --runs 50 -o found . --verbose
")]
pub struct Run {
    #[command(flatten)]
    schedule: Schedule,
    /// The main package
    package: String,
    /// Arguments of the program
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    arguments: Vec<OsString>,
}

impl Run {
    pub fn run(self) -> Result<ExitCode> {
        let flags = Flags::default();
        let builder = self.schedule.builder(&flags)?;
        let place = self.schedule.place()?;
        let scratch = Scratch::new()?;
        let file = place
            .as_ref()
            .map_or_else(|| scratch.0.join("0"), |it| it.join("bin/0"));
        built(builder.program(&self.package, &file)).inspect_err(|_| unmake(place.as_deref()))?;
        let sources = sources(&builder, std::slice::from_ref(&self.package));
        let program = Program::open(&file, &builder.toolchain.root, None)?;
        let symbols = Symbols::of(&program);
        let classes = program.classes();
        let here = std::env::current_dir()?;
        let subject = Subject {
            file: &file,
            symbols: &symbols,
            classes: &classes,
            paths: &sources.paths,
            arguments: self.arguments.clone(),
            directory: &here,
        };
        let options = self.schedule.options(1, &flags, true);
        let mut campaign = Campaign {
            version: 1,
            seed: options.seed,
            directory: here.clone(),
            root: builder.toolchain.root.clone(),
            programs: vec![Stored {
                package: self.package.clone(),
                directory: here.clone(),
            }],
            usages: sources.usages.clone(),
            runs: Vec::new(),
        };
        let mut last = End::Exited(0);
        lockstep_record::remember_signals();
        let mut found = subject.campaign(&options, |run| {
            last = run.outcome.end.clone();
            if let Some(place) = &place {
                let number = campaign.runs.len() + 1;
                campaign
                    .keep(place, number, 0, run)
                    .map_err(Stopped::Store)?;
                campaign
                    .runs
                    .push(row(0, None, &self.arguments, &options, run));
            }
            Ok::<(), Stopped>(())
        })?;
        if let Some(place) = &place {
            campaign.write(place)?;
        }
        found.coverage.expect(sources.usages.into_iter().flatten());
        if let Some(worst @ (judgement, number, plan)) = &found.worst {
            let mut text = Vec::new();
            // Executions are the runs that are kept, one for one.
            let is_kept = place.is_some() && judgement.verdict != Verdict::Pass;
            let kept = is_kept.then_some(found.shown_by as usize);
            if self.schedule.json {
                let value = OfProgram::of(&self.package, &found, worst, kept);
                writeln!(text, "{}", output::Document::new(&value).text()?)?;
            } else {
                writeln!(
                    text,
                    "lockstep: {} in run {number} of {}, seed {}{}",
                    judgement.verdict,
                    found.runs,
                    plan.policy.seed,
                    kept_as(kept)
                )?;
                words::explain(&mut text, judgement)?;
                let suspected: Vec<_> = found.suspected.iter().map(|it| ("main", it)).collect();
                words::suspicions(&mut text, &suspected)?;
            }
            // A closed stderr takes the verdict, not the status.
            let _ = std::io::stderr().write_all(&text);
        }
        Ok(status(&last))
    }
}

/// The program's status as a shell has it.
pub fn status(end: &End) -> ExitCode {
    let code = match end {
        End::Exited(code) => *code,
        End::Signalled(signal) => 128 + signal,
        End::Quiescent | End::TimedOut => 128 + 9,
    };
    ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1))
}
