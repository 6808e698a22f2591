//! `cargo xtask bench watch`: what a look at a job costs that polls without pause, and how soon a deadlock in it is
//! told.
//!
//! A job of 4 ranks is recorded, and looked at while it runs: each time what is new is read; and when it has come to
//! the next power of ten, all of it is read, too. The same job is then recorded with `--hang`, and the time from the moment at
//! which two ranks begin to wait for each other to the sentence is taken.

use crate::measure;
use crate::rows::Rows;
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_progress::{Follower, analyse};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Scratch, artifacts, mpi::Mpi};
use lockstep_trace::{Live, Run, Thread};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench watch [OPTION]...

Looks at a job that polls. Takes some minutes.

  --polls LIST   how often two ranks poll before they wait for each other (10000,100000,1000000)
  --rounds LIST  how often they exchange messages instead, as the other ranks do for ever (20000)
  --events N     the job that is looked at is ended after so many events (100000000)
  --seconds N    or after so long (600)
  --label NAME   rows in watch-NAME.csv (own)
  --fresh        forget the rows that are there
";

const HEADS: [&str; 6] = ["what", "times", "events", "look_s", "whole_s", "verdict_s"];

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let valued = ["--polls", "--rounds", "--events", "--seconds", "--label"];
    let given = Words::read(words, &valued, &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("watch-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let mpi = Mpi::ALL.into_iter().find(|mpi| mpi.is_here());
    let mpi = mpi.context("expected an MPI library, found none")?;
    let program = mpi.recipe("polling.c").flags(&["-g", "-O1"]).build();
    let scratch = Scratch::below(&artifacts::target(), "bench");
    let job = |kind: &str, times: &str| {
        let mut words = mpi.launch(4);
        words.extend([&*program.display().to_string(), kind, times].map(str::to_owned));
        words
    };
    for (kind, standard) in [("polls", "10000,100000,1000000"), ("rounds", "20000")] {
        for times in given.list(&format!("--{kind}"), standard) {
            if !rows.has(&[kind, &times]) {
                let run = scratch.join(format!("{kind}-{times}"));
                let (events, verdict) = verdict(&run, &job(kind, &times))?;
                rows.add(&row(kind, &times, events, None, Some(verdict)))?;
            }
        }
    }
    if !rows.has(&["look"]) {
        let most = given.number("--events", 100_000_000)?;
        let limit = Duration::from_secs(given.number("--seconds", 600)?);
        for (events, times) in looks(
            &scratch.join("looks"),
            &job("polls", "1000000000"),
            most,
            limit,
        )? {
            rows.add(&row("look", "", events, Some(times), None))?;
        }
    }
    let mut report = format!("{}\n\n", measure::machine());
    let _ = writeln!(
        report,
        "{:<10}{:>12}{:>14}{:>14}{:>14}{:>20}",
        "what", "times", "events", "a look, s", "all, s", "to the verdict, s"
    );
    for row in rows.all() {
        let cells = HEADS.map(|head| row.text(head));
        let [what, times, events, look, whole, verdict] = cells;
        let _ = writeln!(
            report,
            "{what:<10}{times:>12}{events:>14}{look:>14}{whole:>14}{verdict:>20}"
        );
    }
    print!("{report}");
    std::fs::write(directory.join(format!("watch-{label}.txt")), report)?;
    Ok(())
}

fn row(
    what: &str,
    times: &str,
    events: u64,
    looks: Option<(Duration, Duration)>,
    verdict: Option<f64>,
) -> Vec<String> {
    let seconds = |it: Duration| format!("{:.3}", it.as_secs_f64());
    let (look, whole) = looks.map(|it| (seconds(it.0), seconds(it.1))).unzip();
    vec![
        what.to_owned(),
        times.to_owned(),
        events.to_string(),
        look.unwrap_or_default(),
        whole.unwrap_or_default(),
        verdict.map_or(String::new(), |it| format!("{it:.2}")),
    ]
}

/// Ends a job as a user would.
fn end(child: &mut Child) -> Result<()> {
    Command::new("kill").arg(child.id().to_string()).status()?;
    child.wait()?;
    Ok(())
}

/// Events of a job, and the seconds from its hang to the verdict.
fn verdict(run: &Path, job: &[String]) -> Result<(u64, f64)> {
    // Who polls for what never comes is said to hang, too, if one waits no longer than that.
    let options = ["--hang", "3600", "--on-hang", "stop"];
    let mut child = record_command(run, &options, job)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stderr.take().context("a pipe")?).lines();
    let (mut hung, mut told) = (None, None);
    for line in lines {
        let line = line?;
        if let Some((_, since)) = line.split_once("waits since ") {
            hung = since.trim().parse::<f64>().ok();
        }
        if line.contains(": deadlock: ") && told.is_none() {
            told = Some(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64());
        }
    }
    child.wait()?;
    let (hung, told) = hung.zip(told).context("expected a verdict, found none")?;
    let events = Run::open(run)?.traces().map(|it| it.events).sum();
    Ok((events, told - hung))
}

/// At each power of ten: how many events a job has, what a look took, and what reading all of it did.
fn looks(
    run: &Path,
    job: &[String],
    most: u64,
    limit: Duration,
) -> Result<Vec<(u64, (Duration, Duration))>> {
    let mut child = record_command(run, &[], job)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let begin = Instant::now();
    let (mut live, mut follower) = (Live::default(), Follower::default());
    let (mut next, mut found) = (1_000_000, Vec::new());
    while begin.elapsed() < limit && next <= most {
        std::thread::sleep(Duration::from_millis(200));
        let before = Instant::now();
        let Ok(opened) = live.open(run) else { continue };
        let _ = follower.analyse(&opened);
        let look = before.elapsed();
        let events: u64 = opened.traces().map(|it: &Thread| it.events).sum();
        if events >= next {
            let before = Instant::now();
            let _ = analyse(&Run::open(run)?);
            found.push((events, (look, before.elapsed())));
            next *= 10;
        }
    }
    end(&mut child)?;
    ensure!(!found.is_empty(), "expected 1,000,000 events, found fewer");
    Ok(found)
}
