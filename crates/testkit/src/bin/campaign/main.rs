//! `cargo xtask campaign kill [COUNT] [--seed N]`: the kill campaign, and `cargo xtask campaign go`: the zoo of bugs
//! in Go, each with a table of all its rows in `target/campaign`. A campaign that was broken off goes on where it stopped.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod beside;
mod gate;
mod go;
mod healthy;
mod kills;
mod progress;
mod reports;
mod starts;

use anyhow::{Context, Result, bail, ensure};
use lockstep_testkit::kill::Trial;
use lockstep_testkit::{Scratch, artifacts, mpi::Mpi};
use std::io::Write;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: cargo xtask campaign kill [--suite] [COUNT] [--seed N]
       cargo xtask campaign starts [COUNT] [--seed N]
       cargo xtask campaign go [--seed N] [--runs N] [--twins N | --standard N | --healthy | --beside [--campaigns N]] [KERNEL]...
       cargo xtask campaign progress [--seed N] [--loops N] [--others N] [--ranks N | --command TEXT [--images NAME]...]
       cargo xtask campaign gate [--checks N] [--normals N]
       cargo xtask campaign reports [--mpi NAME] [PROGRAM]...

kill: SIGKILL at random moments
  COUNT      how many kills (1500; of the suite 1000)
  --suite    programs of the compression suite instead of one that tells how far it is: what is traced must be the
             beginning of what a whole run is, and all that could be read before the kill
starts: jobs of 2 to 4 ranks on a busy machine, each of whose ranks must have begun to record
  COUNT      how many jobs (5000)
go: the zoo of concurrency bugs in Go, each kernel until its bug is found
  --runs N   at most so many runs of the bug (30)
  --twins N  so many runs of the repaired twin (10)
  --standard N  instead: N runs of the tests of some standard packages, for false verdicts
  --healthy  instead: what one undisturbed run that passes (of --runs) foretells, of bugs and of twins
  --beside   instead: the bugs under other detectors, too, and in which run each is found; they come through the
             Go module proxy
  --campaigns N  with --beside: so many campaigns, of seeds one after the other (1)
  KERNEL     only kernels whose names contain this
progress: faults at random calls of MPI programs, and who is named by our analysis and the published methods
  --loops N  so many endless loops a program (10)
  --others N so many faults of each other kind a program (3)
  --ranks N  how many ranks (8)
  --command TEXT  instead: faults at calls of this command, 'mpirun -n 16 ./bt.W.x' say
  --images NAME  with --command: at calls of this library, too, as of the program's own code ('liblammps')
gate: changes of programs that `baseline check` must find, and rebuilds that it must let pass
  --checks N   so many runs of each rebuild of each program (10)
  --normals N  so many runs in the baseline (1)
reports: programs after public reports of hangs and crashes: how many answers have the right rank, kind and line
  --mpi NAME   openmpi or mpich (the first that is here)
  PROGRAM      only programs whose names contain this

  --seed N   which campaign: the same number gives the same trials (1)

Rows are kept in target/campaign/; a campaign that was broken off goes on there.
";

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--help" || word == "-h") {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let (mut count, mut seed, mut is_suite) = (None, 1, false);
    let mut rest = words.iter();
    let what = rest.next().map(String::as_str);
    if what == Some("go") {
        return go::run(rest.as_slice());
    }
    if what == Some("gate") {
        return gate::run(rest.as_slice());
    }
    if what == Some("progress") {
        return progress::run(rest.as_slice());
    }
    if what == Some("reports") {
        return reports::run(rest.as_slice());
    }
    if what == Some("starts") {
        return starts::run(rest.as_slice());
    }
    ensure!(
        what == Some("kill"),
        "expected: campaign kill, starts, go, progress, gate or reports; `--help` says more"
    );
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--seed" => seed = rest.next().context("--seed needs a number")?.parse()?,
            "--suite" => is_suite = true,
            number => match number.parse() {
                Ok(number) => count = Some(number),
                Err(_) => bail!("expected a number of kills, found `{number}`"),
            },
        }
    }
    match is_suite {
        true => kills::run(count.unwrap_or(1000), seed),
        false => kill(count.unwrap_or(1500), seed),
    }
}

fn kill(count: u64, seed: u64) -> Result<ExitCode> {
    let directory = artifacts::target().join("campaign");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join(format!("kill-{seed}.csv"));
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let done = before
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').next()?.parse::<u64>().ok())
        .max()
        .map_or(0, |last| last + 1);
    let mut table = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    if before.is_empty() {
        writeln!(table, "{}", Trial::HEADS)?;
    }
    let launchers = launchers();
    let scratch = Scratch::below(&directory, "kill");
    let mut faults = before
        .lines()
        .skip(1)
        .filter(|line| !line.ends_with(','))
        .count();
    let mut rows = before.lines().count().saturating_sub(1);
    for number in done..count {
        let trial = Trial::draw(seed, number, &launchers);
        for row in trial.run(&scratch) {
            writeln!(table, "{}", trial.csv(&row))?;
            rows += 1;
            if let Some(fault) = &row.fault {
                faults += 1;
                println!(
                    "{trial}, process {}: {fault}; told {:?}, traced {:?}",
                    row.process, row.told, row.traced
                );
            }
        }
        if (number + 1) % 100 == 0 {
            println!(
                "{} of {count} kills, {rows} traces, {faults} faults",
                number + 1
            );
        }
    }
    println!(
        "{count} kills, {rows} traces, {faults} faults; every row in {}",
        path.display()
    );
    Ok(if faults == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The launchers of the MPI libraries that are here.
fn launchers() -> Vec<Vec<String>> {
    let all = Mpi::ALL.into_iter();
    all.filter(|mpi| mpi.is_here())
        .map(|mpi| vec![mpi.launcher()])
        .collect()
}
