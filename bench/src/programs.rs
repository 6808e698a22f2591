//! `cargo xtask campaign programs`: real programs must say, write and return the same when they are recorded.
//!
//! Each program of `bench/programs.list` is a shell script that runs in an empty directory: untraced twice, then
//! recorded with the main image and with all. Output, error output, exit status and every file that it leaves
//! are compared, after the rules that the list gives for what is never the same twice (times, process ids).
//! What differs between the two untraced runs all the same is not compared, and told (unsteady).
//!
//! *Guarantees*: nothing that fails is left out: a program that is not installed, fails untraced, or was not
//! recorded at all is a row of its own kind. *Not for* timing: seconds are kept to find what hangs.

mod list;
mod outcome;
mod table;

use crate::measure;
use crate::rows::Rows;
use crate::run::empty;
use crate::words::Words;
use anyhow::{Context, Result, bail, ensure};
use list::Program;
use lockstep_testkit::{artifacts, tools};
use outcome::Outcome;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask campaign programs [OPTION]... [NAME]...

Runs the programs of bench/programs.list (those NAMEd, or all) untraced twice and recorded, and compares what they
say, write and return. Rows are kept in bench/results/DATE-MACHINE/programs.csv; what is there is not run again. Takes
about a minute a program. Ends with 1 where a program behaved otherwise. bench/programs.md is written anew.

  --images LIST   main,all
  --sample N      only the first N of those that are nearly everywhere
  --install       install missing Debian packages first (as root)
  --minutes N     begin no program after so many (180)
  --fresh         forget the rows that are there
  --again         run again what was not the same
  --table         write bench/programs.md from the rows, run nothing
";

const HEADS: [&str; 11] = [
    "program",
    "images",
    "verdict",
    "detail",
    "unsteady",
    "plain_s",
    "recorded_s",
    "processes",
    "events",
    "lost",
    "losses",
];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(
        words,
        &["--images", "--sample", "--minutes"],
        &["--install", "--fresh", "--again", "--table"],
    )?;
    let all = list::read(&artifacts::repository().join("bench/programs.list"))?;
    let mut chosen: Vec<&Program> = all
        .iter()
        .filter(|program| given.rest.is_empty() || given.rest.contains(&program.name))
        .collect();
    for name in &given.rest {
        ensure!(
            all.iter().any(|program| program.name == *name),
            "no program `{name}` in bench/programs.list"
        );
    }
    if given.has("--sample") {
        chosen.retain(|program| program.is_sample);
        chosen.truncate(given.number("--sample", 8)?);
    }
    if given.has("--install") {
        install(&chosen)?;
    }
    let directory = measure::results_directory()?;
    let path = directory.join("programs.csv");
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let deadline = Instant::now() + Duration::from_secs(60 * given.number("--minutes", 180)?);
    let images = given.list("--images", "main,all");
    if !given.has("--table") {
        for (number, program) in chosen.iter().enumerate() {
            if Instant::now() > deadline {
                println!(
                    "The time was over after {number} of {}: the same command goes on.",
                    chosen.len()
                );
                break;
            }
            perform(program, &images, given.has("--again"), &mut rows)
                .with_context(|| program.name.clone())?;
        }
    }
    std::fs::write(
        artifacts::repository().join("bench/programs.md"),
        table::page(&all, &rows),
    )?;
    let (text, is_good) = table::summary(&chosen, &images, &rows);
    println!("{text}rows in {}", path.display());
    if !is_good {
        bail!("some programs did not behave the same, or were not run");
    }
    Ok(())
}

/// Installs the packages of those whose tools are missing, all at once, else one by one.
fn install(programs: &[&Program]) -> Result<()> {
    let mut packages: Vec<&str> = programs
        .iter()
        .filter(|program| !program.missing().is_empty())
        .flat_map(|program| program.packages.split_whitespace())
        .collect();
    packages.sort_unstable();
    packages.dedup();
    let apt = |packages: &[&str]| -> Result<bool> {
        println!("apt-get install {}", packages.join(" "));
        let status = Command::new("apt-get")
            .args(["-q", "-y", "install", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .status()?;
        Ok(status.success())
    };
    if packages.is_empty() || apt(&packages)? {
        return Ok(());
    }
    for package in packages {
        if !apt(&[package])? {
            println!("{package} could not be installed");
        }
    }
    Ok(())
}

/// Runs one program in every way that has no row yet.
fn perform(program: &Program, images: &[String], again: bool, rows: &mut Rows) -> Result<()> {
    let is_open = |images: &&String| {
        let key = [program.name.as_str(), images.as_str()];
        // The newest row counts.
        rows.find(&key)
            .last()
            .is_none_or(|row| again && row.text("verdict") != "same")
    };
    let open: Vec<&String> = images.iter().filter(is_open).collect();
    if open.is_empty() {
        return Ok(());
    }
    let missing = program.missing();
    if !missing.is_empty() {
        for images in open {
            add(
                rows,
                program,
                images,
                "missing",
                &format!("not here: {}", missing.join(" ")),
                None,
            )?;
        }
        return Ok(());
    }
    let plain = execute(program, None)?;
    let twin = execute(program, None)?;
    let unsteady = plain.differences(&twin);
    if plain.status != twin.status || plain.status == Outcome::OVER {
        for images in open {
            let detail = format!("untraced it ends with {} and {}", plain.status, twin.status);
            add(rows, program, images, "unsteady", &detail, None)?;
        }
        return Ok(());
    }
    let kept = artifacts::target().join("bench/kept").join(&program.name);
    plain.keep(&kept.join("plain"))?;
    for images in open {
        let recorded = execute(program, Some(images))?;
        let mut differences = plain.differences(&recorded);
        differences.retain(|(aspect, _)| !unsteady.iter().any(|(unsteady, _)| unsteady == aspect));
        let (verdict, detail) = if recorded.status == Outcome::OVER {
            ("hangs", format!("not over after {} s", program.limit))
        } else if recorded.status != plain.status {
            (
                "status",
                format!("{} instead of {}", recorded.status, plain.status),
            )
        } else if let Some((aspect, what)) = differences.first() {
            ("differs", format!("{aspect}: {what}"))
        } else if recorded.trace.is_none() {
            ("unrecorded", "lockstep info cannot read the run".to_owned())
        } else if let Some(name) = program
            .recorded
            .iter()
            .find(|name| !recorded.recorded(name))
        {
            ("unrecorded", format!("no event of {name}"))
        } else {
            ("same", String::new())
        };
        recorded.keep(&kept.join(images.as_str()))?;
        println!(
            "{:<16}{images:<5}{verdict:<11}{:>6.1} s ({:.1} s untraced)  {detail}",
            program.name, recorded.seconds, plain.seconds
        );
        let unsteady: Vec<&str> = unsteady.iter().map(|(aspect, _)| aspect.as_str()).collect();
        add(
            rows,
            program,
            images,
            verdict,
            &detail,
            Some((&plain, &recorded, &unsteady.join(" "))),
        )?;
    }
    Ok(())
}

fn add(
    rows: &mut Rows,
    program: &Program,
    images: &str,
    verdict: &str,
    detail: &str,
    runs: Option<(&Outcome, &Outcome, &str)>,
) -> Result<()> {
    let mut cells = [&program.name, images, verdict, detail]
        .map(str::to_owned)
        .to_vec();
    match runs {
        None => cells.resize(HEADS.len(), String::new()),
        Some((plain, recorded, unsteady)) => {
            let trace = recorded.trace.clone().unwrap_or_default();
            cells.extend([
                unsteady.to_owned(),
                format!("{:.2}", plain.seconds),
                format!("{:.2}", recorded.seconds),
                trace.processes.to_string(),
                trace.events.to_string(),
                trace.lost.to_string(),
                trace.losses,
            ]);
        }
    }
    rows.add(&cells)
}

/// Runs the program's script in its empty directory, recorded where `images` says of what.
fn execute(program: &Program, images: Option<&str>) -> Result<Outcome> {
    let home = empty(&format!("programs-work/{}", program.name))?;
    let work = home.join("work");
    std::fs::create_dir(&work)?;
    let script = home.join("script.sh");
    std::fs::write(&script, &program.script)?;
    let run = home.join("run");
    let mut words: Vec<String> = ["timeout", "-k", "10", &program.limit.to_string()]
        .map(str::to_owned)
        .to_vec();
    if let Some(images) = images {
        words.push(artifacts::lockstep().display().to_string());
        words.extend(["record", "--verdict", "0", "--images", images, "-o"].map(str::to_owned));
        words.extend([run.display().to_string(), "--".to_owned()]);
    }
    words.extend(["sh".to_owned(), script.display().to_string()]);
    let (stdout, stderr) = (home.join("stdout"), home.join("stderr"));
    let start = Instant::now();
    let mut command = Command::new("nice");
    command
        .args(["-n", "19"])
        .args(&words)
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&stdout)?)
        .stderr(std::fs::File::create(&stderr)?);
    surround(&mut command, &home);
    let status = command.status()?;
    let seconds = start.elapsed().as_secs_f64();
    let mut outcome = Outcome::read(program, status, &stdout, &stderr, &work)?;
    outcome.seconds = seconds;
    if images.is_some() {
        outcome.trace = outcome::Trace::read(&run);
    }
    std::fs::remove_dir_all(&home)?;
    Ok(outcome)
}

/// The same surroundings for every run.
fn surround(command: &mut Command, home: &Path) {
    let path = std::env::var("PATH").unwrap_or_default();
    let go = go_cache();
    let rust = rust_tools();
    command
        .env_clear()
        .env(
            "PATH",
            format!("/usr/sbin:/sbin:/usr/bin:/bin:{rust}{path}"),
        )
        .env("HOME", home)
        .env("REPOSITORY", artifacts::repository())
        .env("LC_ALL", "C.UTF-8")
        .env("TZ", "UTC")
        .env("TERM", "dumb")
        .env("GOCACHE", go)
        .env("XDG_CACHE_HOME", artifacts::target().join("bench/cache"))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
}

/// Where the Rust compiler itself lies, with a colon: rustup's stand-in for it looks for its toolchains in
/// the home directory, which is another here.
fn rust_tools() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let output = Command::new("rustc").args(["--print", "sysroot"]).output();
        match output {
            Ok(output) if output.status.success() => {
                format!("{}/bin:", String::from_utf8_lossy(&output.stdout).trim())
            }
            _ => String::new(),
        }
    })
}

fn go_cache() -> PathBuf {
    artifacts::target().join("bench/go-cache")
}

/// Tools of `needs` that are nowhere.
fn absent(needs: &[String]) -> Vec<&str> {
    needs
        .iter()
        .filter(|tool| {
            let here = if tool.starts_with('/') {
                Path::new(tool).exists()
            } else {
                tools::find(tool).is_some()
            };
            !here && !Path::new("/usr/sbin").join(tool).exists()
        })
        .map(String::as_str)
        .collect()
}
