//! `lockstep seal`: a run as one shared call tree, in the place of what was recorded.

use crate::output;
use anyhow::{Result, bail};
use clap::Args;
use lockstep_calltree::trees;
use lockstep_trace::sealed::{Sizes, Store, seal};
use lockstep_trace::{Run, Sealable};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Store a run as one call tree for all its threads: smaller, and any event is found at once
///
/// Every command reads a sealed run as before. What was recorded is removed once the sealed file has been written, read
/// back and compared with it, event by event.
#[derive(Debug, Args)]
#[command(before_help = "EXAMPLES
  lockstep seal good
  lockstep seal good bad --store nightly-store
")]
pub struct Seal {
    /// Directories of the runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Keep what the runs have in common there, once for all runs that were sealed so; they can be read as long as it is there
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Keep what was recorded beside the sealed file
    #[arg(long)]
    keep_capture: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Sizes of runs before and after sealing.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    /// The runs, in the order of the command line.
    runs: Vec<Sealed<'a>>,
    /// Directory of the call trees that runs share (`--store`). Null without `--store`.
    store: Option<Cow<'a, str>>,
}

/// A run that was sealed.
#[derive(Serialize, JsonSchema)]
struct Sealed<'a> {
    /// Directory of the run.
    run: Cow<'a, str>,
    /// Number of its events.
    events: u64,
    /// Sizes before sealing.
    before: Before,
    /// Sizes after sealing.
    after: After,
    /// Number of threads that are kept as they were recorded, because only their last events are there, or because a
    /// call tree would be larger.
    threads_kept_as_recorded: u64,
}

/// Sizes before sealing, in bytes.
#[derive(Serialize, JsonSchema)]
struct Before {
    /// Bytes of the process files.
    files: u64,
    /// Bytes of the streams of events in these files.
    streams: u64,
}

/// Sizes after sealing, in bytes.
#[derive(Serialize, JsonSchema)]
struct After {
    /// Bytes of the sealed file.
    file: u64,
    /// Bytes of the call trees in the sealed file. With `--store`: of those added to the store for all runs together.
    trees: u64,
}

impl Seal {
    pub fn run(self) -> Result<ExitCode> {
        let mut opened = Vec::new();
        for directory in &self.runs {
            lockstep_record::gather(directory)?;
            let run = Sealable::open(directory)?;
            run.check()?;
            output::remark(&run.run.notes);
            if opened
                .iter()
                .any(|it: &Sealable| it.run.directory == run.run.directory)
            {
                bail!(
                    "expected different runs, found {} twice",
                    directory.display()
                );
            }
            opened.push(run);
        }
        let store = self.store.as_deref().map(Store::open).transpose()?;
        let sealables: Vec<&Sealable> = opened.iter().collect();
        let mut sizes: Vec<Sizes> = Vec::new();
        if store.is_some() {
            let runs: Vec<&Run> = opened.iter().map(|it| &it.run).collect();
            let trees = trees(&runs, store.as_ref())?;
            sizes = seal(&sealables, &trees, store.as_ref(), self.keep_capture)?;
        } else {
            for sealable in &sealables {
                let trees = trees(&[&sealable.run], None)?;
                sizes.extend(seal(&[sealable], &trees, None, self.keep_capture)?);
            }
        }
        if self.json {
            output::json(&self.document(&sizes))?;
        } else {
            output::print(|out| self.print_text(out, &sizes))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn document(&self, sizes: &[Sizes]) -> Document<'_> {
        let runs = self.runs.iter().zip(sizes);
        let runs = runs.map(|(run, sizes)| Sealed {
            run: run.to_string_lossy(),
            events: sizes.events,
            before: Before {
                files: sizes.before,
                streams: sizes.streams,
            },
            after: After {
                file: sizes.after,
                trees: sizes.trees,
            },
            threads_kept_as_recorded: sizes.kept,
        });
        Document {
            runs: runs.collect(),
            store: self.store.as_ref().map(|it| it.to_string_lossy()),
        }
    }

    fn print_text(&self, out: &mut output::Out<'_>, sizes: &[Sizes]) -> std::io::Result<()> {
        for (run, sizes) in self.runs.iter().zip(sizes) {
            writeln!(
                out,
                "{}: {}; recorded {} bytes ({} of events), sealed {}{}",
                output::printable(&run.to_string_lossy()),
                output::plural(sizes.events, "event"),
                output::grouped(sizes.before),
                output::grouped(sizes.streams),
                output::grouped(sizes.after),
                match &self.store {
                    None => format!(" ({} of events)", output::grouped(sizes.trees)),
                    Some(_) => String::new(),
                },
            )?;
            if sizes.kept > 0 {
                writeln!(
                    out,
                    "  {} threads kept as they were recorded (only their last events were kept, or their trees would be larger)",
                    sizes.kept
                )?;
            }
        }
        if let (Some(store), Some(sizes)) = (&self.store, sizes.first()) {
            writeln!(
                out,
                "{}: {} bytes of events more",
                output::printable(&store.to_string_lossy()),
                output::grouped(sizes.trees)
            )?;
        }
        Ok(())
    }
}
