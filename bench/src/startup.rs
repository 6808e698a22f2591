//! `cargo xtask bench startup`: what recording adds to a program that does next to nothing.
//!
//! *Costs* counted: all that `lockstep record` does itself, too: starting, reading the program, the run
//! directory, and planning where no plan is kept yet (cold); on the clock, and in processor time. What
//! a rank costs is told apart: what each of two further ones adds.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, compiled_with, empty, volume};
use crate::words::Words;
use anyhow::Result;
use lockstep_testkit::{artifacts, tools};
use std::fmt::Write;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench startup [OPTION]...

Milliseconds that recording adds to a start: main and all images, plans made (cold) and kept (cached). Takes about three minutes.

  --names LIST   of true,bash,python3,mpi,mpi-3 (all that are here)
  --rounds N     pairs with cached plans (20); a quarter of them cold
  --label NAME   rows in startup-NAME.csv (own)
  --fresh        forget the rows that are there
";

/// Columns of the rows of pairs.
pub const HEADS: [&str; 11] = [
    "program",
    "images",
    "plans",
    "round",
    "plain_wall",
    "plain_cpu",
    "wall",
    "cpu",
    "status",
    "processes",
    "events",
];

/// A program that is measured.
pub struct Subject {
    pub name: &'static str,
    pub words: Vec<String>,
}

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--names", "--rounds", "--label"], &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("startup-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let rounds: usize = given.number("--rounds", 20)?;
    let names = given.list("--names", "true,bash,python3,mpi,mpi-3");
    let subjects: Vec<Subject> = subjects()?
        .into_iter()
        .filter(|subject| names.iter().any(|name| name == subject.name))
        .collect();
    let kinds = [
        ("main", "cached"),
        ("main", "cold"),
        ("all", "cached"),
        ("all", "cold"),
    ];
    let mut report = format!("{}\n\n", measure::machine());
    let _ = writeln!(
        report,
        "{:<10}{:<7}{:<8}{:>10}{:>22}{:>12}{:>22}{:>11}",
        "program",
        "images",
        "plans",
        "plain ms",
        "added ms",
        "plain cpu",
        "added cpu ms",
        "processes"
    );
    for subject in &subjects {
        for (images, plans) in kinds {
            let count = if plans == "cold" {
                rounds.div_ceil(4)
            } else {
                rounds
            };
            for round in 0..count {
                measure_one(&mut rows, subject, images, plans, round)?;
            }
            let key = [subject.name, images, plans];
            let of = |head: &str| -> Vec<f64> {
                rows.find(&key).map(|row| 1e3 * row.number(head)).collect()
            };
            let added = |with: &str, plain: &str| {
                let added: Vec<f64> = of(with)
                    .iter()
                    .zip(of(plain))
                    .map(|(with, plain)| with - plain)
                    .collect();
                let (least, most) = measure::span(&added);
                format!("{:.1} ({least:.1}-{most:.1})", measure::median(&added))
            };
            let failed = rows
                .find(&key)
                .filter(|row| row.text("status") != "0")
                .count();
            let _ = writeln!(
                report,
                "{:<10}{images:<7}{plans:<8}{:>10.1}{:>22}{:>12.1}{:>22}{:>11.0}{}",
                subject.name,
                measure::median(&of("plain_wall")),
                added("wall", "plain_wall"),
                measure::median(&of("plain_cpu")),
                added("cpu", "plain_cpu"),
                measure::median(&of("processes")) / 1e3,
                if failed == 0 {
                    String::new()
                } else {
                    format!("  {failed} runs failed")
                }
            );
        }
    }
    report.push_str("\nprocessor ms that recording adds to a further rank\n");
    for (images, plans) in kinds {
        let added = |name: &str| {
            let added: Vec<f64> = rows
                .find(&[name, images, plans])
                .map(|row| 1e3 * (row.number("cpu") - row.number("plain_cpu")))
                .collect();
            measure::median(&added)
        };
        let rank = (added("mpi-3") - added("mpi")) / 2.0;
        if rank.is_finite() {
            let _ = writeln!(report, "{images:<7}{plans:<8}{rank:>10.1}");
        }
    }
    print!("{report}");
    std::fs::write(directory.join(format!("startup-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

fn subjects() -> Result<Vec<Subject>> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let mut subjects = vec![
        Subject {
            name: "true",
            words: words(&["/bin/true"]),
        },
        Subject {
            name: "bash",
            words: words(&["/bin/bash", "-c", ":"]),
        },
    ];
    if tools::find("python3").is_some() {
        // The system's, not a script in front of another.
        let python = if std::path::Path::new("/usr/bin/python3").exists() {
            "/usr/bin/python3"
        } else {
            "python3"
        };
        subjects.push(Subject {
            name: "python3",
            words: words(&[python, "-c", "pass"]),
        });
    }
    if tools::find("mpicc").is_some() && tools::find("mpirun").is_some() {
        let source = artifacts::repository().join("bench/c/empty_mpi.c");
        let program = compiled_with("mpicc", &source, &[])?;
        for (name, ranks) in [("mpi", "1"), ("mpi-3", "3")] {
            let mut all: Vec<String> = words(&["mpirun", "-n", ranks]);
            all.push(program.display().to_string());
            subjects.push(Subject { name, words: all });
        }
    }
    Ok(subjects)
}

/// A pair: untraced, and recorded.
pub fn measure_one(
    rows: &mut Rows,
    subject: &Subject,
    images: &str,
    plans: &str,
    round: usize,
) -> Result<()> {
    let number = round.to_string();
    let key = [subject.name, images, plans, &number];
    if rows.has(&key) {
        return Ok(());
    }
    let cache = if plans == "cold" {
        empty("cold-cache")?
    } else {
        artifacts::target().join("bench/cache")
    };
    let recorded = || -> Result<_> {
        let directory = empty("startup")?;
        let job = Job::recorded(&subject.words, &["--images", images], &directory)
            .with("XDG_CACHE_HOME", &cache.display().to_string())
            .seconds(120);
        let ran = job.run()?;
        let volume = volume(&directory).unwrap_or_default();
        std::fs::remove_dir_all(&directory)?;
        Ok((ran, volume))
    };
    if plans == "cached" && round == 0 {
        recorded()?;
    }
    let plain = Job::plain(&subject.words).seconds(120).run()?;
    let (ran, volume) = recorded()?;
    let mut cells: Vec<String> = key.iter().map(|&cell| cell.to_owned()).collect();
    cells.extend([
        format!("{:.6}", plain.wall),
        format!("{:.6}", plain.cpu),
        format!("{:.6}", ran.wall),
        format!("{:.6}", ran.cpu),
        ran.status.to_string(),
        volume.processes.to_string(),
        volume.events.to_string(),
    ]);
    rows.add(&cells)
}
