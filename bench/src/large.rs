//! `cargo xtask bench large`: how much memory commands take for a run whose events hardly repeat.
//!
//! Two runs of a process whose threads do something new for as long as they run: the first calls one of 200 functions in random
//! order, one after another; the others build call trees of random shape. Both runs are equal up to half of their events.

use crate::generated;
use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::words::Words;
use anyhow::{Context, Result};
use lockstep_testkit::{artifacts, generate::Random};
use lockstep_writer::{Builder, FunctionNumber};
use std::path::Path;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench large [OPTION]...

Seconds and peak memory of commands that read runs whose events hardly repeat, so that nothing can be stored once: as recorded,
then sealed. With as many events as that, some minutes and two bytes an event on the disk.

  --events LIST    events of a run, of all its threads together (1000000,10000000,100000000)
  --threads N      4
  --only TEXT      commands with this in them: `seal`
  --fresh          forget the rows that are there
";

const HEADS: [&str; 7] = [
    "events",
    "threads",
    "command",
    "status",
    "seconds",
    "cpu_seconds",
    "peak_bytes",
];

/// Functions that are called.
const FUNCTIONS: u64 = 200;
/// What stands for the runs in the commands below.
const RUNS: [&str; 2] = ["A", "B"];
/// `seal` comes last but for what reads what it leaves; a status of 1 says that runs differ, of 2 that
/// a trace's tree would be larger than the bound.
const COMMANDS: &[&str] = &[
    "info A",
    "stack A -t 0.2",
    "stack A -t 0.2 --at MIDDLE",
    "events A -t 0.2 --from MIDDLE --to MIDDLE1",
    "events A -t 0.2",
    "calls A",
    "tree A -t 0.2 --depth 2",
    "loops A -t 0.2",
    "export A --to collapsed -o OUT",
    "progress A",
    "diff A B -t 0.1",
    "diff A B -t 0.2",
    "compare A B --fresh --filter everything",
    "compare A B --fresh",
    "seal A B",
    "info A",
    "stack A -t 0.2 --at MIDDLE",
    "calls A",
    "compare A B --fresh",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--events", "--threads", "--only"], &["--fresh"])?;
    let path = measure::results_directory()?.join("large.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    let threads = given.text("--threads", "4");
    for events in given.list("--events", "1000000,10000000,100000000") {
        if rows.has(&[&events, threads]) {
            continue;
        }
        let directory = empty("large")?;
        let each = events.parse::<u64>()? / threads.parse::<u64>()?;
        for (run, other) in RUNS.iter().zip(0..) {
            let run = directory.join(run);
            std::fs::create_dir(&run)?;
            write(&run, threads.parse()?, each, other)?;
        }
        let only = given.text("--only", "");
        let asked = |it: &&(usize, &&str)| it.1.contains(only);
        for (number, command) in COMMANDS.iter().enumerate().filter(|it| asked(&it)) {
            let sealed = COMMANDS[..number].contains(&"seal A B");
            let row = one(command, &directory, each)?;
            let named = if sealed {
                format!("{command} (sealed)")
            } else {
                (*command).to_owned()
            };
            let mut cells = vec![events.clone(), threads.to_owned(), named];
            cells.extend(row);
            println!("{}", cells.join("\t"));
            rows.add(&cells)?;
        }
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn one(command: &str, directory: &Path, each: u64) -> Result<Vec<String>> {
    let word = |word: &str| match word {
        "A" | "B" | "OUT" => directory.join(word).display().to_string(),
        "MIDDLE" => (each / 2).to_string(),
        "MIDDLE1" => (each / 2 + 100).to_string(),
        word => word.to_owned(),
    };
    let mut words = vec![artifacts::lockstep().display().to_string()];
    words.extend(command.split(' ').map(word));
    let ran = Job::plain(&words).seconds(1200).run()?;
    Ok(vec![
        ran.status.to_string(),
        format!("{:.2}", ran.wall),
        format!("{:.2}", ran.cpu),
        ran.peak.to_string(),
    ])
}

/// A run; that of another `seed` goes another way from the middle on.
fn write(directory: &Path, threads: u64, each: u64, seed: u64) -> Result<()> {
    let mut builder = Builder::new(directory)?;
    let names = (0..FUNCTIONS).map(|index| format!("f{index}"));
    let functions = generated::functions(&mut builder, names)?;
    let process = generated::begin(&mut builder, None)?;
    for thread in 0..threads {
        if thread > 0 {
            builder.begin(process, thread as u32)?;
        }
        let mut source = Source {
            builder: &mut builder,
            functions: &functions,
            random: Random::new(100 + thread),
            written: 0,
        };
        source.call(0)?;
        let mut is_own = seed == 0;
        while source.written < each {
            if !is_own && source.written > each / 2 {
                is_own = true;
                source.random = Random::new(seed << 32 | thread);
            }
            match thread {
                0 => source.leaf()?,
                _ => source.tree(5)?,
            }
        }
        source.builder.ret(None)?;
        builder.end()?;
    }
    builder.finish(&serde_json::json!({}))?;
    Ok(())
}

struct Source<'a> {
    builder: &'a mut Builder,
    functions: &'a [FunctionNumber],
    random: Random,
    written: u64,
}

impl Source<'_> {
    fn call(&mut self, function: u64) -> Result<()> {
        let function = self.functions.get(function as usize);
        self.written += 1;
        Ok(self.builder.call(*function.context("a function")?, None)?)
    }

    fn ret(&mut self) -> Result<()> {
        self.written += 1;
        Ok(self.builder.ret(None)?)
    }

    fn leaf(&mut self) -> Result<()> {
        let function = 1 + self.random.below(FUNCTIONS - 1);
        self.call(function)?;
        self.ret()
    }

    /// A call with up to four calls in it, and so on.
    fn tree(&mut self, depth: u32) -> Result<()> {
        let function = 1 + self.random.below(FUNCTIONS - 1);
        self.call(function)?;
        if depth > 0 {
            for _ in 0..self.random.below(5) {
                self.tree(depth - 1)?;
            }
        }
        self.ret()
    }
}
