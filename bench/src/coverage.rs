//! `cargo xtask bench coverage`: how many of the calls that happen are recorded, counted by callgrind on the same
//! program, function by function.
//!
//! Main image: calls of functions that lie in the program itself, by name, all ranks together. All images: calls
//! of every function. A function that jumps back to its first byte is "called" by callgrind every time round,
//! which is a loop and not a call: such functions are excepted by name (`--except`), and told.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty, json};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_testkit::tools;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench coverage [OPTION]... PROGRAM...

Calls that are recorded, in percent of those that callgrind counts, by function. Each PROGRAM is a path, with
arguments if it has spaces, not stripped. Takes some fifteen times the programs' own time.

  --launcher WORDS   what starts the ranks, e.g. 'mpirun -n 4'
  --images WHICH     main, or all (main)
  --except LIST      functions with a loop to their first byte
  --worst N          functions shown, most missing calls first (5)
  --label NAME       rows in coverage-NAME.csv (own)
  --fresh            forget the rows that are there
";

const HEADS: [&str; 6] = [
    "program",
    "images",
    "image",
    "function",
    "callgrind",
    "recorded",
];
const TOTAL: &str = "(all)";

/// Calls by image and function.
type Counts = BTreeMap<(String, String), u64>;

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--launcher", "--images", "--except", "--worst", "--label"],
        &["--fresh"],
    )?;
    ensure!(
        tools::find("valgrind").is_some(),
        "valgrind is not installed"
    );
    ensure!(!given.rest.is_empty(), "no program given");
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("coverage-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let split =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
    let launcher = split(given.text("--launcher", ""));
    let images = given.text("--images", "main");
    let excepted = given.list("--except", "");
    let worst: usize = given.number("--worst", 5)?;
    let mut report = format!("{}\n\n", measure::machine());
    let _ = writeln!(
        report,
        "{:<14}{:<7}{:>16}{:>16}{:>11}",
        "program", "images", "callgrind", "recorded", "covered"
    );
    for program in &given.rest {
        let words = split(program);
        let name = file_name(words.first().map_or("", String::as_str));
        if !rows.has(&[&name, images, TOTAL]) {
            measure_one(&mut rows, &name, &launcher, &words, images, &excepted)
                .with_context(|| program.clone())?;
        }
        for row in rows.find(&[&name, images, TOTAL]) {
            let (all, ours) = (row.number("callgrind"), row.number("recorded"));
            let _ = writeln!(
                report,
                "{name:<14}{images:<7}{all:>16}{ours:>16}{:>10.4}%",
                100.0 * ours / all
            );
        }
        let key = [name.as_str(), images];
        let mut missing: Vec<_> = rows
            .find(&key)
            .filter(|row| row.text("image") != TOTAL)
            .map(|row| (row.number("callgrind") - row.number("recorded"), row))
            .filter(|(missing, _)| *missing > 0.0)
            .collect();
        missing.sort_by(|one, two| two.0.total_cmp(&one.0));
        for (calls, row) in missing.iter().take(worst) {
            let _ = writeln!(
                report,
                "    {calls} calls of {} ({}) are missing",
                row.text("function"),
                row.text("image")
            );
        }
    }
    for name in excepted {
        let _ = writeln!(report, "excepted, since it loops to its first byte: {name}");
    }
    print!("{report}");
    std::fs::write(directory.join(format!("coverage-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

fn measure_one(
    rows: &mut Rows,
    name: &str,
    launcher: &[String],
    words: &[String],
    images: &str,
    excepted: &[String],
) -> Result<()> {
    let directory = empty("coverage")?;
    let prefix = "exec valgrind --quiet --tool=callgrind --callgrind-out-file=$OUT/%p.callgrind";
    let ran = Job::inside(launcher, prefix, words, &directory)
        .seconds(3600)
        .run()?;
    ensure!(
        ran.status == 0,
        "under callgrind it ends with {}",
        ran.status
    );
    let mut theirs = Counts::new();
    for entry in std::fs::read_dir(&directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "callgrind")
        {
            callgrind(&std::fs::read_to_string(&path)?, &mut theirs);
        }
    }
    let run = directory.join("run");
    let all: Vec<String> = launcher.iter().chain(words).cloned().collect();
    let ran = Job::recorded(&all, &["--images", images], &run)
        .seconds(1200)
        .run()?;
    ensure!(ran.status == 0, "recorded it ends with {}", ran.status);
    let ours = recorded(&run)?;
    std::fs::remove_dir_all(&directory)?;
    let own = file_name(words.first().map_or("", String::as_str));
    let (mut sum, mut found) = (0, 0);
    for ((image, function), calls) in &theirs {
        let is_counted = (images == "all" || *image == own) && !excepted.contains(function);
        if !is_counted {
            continue;
        }
        let recorded = ours
            .get(&(image.clone(), function.clone()))
            .copied()
            .unwrap_or(0);
        sum += calls;
        found += recorded.min(*calls);
        if recorded != *calls {
            rows.add(
                &[
                    name,
                    images,
                    image,
                    function,
                    &calls.to_string(),
                    &recorded.to_string(),
                ]
                .map(str::to_owned),
            )?;
        }
    }
    rows.add(
        &[
            name,
            images,
            TOTAL,
            "",
            &sum.to_string(),
            &found.to_string(),
        ]
        .map(str::to_owned),
    )
}

/// Calls by image and function, of `lockstep calls`.
fn recorded(run: &Path) -> Result<Counts> {
    let mut counts = Counts::new();
    let calls = json(&["calls"], run)?;
    for function in calls["functions"].as_array().into_iter().flatten() {
        let image = file_name(function["image"].as_str().unwrap_or_default());
        let name = plain(function["name"].as_str().unwrap_or_default());
        *counts.entry((image, name)).or_default() += function["calls"].as_u64().unwrap_or(0);
    }
    Ok(counts)
}

/// Adds the calls that a callgrind profile counts, by object and callee. Names stand in full once and
/// then as a number; `cob` holds until the next `fn`, and for one call.
fn callgrind(text: &str, counts: &mut Counts) {
    let mut objects: BTreeMap<String, String> = BTreeMap::new();
    let mut functions: BTreeMap<String, String> = BTreeMap::new();
    let name = |known: &mut BTreeMap<String, String>, text: &str| -> String {
        let Some((number, rest)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        else {
            return text.to_owned();
        };
        if !rest.trim().is_empty() {
            known.insert(number.to_owned(), rest.trim().to_owned());
        }
        known.get(number).cloned().unwrap_or_default()
    };
    let (mut object, mut callee_object, mut callee) = (String::new(), None, String::new());
    for line in text.lines() {
        if let Some(value) = line.strip_prefix("ob=") {
            object = name(&mut objects, value);
        } else if let Some(value) = line.strip_prefix("fn=") {
            name(&mut functions, value);
        } else if let Some(value) = line.strip_prefix("cob=") {
            callee_object = Some(name(&mut objects, value));
        } else if let Some(value) = line.strip_prefix("cfn=") {
            callee = name(&mut functions, value);
        } else if let Some(value) = line.strip_prefix("calls=") {
            let calls = value
                .split_whitespace()
                .next()
                .and_then(|number| number.parse::<u64>().ok());
            let image = callee_object.take().unwrap_or_else(|| object.clone());
            *counts
                .entry((file_name(&image), plain(&callee)))
                .or_default() += calls.unwrap_or(0);
        }
    }
}

/// Without callgrind's mark of recursion, a version, or what the compiler appended.
fn plain(name: &str) -> String {
    let name = name.split('\'').next().unwrap_or(name);
    // Callgrind's name for whoever calls `main`, in the program itself.
    let name = if name == "(below main)" {
        "_start"
    } else {
        name
    };
    name.split('@').next().unwrap_or(name).to_owned()
}

fn file_name(path: &str) -> String {
    Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Counts, callgrind};

    #[test]
    fn calls_are_counted_by_callee() {
        let mut counts = Counts::new();
        callgrind(
            "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) main\n1 2\ncfn=(2) f\ncalls=3 4\n1 9\ncob=(2) /lib/libc.so.6\ncfn=(3) puts\n\
             calls=2 0\n1 1\nfn=(2)\n5 5\ncfn=(2)\ncalls=4 1\n",
            &mut counts,
        );
        let get =
            |image: &str, name: &str| counts.get(&(image.to_owned(), name.to_owned())).copied();
        assert_eq!(get("a", "f"), Some(7));
        assert_eq!(get("libc.so.6", "puts"), Some(2));
    }
}
