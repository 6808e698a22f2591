//! `cargo xtask bench ranks`: what loading and sealing a run costs, by its number of ranks.
//!
//! The ranks are generated (`lockstep_testkit::generate::rank_events`: boundaries, trip counts, one in a hundred with
//! something of its own) and written as process files; `lockstep info` and `lockstep seal` read them as any run. Processor time,
//! as a run of so many files waits for the disk, and the machine may have other work. With `--arguments` each rank has what
//! ranks of Open MPI have beside their events, at addresses of its own.

mod arguments;

use crate::chart::{Chart, Line};
use crate::generated;
use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use arguments::Places;
use lockstep_testkit::{artifacts, generate};
use lockstep_trace::Event;
use lockstep_writer::Builder;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench ranks [OPTION]...

Seconds of processor time and memory that `lockstep info` and `lockstep seal` take for a run of many ranks, that `info` takes for the sealed run, and
its size before and after; draws both. Process files take about 30 kB a rank on the disk meanwhile.

  --ranks LIST     16,256,4096,16384,65536
  --arguments      arguments of MPI calls and addresses of handles, others in each rank (rows: ranks-arguments.csv)
  --fresh          forget the rows that are there
";

const HEADS: [&str; 11] = [
    "ranks",
    "events",
    "distinct",
    "load_cpu_seconds",
    "load_peak_bytes",
    "seal_cpu_seconds",
    "seal_peak_bytes",
    "load_sealed_cpu_seconds",
    "load_sealed_peak_bytes",
    "file_bytes",
    "sealed_bytes",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--ranks"], &["--fresh", "--arguments"])?;
    let with_arguments = given.has("--arguments");
    let name = if with_arguments {
        "ranks-arguments"
    } else {
        "ranks"
    };
    let directory = measure::results_directory()?;
    let path = directory.join(format!("{name}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    for count in given.list("--ranks", "16,256,4096,16384,65536") {
        if rows.has(&[&count]) {
            continue;
        }
        let row = one(count.parse()?, with_arguments)?;
        println!("{}", row.join("\t"));
        rows.add(&row)?;
    }
    let drawn = [
        (
            "processor seconds",
            ["load_cpu_seconds", "seal_cpu_seconds"],
            1.0,
        ),
        ("megabytes", ["load_peak_bytes", "seal_peak_bytes"], 1e-6),
    ];
    for (title, heads, unit) in drawn {
        let lines = heads.map(|head| Line {
            name: head.split('_').next().unwrap_or(head).to_owned(),
            values: rows
                .all()
                .map(|row| Some(row.number(head) * unit))
                .collect(),
        });
        let chart = Chart {
            title: format!("a run of so many ranks: {title}"),
            across: rows.all().map(|row| row.text("ranks").to_owned()).collect(),
            lines: lines.into(),
        };
        let name = format!("{name}-{}.svg", title.replace(' ', "-"));
        let path = directory.join(name);
        std::fs::write(path, chart.svg())?;
    }
    Ok(())
}

fn one(count: u32, with_arguments: bool) -> Result<Vec<String>> {
    let directory = empty("ranks")?;
    let (events, distinct) = write(count, with_arguments, &directory)?;
    let lockstep = artifacts::lockstep().display().to_string();
    let words = |subcommand: &str| {
        let run = directory.display().to_string();
        [
            lockstep.clone(),
            subcommand.to_owned(),
            "--json".to_owned(),
            run,
        ]
    };
    let load = Job::plain(&words("info")).run()?;
    ensure!(load.status == 0, "info: status {}", load.status);
    let said = directory.with_extension("json");
    let seal = Job::plain(&words("seal")).run_into(Some(&said))?;
    ensure!(seal.status == 0, "seal: status {}", seal.status);
    let said: serde_json::Value = serde_json::from_slice(&std::fs::read(&said)?)?;
    let sizes = &said["runs"][0];
    let load_sealed = Job::plain(&words("info")).run()?;
    ensure!(
        load_sealed.status == 0,
        "info, sealed: status {}",
        load_sealed.status
    );
    std::fs::remove_dir_all(&directory)?;
    Ok(vec![
        count.to_string(),
        events.to_string(),
        distinct.to_string(),
        format!("{:.2}", load.cpu),
        load.peak.to_string(),
        format!("{:.2}", seal.cpu),
        seal.peak.to_string(),
        format!("{:.2}", load_sealed.cpu),
        load_sealed.peak.to_string(),
        sizes["before"]["files"].to_string(),
        sizes["after"]["file"].to_string(),
    ])
}

/// Writes the run; how many events it has, and how many different traces.
fn write(count: u32, with_arguments: bool, directory: &Path) -> Result<(u64, usize)> {
    let mut builder = Builder::new(directory)?;
    let names = (0..generate::RANK_FUNCTIONS).zip(arguments::NAMES);
    let names = names.map(|(index, name)| match with_arguments {
        true => name.to_owned(),
        false => format!("f{index}"),
    });
    let functions = generated::functions(&mut builder, names)?;
    let mut seen: HashSet<u64> = HashSet::new();
    let mut all = 0;
    for (rank, events) in (0..).zip(generate::rank_events(count)) {
        let process = generated::begin(&mut builder, Some(rank))?;
        let places = with_arguments.then(|| Places::new(rank, count));
        if let Some(places) = &places {
            places.handles(&mut builder, process);
        }
        for event in &events {
            match event {
                Event::Call(index) => {
                    let function = *functions.get(index.0 as usize).context("a function")?;
                    builder.call(function, None)?;
                    if let Some(places) = &places {
                        places.call(&mut builder, index.0, function)?;
                    }
                }
                Event::Return | Event::Tail => builder.ret(None)?,
            }
        }
        builder.end()?;
        let mut hasher = DefaultHasher::new();
        events.hash(&mut hasher);
        seen.insert(hasher.finish());
        all += events.len() as u64;
    }
    builder.finish(&serde_json::json!({}))?;
    Ok((all, seen.len()))
}
