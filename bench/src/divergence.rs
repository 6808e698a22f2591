//! `cargo xtask bench divergence`: how soon the first difference of two stored runs of a billion events is known.
//!
//! The runs are written as process files and sealed by `lockstep seal`, as anybody's runs are; one call of one rank differs.
//! A step of the generated program has some 5,000 events, with an inner solver whose iterations vary from step to step, so
//! that hardly two steps are equal.

use crate::generated;
use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_calltree::{Forest, Trace};
use lockstep_compare::{Divergence, Side, first_divergence};
use lockstep_loops::Names;
use lockstep_testkit::artifacts;
use lockstep_testkit::generate::Random;
use lockstep_trace::Run;
use lockstep_writer::{Builder, Error, FunctionNumber};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench divergence [OPTION]...

Writes and seals runs that differ in one call, and measures reading two of them, the first divergence of all traces once they are
read (the least of five), and `lockstep diff` as a whole. Takes some minutes for a billion events.

  --events N     of each run (1000000000)
  --ranks LIST   16,1
  --fresh        forget the rows that are there
";

const HEADS: [&str; 14] = [
    "change",
    "ranks",
    "events",
    "write_seconds",
    "seal_seconds",
    "captured",
    "sealed",
    "nodes",
    "load_milliseconds",
    "names_milliseconds",
    "divergence_milliseconds",
    "diff_seconds",
    "diff_processor_seconds",
    "diff_bytes",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--events", "--ranks"], &["--fresh"])?;
    let path = measure::results_directory()?.join("divergence.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let events: u64 = given.number("--events", 1_000_000_000)?;
    println!("{}", HEADS.join("\t"));
    for ranks in given.list("--ranks", "16,1") {
        let left = CHANGES.iter().filter(|it| !rows.has(&[it.0, &ranks]));
        let left: Vec<Change> = left.copied().collect();
        several(&left, ranks.parse()?, events, |row| {
            println!("{}", row.join("\t"));
            rows.add(&row)
        })?;
    }
    Ok(())
}

/// What a faulty run does in the place of a call of `norm`: a call that nobody else makes, or none.
type Change = (&'static str, Option<&'static str>);

const CHANGES: [Change; 2] = [("another call", Some(CHANGED)), ("left out", None)];

/// Each row is told at once: the next one takes minutes.
fn several(
    changes: &[Change],
    ranks: u32,
    least: u64,
    mut tell: impl FnMut(Vec<String>) -> Result<()>,
) -> Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    let place = |change| Place {
        rank: ranks / 3,
        // Two thirds of the way.
        event: least / u64::from(ranks) * 2 / 3,
        change,
    };
    let normal = Stored::new("divergence-normal", ranks, least, None)?;
    for (name, change) in changes {
        let place = place(*change);
        let faulty = Stored::new("divergence-faulty", ranks, least, Some(place))?;
        let found = in_process(&normal.directory, &faulty.directory, place)?;
        let mut diff = Command::new(artifacts::lockstep());
        diff.args(["diff", "--json"])
            .arg(&normal.directory)
            .arg(&faulty.directory);
        diff.args(["-t", &format!("{}.0", place.rank)]);
        let cost = measure::cost(&mut diff)?;
        ensure!(cost.status == 1, "diff: status {}", cost.status);
        std::fs::remove_dir_all(&faulty.directory)?;
        tell(vec![
            (*name).to_owned(),
            ranks.to_string(),
            normal.events.to_string(),
            format!("{:.1}", normal.write_seconds + faulty.write_seconds),
            format!("{:.1}", normal.seal_seconds + faulty.seal_seconds),
            (normal.captured + faulty.captured).to_string(),
            (normal.sealed + faulty.sealed).to_string(),
            found.nodes.to_string(),
            format!("{:.1}", found.load),
            format!("{:.1}", found.names),
            format!("{:.3}", found.divergence),
            format!("{:.2}", cost.wall),
            format!("{:.2}", cost.cpu),
            cost.memory.to_string(),
        ])?;
    }
    std::fs::remove_dir_all(&normal.directory)?;
    Ok(())
}

/// A sealed run, and what it took.
struct Stored {
    directory: PathBuf,
    events: u64,
    write_seconds: f64,
    seal_seconds: f64,
    captured: u64,
    sealed: u64,
}

impl Stored {
    fn new(name: &str, ranks: u32, least: u64, changed: Option<Place>) -> Result<Self> {
        let start = Instant::now();
        let (directory, events) = write(name, ranks, least, changed)?;
        let write_seconds = start.elapsed().as_secs_f64();
        let captured = measure::bytes_below(&directory);
        let start = Instant::now();
        let words = [
            artifacts::lockstep().display().to_string(),
            "seal".to_owned(),
            directory.display().to_string(),
        ];
        let ran = Job::plain(&words).seconds(3600).run()?;
        ensure!(ran.status == 0, "seal: status {}", ran.status);
        Ok(Self {
            seal_seconds: start.elapsed().as_secs_f64(),
            sealed: measure::bytes_below(&directory),
            directory,
            events,
            write_seconds,
            captured,
        })
    }
}

/// Milliseconds.
struct Found {
    nodes: usize,
    load: f64,
    names: f64,
    divergence: f64,
}

fn in_process(normal: &Path, faulty: &Path, place: Place) -> Result<Found> {
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let runs = [Run::open(normal)?, Run::open(faulty)?];
    let mut forest = Forest::new();
    let [normal, faulty] = runs.each_ref().map(|run| forest.add_run(run));
    let load = milliseconds(start);
    let start = Instant::now();
    let mut names = Names::new();
    for trace in normal.iter().chain(&faulty) {
        forest.name_loops(trace.root, &mut names);
    }
    let of_names = milliseconds(start);
    let first = |(normal, faulty): (&Trace, &Trace)| -> Option<Divergence> {
        let (name, sides) = (faulty.name, [normal, faulty].map(|it| Side::whole(it.root)));
        first_divergence(&forest, name, sides[0], sides[1], None, &names).structure
    };
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        let found: Vec<Divergence> = normal.iter().zip(&faulty).filter_map(first).collect();
        least = least.min(milliseconds(start));
        let [found] = found.as_slice() else {
            anyhow::bail!("expected a divergence in one trace, found {}", found.len());
        };
        ensure!(
            found.trace.to_string() == format!("{}.0", place.rank)
                && found.faulty.as_deref() == Some(place.change.unwrap_or("MPI_Allreduce"))
                && found.normal.as_deref() == Some("norm")
                && found.event >= place.event
                && found.normal_event == found.event,
            "expected {place:?}, found {found:?}"
        );
    }
    Ok(Found {
        nodes: forest.len(),
        load,
        names: of_names,
        divergence: least,
    })
}

/// In this rank, after so many events, another call stands for `norm` once, or none.
#[derive(Debug, Clone, Copy)]
struct Place {
    rank: u32,
    event: u64,
    change: Option<&'static str>,
}

const CHANGED: &str = "norm_of_another";

const FUNCTIONS: [&str; 18] = [
    "main",
    "MPI_Init",
    "MPI_Irecv",
    "MPI_Isend",
    "MPI_Waitall",
    "MPI_Allreduce",
    "MPI_Finalize",
    "step",
    "exchange",
    "region",
    "element",
    "solve",
    "residual",
    "iterate",
    "product",
    "norm",
    "limit",
    CHANGED,
];

/// Writes a run of at least so many events; how many it has.
fn write(name: &str, ranks: u32, least: u64, changed: Option<Place>) -> Result<(PathBuf, u64)> {
    let directory = empty(name)?;
    let mut builder = Builder::new(&directory)?;
    let functions = generated::functions(&mut builder, FUNCTIONS)?;
    let mut all = 0;
    for rank in 0..ranks {
        generated::begin(&mut builder, Some(rank))?;
        let mut code = Code {
            builder: &mut builder,
            functions: &functions,
            events: 0,
            change: changed.filter(|it| it.rank == rank),
            random: Random::new(1 + u64::from(rank)),
        };
        code.run(least / u64::from(ranks))?;
        all += code.events;
        builder.end()?;
    }
    builder.finish(&serde_json::json!({}))?;
    Ok((directory, all))
}

/// What a rank does.
struct Code<'a> {
    builder: &'a mut Builder,
    functions: &'a [FunctionNumber],
    events: u64,
    change: Option<Place>,
    random: Random,
}

impl Code<'_> {
    fn call(&mut self, name: &str) -> Result<(), Error> {
        self.events += 1;
        let place = FUNCTIONS.iter().position(|it| *it == name);
        let function = place.and_then(|place| self.functions.get(place));
        function.map_or(Ok(()), |function| self.builder.call(*function, None))
    }

    fn ret(&mut self) -> Result<(), Error> {
        self.events += 1;
        self.builder.ret(None)
    }

    fn leaves(&mut self, name: &str, count: u64) -> Result<(), Error> {
        for _ in 0..count {
            self.call(name)?;
            self.ret()?;
        }
        Ok(())
    }

    fn run(&mut self, least: u64) -> Result<()> {
        self.call("main")?;
        self.leaves("MPI_Init", 1)?;
        while self.events < least {
            self.step().context("a run")?;
        }
        self.leaves("MPI_Finalize", 1)?;
        self.ret()?;
        Ok(())
    }

    fn step(&mut self) -> Result<(), Error> {
        self.call("step")?;
        self.exchange(26)?;
        for _ in 0..8 {
            self.call("region")?;
            self.leaves("element", 40)?;
            self.ret()?;
        }
        for _ in 0..1 + self.random.below(4) {
            self.call("solve")?;
            self.call("residual")?;
            self.exchange(6)?;
            self.leaves("element", 20)?;
            self.ret()?;
            for _ in 0..20 + self.random.below(40) {
                self.call("iterate")?;
                self.exchange(6)?;
                self.leaves("product", 8)?;
                let changed = self.change.take_if(|place| self.events >= place.event);
                if let Some(call) = changed.map_or(Some("norm"), |place| place.change) {
                    self.leaves(call, 1)?;
                }
                self.leaves("MPI_Allreduce", 2)?;
                self.ret()?;
            }
            self.ret()?;
        }
        self.leaves("limit", 100)?;
        self.leaves("MPI_Allreduce", 1)?;
        self.ret()
    }

    fn exchange(&mut self, neighbours: u64) -> Result<(), Error> {
        self.call("exchange")?;
        self.leaves("MPI_Irecv", neighbours)?;
        self.leaves("MPI_Isend", neighbours)?;
        self.leaves("MPI_Waitall", 1)?;
        self.ret()
    }
}
