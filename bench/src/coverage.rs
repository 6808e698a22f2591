//! `cargo xtask bench coverage`: how many of the calls that happen are recorded, counted by callgrind on the same
//! program, function by function.
//!
//! Callgrind says which address was called how often; the run's plans say which function begins there, under
//! which name, or why it is not recorded. So stripped images count as others do, and a function of many names
//! counts once. Calls into the dynamic linker, which is never recorded, are told apart. A program that waits by
//! polling (MPI) polls as often as its time allows, much more often under callgrind: therefore also the share
//! of the calls, as callgrind counts them, that are calls of functions which the run recorded. Addresses that
//! belong to no file, as callgrind has it, are linkage stubs and no functions. A function that jumps
//! back to its first byte is "called" by callgrind every time round, which is a loop and not a call: such
//! functions are excepted by name (`--except`), and told.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty, json};
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_binary::{Image, display_name};
use lockstep_format::check::extend;
use lockstep_format::plan::Plan;
use lockstep_testkit::tools;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench coverage [OPTION]... PROGRAM...

Calls that are recorded, in percent of those that callgrind counts, by function. Each PROGRAM is a path, with
arguments if it has spaces. Takes some fifteen times the programs' own time.

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
const WITHOUT_LINKER: &str = "(all but the dynamic linker)";
const IN_RECORDED: &str = "(in functions that were recorded)";

/// Calls by image and function.
type Counts = BTreeMap<(String, String), u64>;

/// Calls by object and address, with callgrind's name.
type Called = BTreeMap<(String, u64), (String, u64)>;

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
        for (total, what) in [
            (TOTAL, ""),
            (WITHOUT_LINKER, "  without the linker"),
            (IN_RECORDED, "  in functions that were recorded"),
        ] {
            for row in rows.find(&[&name, images, total]) {
                let (all, ours) = (row.number("callgrind"), row.number("recorded"));
                let _ = writeln!(
                    report,
                    "{name:<14}{images:<7}{all:>16}{ours:>16}{:>10.4}%{what}",
                    100.0 * ours / all
                );
            }
        }
        let key = [name.as_str(), images];
        let mut missing: Vec<_> = rows
            .find(&key)
            .filter(|row| !row.text("image").starts_with('('))
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
    let prefix = "exec valgrind --quiet --tool=callgrind --callgrind-out-file=$OUT/%p.callgrind \
                  --dump-instr=yes --compress-pos=no";
    let ran = Job::inside(launcher, prefix, words, &directory)
        .seconds(3600)
        .run()?;
    ensure!(
        ran.status == 0,
        "under callgrind it ends with {}",
        ran.status
    );
    let mut called = Called::new();
    for entry in std::fs::read_dir(&directory)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "callgrind")
        {
            callgrind(&std::fs::read_to_string(&path)?, &mut called);
        }
    }
    let run = directory.join("run");
    let all: Vec<String> = launcher.iter().chain(words).cloned().collect();
    let ran = Job::recorded(&all, &["--images", images], &run)
        .seconds(1200)
        .run()?;
    ensure!(ran.status == 0, "recorded it ends with {}", ran.status);
    let ours = recorded(&run)?;
    let theirs = named(&called, &run)?;
    std::fs::remove_dir_all(&directory)?;
    let own = image_name(words.first().map_or("", String::as_str));
    let mut sums = [(0, 0); 3];
    for ((image, function), calls) in &theirs {
        let is_counted =
            image != "???" && (images == "all" || *image == own) && !excepted.contains(function);
        if !is_counted {
            continue;
        }
        let count = |image: &str| {
            let key = (image.to_owned(), function.clone());
            ours.get(&key).copied().unwrap_or(0)
        };
        // What its own image cannot record stays with the main program, which calls it.
        let recorded = count(image) + if *image == own { 0 } else { count("library") };
        let is_linker = image.starts_with("ld-linux");
        let is_recorded = u64::from(recorded > 0);
        for (index, (sum, found)) in sums.iter_mut().enumerate() {
            if index == 0 || !is_linker {
                *sum += calls;
                *found += match index {
                    2 => calls * is_recorded,
                    _ => recorded.min(*calls),
                };
            }
        }
        if recorded < *calls {
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
    let totals = [TOTAL, WITHOUT_LINKER, IN_RECORDED];
    for (total, (sum, found)) in totals.iter().zip(sums) {
        let cells = [
            name,
            images,
            total,
            "",
            &sum.to_string(),
            &found.to_string(),
        ];
        rows.add(&cells.map(str::to_owned))?;
    }
    Ok(())
}

/// Names what was called as the run's plans do: the function that begins at the address, or callgrind's name
/// and why it is not recorded.
fn named(called: &Called, run: &Path) -> Result<Counts> {
    let mut plans: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for entry in std::fs::read_dir(run.join("plans"))? {
        let bytes = std::fs::read(entry?.path())?;
        if let Ok(plan) = Plan::kept(&bytes, extend)
            && (plan.functions().next().is_some() || plan.refusals().next().is_some())
        {
            plans.insert(plan.build_id().to_vec(), bytes);
        }
    }
    let mut counts = Counts::new();
    let mut objects: BTreeMap<&str, BTreeMap<u64, String>> = BTreeMap::new();
    for ((object, address), (name, calls)) in called {
        let image = image_name(object);
        let names = objects.entry(object).or_insert_with(|| {
            let id = std::fs::read(object).ok().and_then(|bytes| {
                let image = Image::parse(&bytes).ok()?;
                Some(image.build_id().to_vec())
            });
            let plan = id.and_then(|id| plans.get(&id));
            plan.map(|bytes| names(bytes, &image)).unwrap_or_default()
        });
        let name = names
            .get(address)
            .cloned()
            .unwrap_or_else(|| format!("{} (in no plan: {address:#x})", plain(name)));
        *counts.entry((image, name)).or_default() += calls;
    }
    Ok(counts)
}

/// What begins at each address, by a plan.
fn names(plan: &[u8], image: &str) -> BTreeMap<u64, String> {
    let mut names = BTreeMap::new();
    let Ok(plan) = Plan::kept(plan, extend) else {
        return names;
    };
    let text = |name: &[u8]| match String::from_utf8_lossy(name) {
        name if name.starts_with('+') => format!("{image}{name}"),
        name => plain(&display_name(&name)),
    };
    for row in plan.refusals() {
        let reason = String::from_utf8_lossy(row.reason).replace(',', ";");
        names.insert(row.address, format!("{} ({reason})", text(row.name)));
    }
    for row in plan.functions().filter(|row| row.length > 0) {
        names.insert(row.address, text(row.name));
    }
    names
}

/// Calls by image and function, of `lockstep calls`.
fn recorded(run: &Path) -> Result<Counts> {
    let mut counts = Counts::new();
    let calls = json(&["calls"], run)?;
    for function in calls["functions"].as_array().into_iter().flatten() {
        let image = image_name(function["image"].as_str().unwrap_or_default());
        let name = plain(function["name"].as_str().unwrap_or_default());
        *counts.entry((image, name)).or_default() += function["calls"].as_u64().unwrap_or(0);
    }
    Ok(counts)
}

/// Adds the calls that a callgrind profile counts, by object and address of the callee. Names stand in full once
/// and then as a number; `cob` holds until the next `fn`, and for one call.
fn callgrind(text: &str, counts: &mut Called) {
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
            let mut words = value.split_whitespace();
            let calls = words.next().and_then(|number| number.parse::<u64>().ok());
            let address = words
                .next()
                .and_then(|address| u64::from_str_radix(address.strip_prefix("0x")?, 16).ok());
            let image = callee_object.take().unwrap_or_else(|| object.clone());
            let count = counts
                .entry((image, address.unwrap_or(0)))
                .or_insert_with(|| (callee.clone(), 0));
            count.1 += calls.unwrap_or(0);
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

/// As runs name images: the file's name without its version.
fn image_name(path: &str) -> String {
    let name = file_name(path);
    match name.find(".so") {
        Some(at) => name[..at + 3].to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::{Called, callgrind, image_name};

    #[test]
    fn calls_are_counted_by_callee() {
        let mut counts = Called::new();
        callgrind(
            "ob=(1) /bin/a\nfl=(1) a.c\nfn=(1) main\n0x10 1 2\ncfn=(2) f\ncalls=3 0x20 4\n0x12 1 9\n\
             cob=(2) /lib/libc.so.6\ncfn=(3) puts\ncalls=2 0x30 0\n0x14 1 1\nfn=(2)\n0x20 5 5\ncfn=(2)\n\
             calls=4 0x20 1\n",
            &mut counts,
        );
        let get = |image: &str, address: u64| {
            let found = counts.get(&(image.to_owned(), address));
            found.map(|(name, calls)| (name.as_str(), *calls))
        };
        assert_eq!(get("/bin/a", 0x20), Some(("f", 7)));
        assert_eq!(get("/lib/libc.so.6", 0x30), Some(("puts", 2)));
        assert_eq!(image_name("/lib/libc.so.6"), "libc.so");
        assert_eq!(image_name("/bin/python3.11"), "python3.11");
    }
}
