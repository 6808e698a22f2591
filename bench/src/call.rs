//! `cargo xtask bench call`: nanoseconds that recording adds to a call, entry and return, encoded.
//!
//! Each program of `bench/c` makes N calls of one kind; what it takes with none is subtracted, so that
//! neither start-up nor planning counts. A round runs it plain and under every bar, one beside the other.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, compiled, compiled_with, empty};
use crate::words::Words;
use anyhow::{Context, Result};
use lockstep_testkit::{artifacts, tools};
use std::fmt::Write;
use std::path::PathBuf;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench call [OPTION]...

Nanoseconds a call (entry and return) over the plain call. Takes about five minutes.

  --names LIST   of hot,leaves,tree,random,deep,cold,library,unwound
  --bars LIST    of none,lockstep,no-time,times-all,low,seed,uftrace
                 (none,lockstep,times-all,uftrace where it is there)
  --rounds N     (5)
  --scale F      times as many calls (1)
  --label NAME   rows in call-NAME.csv (own)
  --fresh        forget the rows that are there
";

const HEADS: [&str; 8] = [
    "program", "bar", "round", "times", "calls", "cpu", "nothing", "status",
];

/// A kind of call: its program, how often it repeats, what it shows.
struct Kind {
    name: &'static str,
    times: f64,
    calls: f64,
    what: &'static str,
}

const FUNCTIONS: usize = 4000;

const KINDS: [Kind; 8] = [
    Kind {
        name: "hot",
        times: 1.5e8,
        calls: 1.0,
        what: "one function, no leaf",
    },
    Kind {
        name: "leaves",
        times: 2e7,
        calls: 10.0,
        what: "nine of ten are leaves",
    },
    Kind {
        name: "tree",
        times: 1e7,
        calls: 15.0,
        what: "mixed tree, half leaves",
    },
    Kind {
        name: "random",
        times: 2e7,
        calls: 1.0,
        what: "64 functions at random",
    },
    Kind {
        name: "deep",
        times: 5e3,
        calls: 10_000.0,
        what: "10,000 deep",
    },
    Kind {
        name: "cold",
        times: 5e3,
        calls: FUNCTIONS as f64,
        what: "4,000 functions in turn",
    },
    Kind {
        name: "library",
        times: 1e8,
        calls: 1.0,
        what: "library function",
    },
    Kind {
        name: "unwound",
        times: 1e7,
        calls: 5.0,
        what: "below one that unwound",
    },
];

/// Bars: name, and options of `lockstep record`; none for other tools.
const BARS: [(&str, Option<&[&str]>); 7] = [
    ("none", Some(&["--codec", "none"])),
    ("lockstep", Some(&[])),
    ("no-time", Some(&["--no-time"])),
    ("times-all", Some(&["--times", "all"])),
    ("low", Some(&["--memory", "low"])),
    ("seed", Some(&["--codec", "seed"])),
    ("uftrace", None),
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--names", "--bars", "--rounds", "--scale", "--label"],
        &["--fresh"],
    )?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("call-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let rounds: usize = given.number("--rounds", 5)?;
    let scale: f64 = given.number("--scale", 1.0)?;
    let names = given.list(
        "--names",
        "hot,leaves,tree,random,deep,cold,library,unwound",
    );
    let mut bars = given.list("--bars", "none,lockstep,times-all,uftrace");
    let mut report = format!("{}\n\n", measure::machine());
    if tools::find("uftrace").is_none() {
        bars.retain(|bar| bar != "uftrace");
        report.push_str("uftrace left out: not installed\n");
    }
    let kinds: Vec<&Kind> = KINDS
        .iter()
        .filter(|kind| names.iter().any(|name| name == kind.name))
        .collect();
    for round in 0..rounds {
        for kind in &kinds {
            for bar in std::iter::once("plain").chain(bars.iter().map(String::as_str)) {
                measure_one(&mut rows, kind, bar, round, scale)?;
            }
        }
    }
    let _ = writeln!(report, "{:<10}{:<26}{:>9}", "program", "", "plain ns");
    report.truncate(report.trim_end().len());
    for bar in &bars {
        let _ = write!(report, "{:>24}", format!("{bar} +ns"));
    }
    report.push('\n');
    for kind in &kinds {
        let plain = per_call(&rows, kind.name, "plain");
        let _ = write!(
            report,
            "{:<10}{:<26}{:>9.2}",
            kind.name,
            kind.what,
            measure::median(&plain)
        );
        for bar in &bars {
            let added: Vec<f64> = per_call(&rows, kind.name, bar)
                .iter()
                .zip(&plain)
                .map(|(traced, plain)| traced - plain)
                .collect();
            let (least, most) = measure::span(&added);
            let cell = format!("{:.2} ({least:.2}-{most:.2})", measure::median(&added));
            let _ = write!(report, "{cell:>24}");
        }
        report.push('\n');
    }
    print!("{report}");
    std::fs::write(directory.join(format!("call-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

/// Nanoseconds a call, round by round.
fn per_call(rows: &Rows, program: &str, bar: &str) -> Vec<f64> {
    rows.find(&[program, bar])
        .filter(|row| row.text("status") == "0")
        .map(|row| (row.number("cpu") - row.number("nothing")) * 1e9 / row.number("calls"))
        .collect()
}

fn measure_one(rows: &mut Rows, kind: &Kind, bar: &str, round: usize, scale: f64) -> Result<()> {
    let number = round.to_string();
    let key = [kind.name, bar, &number];
    if rows.has(&key) {
        return Ok(());
    }
    // uftrace writes sixteen bytes an event; a tenth of the calls fills the disk less.
    let share = if bar == "uftrace" {
        0.05
    } else {
        scale.min(1e6)
    };
    let times = (kind.times
        * if bar == "uftrace" {
            share * scale
        } else {
            share
        })
    .ceil();
    let program = program(kind)?;
    let cpu = |times: f64| -> Result<(f64, i32)> {
        let words = [program.display().to_string(), format!("{times:.0}")];
        let directory = empty("call")?;
        let known = BARS.iter().find(|(name, _)| *name == bar);
        let job = match known {
            _ if bar == "plain" => Job::plain(&words),
            Some((_, Some(options))) => Job::recorded(&words, options, &directory),
            Some((_, None)) => Job::inside(
                &[],
                "exec uftrace record --no-pager -P . -d $OUT/data",
                &words,
                &directory,
            ),
            None => anyhow::bail!("--bars: no bar `{bar}`"),
        };
        // A shell stands in front of uftrace, too little to see.
        let ran = job.seconds(300).run()?;
        std::fs::remove_dir_all(&directory)?;
        Ok((ran.cpu, ran.status))
    };
    if round == 0 && bar != "plain" {
        cpu(0.0)?;
    }
    let (nothing, _) = cpu(0.0)?;
    let (all, status) = cpu(times)?;
    eprintln!(
        "{} {bar}, round {round}: {all:.2} s, status {status}",
        kind.name
    );
    let mut cells: Vec<String> = key.iter().map(|&cell| cell.to_owned()).collect();
    cells.extend([
        format!("{times:.0}"),
        format!("{:.0}", times * kind.calls),
        format!("{all:.6}"),
        format!("{nothing:.6}"),
        status.to_string(),
    ]);
    rows.add(&cells)
}

fn program(kind: &Kind) -> Result<PathBuf> {
    match kind.name {
        "cold" => cold(),
        // A built-in function would be no call.
        "library" => compiled("library.c", &["-fno-builtin"]),
        name => compiled(&format!("{name}.c"), &[]),
    }
}

/// Thousands of functions that are called in turn, so that neither their code nor what we keep of them
/// stays in the first cache.
fn cold() -> Result<PathBuf> {
    let directory = artifacts::target().join("bench");
    std::fs::create_dir_all(&directory)?;
    let source = directory.join("cold.c");
    let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
    for number in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "static __attribute__((noinline, noclone)) long f{number}(long x) {{ __asm__ volatile(\"\" : \"+r\"(x)); \
             if (__builtin_expect(x == -{number} - 2, 0)) abort(); return (x + {number}) & 0xffffff; }}"
        );
    }
    text.push_str("int main(int argc, char **argv) {\n    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;\n    for (long i = 0; i < count; i++) {\n");
    for number in 0..FUNCTIONS {
        let _ = writeln!(text, "        x = f{number}(x);");
    }
    let _ = write!(
        text,
        "    }}\n    printf(\"%ld\\n\", {FUNCTIONS} * count);\n    return x == -1;\n}}\n"
    );
    if std::fs::read_to_string(&source).ok().as_ref() != Some(&text) {
        std::fs::write(&source, &text).with_context(|| source.display().to_string())?;
    }
    compiled_with("gcc", &source, &[])
}
