//! `cargo xtask bench loops`: by how much recognising loops shortens traces of hydrodynamics codes, and what a call costs.
//!
//! Two mini-apps and the programs of the compression suite are recorded, and each trace is folded as the papers do it: calls
//! without returns, all functions. Folded is the sequence of calls, by the published procedure and by ours; and, of the
//! mini-apps, as `compare` does it: the call tree, in which equal behaviour has been folded before.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::suite;
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_calltree::{Forest, FunctionKey, Token, fold_tokens};
use lockstep_loops::{Bodies, Element, Mode, reference};
use lockstep_testkit::mpi::Mpi;
use lockstep_trace::{Event, Run, TraceName};
use std::path::Path;
use std::time::Duration;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench loops [OPTION]...

Records two hydrodynamics codes and programs/suite, and folds the loops of each trace: calls for each element of the result, and
nanoseconds a call, of the published procedure (100,000 calls), of ours (all, of the suite a million), and, of the two codes, of
ours over the call tree. Needs Open MPI. Takes some minutes.

  --steps N   of each program (20000)
  --ranks N   (4)
  --fresh     forget the rows that are there
";

const HEADS: [&str; 10] = [
    "program",
    "trace",
    "k",
    "calls",
    "elements",
    "reduction",
    "reference_nanoseconds",
    "nanoseconds",
    "tree_nanoseconds",
    "nodes",
];

/// A source, how it is built, and the option that says how many steps there are.
type Program = (&'static str, &'static [&'static str], Option<&'static str>);

const PROGRAMS: [Program; 2] = [
    ("hydro.c", &["-g", "-O1"], None),
    ("blast.cpp", &["-g", "-O2"], Some("--steps")),
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--steps", "--ranks"], &["--fresh"])?;
    ensure!(Mpi::OpenMpi.is_here(), "Open MPI is not installed");
    let path = measure::results_directory()?.join("loops.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let steps: u64 = given.number("--steps", 20_000)?;
    println!("{}", HEADS.join("\t"));
    for (source, flags, option) in PROGRAMS {
        if rows.has(&[source]) {
            continue;
        }
        let directory = empty("loops")?;
        let program = Mpi::OpenMpi.recipe(source).flags(flags).build();
        let mut words = Mpi::OpenMpi.launch(given.number("--ranks", 4)?);
        words.push(program.display().to_string());
        words.extend(option.map(str::to_owned));
        words.push(steps.to_string());
        let ran = Job::recorded(&words, &[], &directory).run()?;
        ensure!(ran.status == 0, "{source}: status {}", ran.status);
        for row in fold(source, &Run::open(&directory)?)? {
            println!("{}", row.join("\t"));
            rows.add(&row)?;
        }
        std::fs::remove_dir_all(directory)?;
    }
    for program in suite::sources("main", Path::new(""))? {
        if rows.has(&[&program.name]) {
            continue;
        }
        let source = program.record()?;
        let calls = source.events.iter().filter_map(|event| match event {
            Event::Call(function) => Some(Token::Call(FunctionKey(function.0))),
            _ => None,
        });
        let tokens: Vec<Token> = calls.take(1_000_000).collect();
        let name = TraceName::new(0, 0);
        for k in [10, 50] {
            let (row, _) = flat((&program.name, name), &tokens, k, &mut Bodies::new());
            let row = [row.as_slice(), &[String::new(), String::new()]].concat();
            println!("{}", row.join("\t"));
            rows.add(&row)?;
        }
    }
    for k in ["10", "50"] {
        let of_k = rows.all().filter(|row| row.text("k") == k);
        let all: Vec<f64> = of_k.map(|row| row.number("reduction")).collect();
        let (least, most) = measure::span(&all);
        let median = measure::median(&all);
        println!("K = {k}: {median:.0} calls an element ({least:.0}-{most:.0})");
    }
    Ok(())
}

fn fold(source: &str, run: &Run) -> Result<Vec<Vec<String>>> {
    let mut forest = Forest::new();
    let traces = forest.add_run(run);
    let projection = forest.projection(|_| true);
    let mut rows = Vec::new();
    for name in [
        TraceName::new(0, 0),
        TraceName::new(1, 0),
        TraceName::new(1, 1),
    ] {
        // Not every program has a second thread.
        let Some(trace) = traces.iter().find(|trace| trace.name == name) else {
            continue;
        };
        let mut tokens = Vec::new();
        forest.tokens(trace.root, &projection, false, &mut |it| tokens.push(it));
        for k in [10, 50] {
            let mut bodies = Bodies::new();
            let (mut row, elements) = flat((source, name), &tokens, k, &mut bodies);
            let (tree, same) = least(3, || {
                forest.flat(trace.root, &projection, false, k, Mode::Shape, &mut bodies)
            });
            ensure!(elements == same, "{source}: the tree folds otherwise");
            row.extend([each(tree, tokens.len()), forest.len().to_string()]);
            rows.push(row);
        }
    }
    rows.first()
        .with_context(|| format!("{source}: no trace"))?;
    Ok(rows)
}

/// The flat sequence: all of a row but what is of the tree, and the elements that it becomes.
fn flat(
    (source, trace): (&str, TraceName),
    tokens: &[Token],
    k: usize,
    bodies: &mut Bodies,
) -> (Vec<String>, Vec<Element>) {
    let (ours, elements) = least(3, || {
        fold_tokens(tokens.iter().copied(), k, Mode::Shape, bodies)
    });
    // The published procedure tries all lengths at each call.
    let some = &tokens[..tokens.len().min(100_000)];
    let symbols = || some.iter().map(|token| token.symbol());
    let (slow, _) = least(1, || reference::fold(symbols(), k, Mode::Shape, bodies));
    let row = vec![
        source.to_owned(),
        trace.to_string(),
        k.to_string(),
        tokens.len().to_string(),
        elements.len().to_string(),
        format!("{:.1}", tokens.len() as f64 / elements.len().max(1) as f64),
        each(slow, some.len()),
        each(ours, tokens.len()),
    ];
    (row, elements)
}

fn each(time: Duration, of: usize) -> String {
    format!("{:.2}", time.as_nanos() as f64 / of.max(1) as f64)
}

/// How often something is done for one time: the kernel tells times in steps of some milliseconds.
const AT_ONCE: u32 = 5;

/// The least time that this thread is on a processor for something, and what it gives.
fn least<T>(times: usize, mut what: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let start = on_processor();
        let mut made = what();
        for _ in 1..AT_ONCE {
            made = what();
        }
        let time = on_processor().saturating_sub(start);
        (time / AT_ONCE, made)
    };
    let (mut best, mut made) = timed();
    for _ in 1..times {
        let (time, again) = timed();
        best = best.min(time);
        made = again;
    }
    (best, made)
}

fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}
