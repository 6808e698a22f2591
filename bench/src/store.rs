//! `cargo xtask bench store`: how small a sealed run is, and how fast it is read.
//!
//! Sources are generated (`lockstep_testkit::generate`), so that the entropy of the random ones is known;
//! and recorded: the programs of `programs/suite`, and others by path. Sizes are exact; times are of
//! this machine, at this moment.

use crate::capture;
use crate::measure;
use crate::rows::Rows;
use crate::statistics::geometric_mean;
use crate::suite;
use crate::words::Words;
use anyhow::{Context, Result, anyhow};
use lockstep_calltree::{Forest, trees};
use lockstep_format::codec::Kind;
use lockstep_testkit::generate::{self, Source};
use lockstep_testkit::tools;
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench store [OPTION]...

Bytes of sealed trees beside the seed codec, the capture codec, zstd -19 and xz -9 of the raw ids, and the entropy of random
sources; events per second read back; and runs of 16 to 65,536 ranks. Takes some minutes.

  --events N       of each generated source (2000000)
  --programs DIR   every *.x there, too (NAS benchmarks, say), by mpirun -n 4: rank 0
  --images HOW     main or all (main)
  --ranks LIST     16,256,4096,65536
  --fresh          forget the rows that are there
";

const HEADS: [&str; 13] = [
    "source",
    "events",
    "bound",
    "seed",
    "capture",
    "zstd19",
    "xz9",
    "sealed",
    "seal_seconds",
    "plain_meps",
    "walk_meps",
    "tree_milliseconds",
    "calls_meps",
];

const RANK_HEADS: [&str; 6] = [
    "ranks",
    "events",
    "distinct",
    "nodes",
    "sealed",
    "seal_seconds",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--events", "--ranks", "--programs", "--images"],
        &["--fresh"],
    )?;
    let directory = measure::results_directory()?;
    let size: usize = given.text("--events", "2000000").parse()?;
    let path = directory.join("store.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    println!("{}", HEADS.join("\t"));
    let images = given.text("--images", "main");
    let recorded = suite::sources(images, given.text("--programs", "").as_ref())?;
    let generated = generate::sources(size)
        .into_iter()
        .map(|source| (source.name.clone(), Subject::Generated(source)));
    let recorded = recorded
        .into_iter()
        .map(|it| (it.name.clone(), Subject::Recorded(it)));
    for (name, subject) in generated.chain(recorded) {
        if rows.has(&[&name]) {
            continue;
        }
        let row = match subject {
            Subject::Generated(source) => one(source)?,
            Subject::Recorded(program) => one(program.record()?)?,
        };
        println!("{}", row.join("\t"));
        rows.add(&row)?;
    }
    for (of, is_meant) in [
        ("programs of the suite", true),
        ("generated sources", false),
    ] {
        let chosen = |head| {
            let rows = rows.all();
            let rows = rows.filter(|row| row.text("source").starts_with("suite/") == is_meant);
            let ratios = rows.map(|row| row.number("seed") / row.number(head));
            ratios.collect::<Vec<_>>()
        };
        let (capture, sealed) = (chosen("capture"), chosen("sealed"));
        if !capture.is_empty() {
            println!(
                "{of}: beside seed, capture is {:.1} times smaller and sealed {:.1} (geometric means)",
                geometric_mean(&capture),
                geometric_mean(&sealed),
            );
        }
    }
    let path = directory.join("store-ranks.csv");
    let mut rows = Rows::open(&path, &RANK_HEADS, given.has("--fresh"))?;
    println!("{}", RANK_HEADS.join("\t"));
    for count in given.list("--ranks", "16,256,4096,65536") {
        if rows.has(&[&count]) {
            continue;
        }
        let row = ranks(count.parse()?)?;
        println!("{}", row.join("\t"));
        rows.add(&row)?;
    }
    Ok(())
}

enum Subject {
    Generated(Source),
    Recorded(suite::Program),
}

/// Bytes that a tool makes of `input`; `-` where it is not there.
fn packed(tool: &str, level: &str, input: &[u8]) -> Result<String> {
    if tools::find(tool).is_none() {
        return Ok("-".to_owned());
    }
    let mut child = Command::new(tool)
        .args([level, "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = child.stdin.take().context("a pipe")?;
    let input = input.to_vec();
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    Ok(output.stdout.len().to_string())
}

fn one(source: Source) -> Result<Vec<String>> {
    let symbols = capture::symbols(&source.events);
    let events = source.events.len();
    let seed = capture::encoded(Kind::Seed, &symbols);
    let bytes = capture::encoded(Kind::Lockstep, &symbols);
    let raw: Vec<u8> = symbols
        .iter()
        .flat_map(|symbol| (*symbol as u16).to_le_bytes())
        .collect();

    let begin = Instant::now();
    let decoded = capture::decoded(Kind::Lockstep, &bytes);
    anyhow::ensure!(
        decoded == events,
        "{}: expected {events}, found {decoded}",
        source.name
    );
    let plain = begin.elapsed().as_secs_f64();

    let mut run = generate::run(vec![source.events]);
    // As a process file has it: what a tree would make larger stays as it was recorded.
    let threads = run.processes.iter_mut().flat_map(|it| &mut it.threads);
    threads.for_each(|thread| thread.bytes = bytes.len() as u64);
    let begin = Instant::now();
    let told = trees(&[&run], None)?;
    let sealing = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let back = told.read_back(&run, 0).map_err(|text| anyhow!(text))?;
    let tree = back[0][0].as_ref();
    let (reading, sealed) = match tree {
        Some(_) => (begin.elapsed().as_secs_f64(), told.nodes.len()),
        None => (plain, told.nodes.len() + bytes.len()),
    };
    let thread = tree.unwrap_or(&run.processes[0].threads[0]);
    let begin = Instant::now();
    anyhow::ensure!(
        thread.events().count() == events,
        "{}: other events",
        source.name
    );
    let walk = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let mut forest = Forest::new();
    let functions = forest.add_functions(&run);
    let trace = forest.add_trace(&functions, thread);
    let calls: u64 = forest.calls(&[trace.root]).iter().map(|it| it.calls).sum();
    anyhow::ensure!(2 * calls as usize == events, "{}: other calls", source.name);
    let counting = begin.elapsed().as_secs_f64();
    let rate = |seconds: f64| format!("{:.1}", events as f64 / seconds / 1e6);
    Ok(vec![
        source.name,
        events.to_string(),
        source
            .bits
            .map_or("-".to_owned(), |bits| format!("{:.0}", bits / 8.0)),
        seed.len().to_string(),
        bytes.len().to_string(),
        packed("zstd", "-19", &raw)?,
        packed("xz", "-9", &raw)?,
        sealed.to_string(),
        format!("{sealing:.2}"),
        rate(plain),
        rate(walk),
        format!("{:.2}", reading * 1e3),
        rate(reading + counting),
    ])
}

fn ranks(count: u32) -> Result<Vec<String>> {
    let run = generate::ranks(count);
    let events: u64 = run
        .processes
        .iter()
        .flat_map(|it| &it.threads)
        .map(|it| it.events)
        .sum();
    let begin = Instant::now();
    let told = trees(&[&run], None)?;
    let seconds = begin.elapsed().as_secs_f64();
    let distinct: BTreeSet<u32> = told
        .roots
        .iter()
        .flatten()
        .flatten()
        .flatten()
        .map(|it| it.root)
        .collect();
    Ok(vec![
        count.to_string(),
        events.to_string(),
        distinct.len().to_string(),
        told.header.nodes.to_string(),
        told.nodes.len().to_string(),
        format!("{seconds:.2}"),
    ])
}
