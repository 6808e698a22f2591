//! `cargo xtask bench watch`: what a look at a job costs that polls without pause, and how soon a deadlock in it is
//! told.
//!
//! A job of 4 ranks is recorded, and looked at while it runs: each time what is new is read; and when it has come to
//! the next power of ten, all of it is read, too. The same job is then recorded with `--hang`, and the time from the moment at
//! which two ranks begin to wait for each other to the sentence is taken, and the memory and the processor time of the
//! recorder, which watches. Jobs that are slow and go on are recorded, too: whatever is said of them is wrong.

use crate::measure;
use crate::rows::Rows;
use crate::words::Words;
use anyhow::{Context, Result, ensure};
use lockstep_format::stat::Stat;
use lockstep_progress::{Follower, analyse};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Scratch, artifacts, mpi::Mpi};
use lockstep_trace::{Live, Run, Thread};
use rustix::param::{clock_ticks_per_second, page_size};
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
  --rounds LIST  how often they exchange messages instead, as the other ranks do for ever (20000,200000)
  --halo LIST    the same, with requests (20000)
  --memory LIST  kinds of such jobs whose watcher's memory is taken at each power of ten of events (polls,rounds,halo)
  --healthy LIST jobs that are slow and go on, beside our own: programs of MPI by their paths ()
  --runs N       how often each of these is recorded; 0 for none of them (1)
  --hang S       and how long the watcher waits: their ranks take half of it in a place (2)
  --events N     the jobs that are looked at are ended after so many events (100000000); 0 for none of them
  --seconds N    or after so long (600)
  --label NAME   rows in watch-NAME.csv (own)
  --fresh        forget the rows that are there
";

const HEADS: [&str; 9] = [
    "what",
    "times",
    "events",
    "look_s",
    "whole_s",
    "verdict_s",
    "watcher_s",
    "watcher_mb",
    "said",
];

/// What was found of a job.
#[derive(Debug, Default)]
struct Found {
    events: u64,
    /// A look, and reading all of it.
    looks: Option<(Duration, Duration)>,
    verdict: Option<f64>,
    watcher: Option<Watcher>,
    /// Sentences.
    said: Option<usize>,
}

/// What a recorder took so far, its children not counted: processor time in seconds, and resident memory in bytes.
#[derive(Debug, Clone, Copy)]
struct Watcher {
    seconds: f64,
    memory: u64,
}

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let valued = [
        "--polls",
        "--rounds",
        "--halo",
        "--memory",
        "--healthy",
        "--runs",
        "--hang",
        "--events",
        "--seconds",
        "--label",
    ];
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
    let kinds = [
        ("polls", "10000,100000,1000000"),
        ("rounds", "20000,200000"),
        ("halo", "20000"),
    ];
    for (kind, standard) in kinds {
        for times in given.list(&format!("--{kind}"), standard) {
            if !rows.has(&[kind, &times]) {
                let run = scratch.join(format!("{kind}-{times}"));
                rows.add(&row(kind, &times, &verdict(&run, &job(kind, &times))?))?;
            }
        }
    }
    let most = given.number("--events", 100_000_000)?;
    let limit = Duration::from_secs(given.number("--seconds", 600)?);
    for kind in given.list("--memory", "polls,rounds,halo") {
        let what = format!("memory {kind}");
        if !rows.has(&[&what]) {
            let run = scratch.join(format!("memory-{kind}"));
            for found in memory(&run, &job(&kind, "1000000000"), most, limit)? {
                rows.add(&row(&what, "", &found))?;
            }
        }
    }
    let patience: f64 = given.number("--hang", 2.0)?;
    let runs: u32 = given.number("--runs", 1)?;
    let healthy = healthy(mpi, patience / 2.0, &given.list("--healthy", ""));
    for (what, job) in healthy.iter().filter(|_| runs > 0) {
        for run in 0..runs {
            let number = run.to_string();
            if !rows.has(&[what, &number]) {
                let run = scratch.join(format!("healthy-{number}"));
                rows.add(&row(what, &number, &said_of(&run, job, patience)?))?;
                std::fs::remove_dir_all(&run)?;
            }
        }
    }
    if most > 0 && !rows.has(&["look"]) {
        for found in looks(
            &scratch.join("looks"),
            &job("polls", "1000000000"),
            most,
            limit,
        )? {
            rows.add(&row("look", "", &found))?;
        }
    }
    let mut report = format!("{}\n\n", measure::machine());
    let titles = [
        "what",
        "times",
        "events",
        "a look, s",
        "all, s",
        "to the verdict, s",
        "watcher, s",
        "watcher, MB",
        "said",
    ];
    let all = rows.all().map(|row| HEADS.map(|head| row.text(head)));
    for [what, rest @ ..] in std::iter::once(titles).chain(all) {
        let _ = write!(report, "{what:<24}");
        for cell in rest {
            let _ = write!(report, "{cell:>18}");
        }
        report.push('\n');
    }
    print!("{report}");
    std::fs::write(directory.join(format!("watch-{label}.txt")), report)?;
    Ok(())
}

fn row(what: &str, times: &str, found: &Found) -> Vec<String> {
    let seconds = |it: Duration| format!("{:.3}", it.as_secs_f64());
    let (look, whole) = found.looks.map(|it| (seconds(it.0), seconds(it.1))).unzip();
    let (taken, memory) = found
        .watcher
        .map(|it| {
            let memory = format!("{:.1}", it.memory as f64 / 1e6);
            (format!("{:.2}", it.seconds), memory)
        })
        .unzip();
    vec![
        what.to_owned(),
        times.to_owned(),
        found.events.to_string(),
        look.unwrap_or_default(),
        whole.unwrap_or_default(),
        found.verdict.map_or(String::new(), |it| format!("{it:.2}")),
        taken.unwrap_or_default(),
        memory.unwrap_or_default(),
        found.said.map_or(String::new(), |it| it.to_string()),
    ]
}

/// What a process that runs has taken.
fn watcher(id: u32) -> Result<Watcher> {
    let stat = Stat::parse(&std::fs::read(format!("/proc/{id}/stat"))?);
    let ticks = stat.context("expected fields in stat, found fewer")?.ticks;
    let memory = std::fs::read_to_string(format!("/proc/{id}/statm"))?;
    let pages = memory.split(' ').nth(1).and_then(|it| it.parse().ok());
    let pages: u64 = pages.context("expected the resident size in statm")?;
    Ok(Watcher {
        seconds: ticks as f64 / clock_ticks_per_second() as f64,
        memory: pages * page_size() as u64,
    })
}

/// Jobs that are slow and go on, whose ranks take that long in a place: our own, and other programs.
fn healthy(mpi: Mpi, seconds: f64, others: &[String]) -> Vec<(String, Vec<String>)> {
    let build = |source: &str| mpi.recipe(source).flags(&["-g", "-O1"]).build();
    let job = |words: &[String]| [mpi.launch(4).as_slice(), words].concat();
    let patient = build("patient.c").display().to_string();
    let ours = ["sleep", "compute", "talk"].into_iter().map(|how| {
        let words = [&*patient, how, &seconds.to_string(), "12"].map(str::to_owned);
        (format!("patient {how}"), job(&words))
    });
    let whole = ["hydro.c", "multigrid.c", "sweep.c"].into_iter().map(|it| {
        let program = build(it).display().to_string();
        (it.to_owned(), job(&[program]))
    });
    let others = others.iter().map(|it| {
        let name = Path::new(it).file_name().map(|it| it.to_string_lossy());
        let name = name.map_or_else(|| it.clone(), |it| it.into_owned());
        (name, job(std::slice::from_ref(it)))
    });
    ours.chain(whole).chain(others).collect()
}

/// What is said of a job that ends.
fn said_of(run: &Path, job: &[String], patience: f64) -> Result<Found> {
    let patience = patience.to_string();
    let mut child = record_command(run, &["--hang", &patience], job)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stderr.take().context("a pipe")?).lines();
    let mut said = 0;
    for line in lines {
        let line = line?;
        // What nobody takes for a verdict is none.
        let is_said = line.starts_with("lockstep: after ") && !line.contains("no hang is seen");
        if is_said {
            println!("{line}");
        }
        said += usize::from(is_said);
    }
    let status = child.wait()?;
    ensure!(status.success(), "expected a job that ends, found {status}");
    Ok(Found {
        events: Run::open(run)?.traces().map(|it| it.events).sum(),
        said: Some(said),
        ..Found::default()
    })
}

/// At each power of ten of events: what watching a job has taken.
fn memory(run: &Path, job: &[String], most: u64, limit: Duration) -> Result<Vec<Found>> {
    let options = ["--hang", "3600"];
    let mut child = record_command(run, &options, job)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let (begin, mut live) = (Instant::now(), Live::default());
    let (mut next, mut found) = (1_000_000, Vec::new());
    while begin.elapsed() < limit && next <= most {
        std::thread::sleep(Duration::from_millis(500));
        let Ok(opened) = live.open(run) else { continue };
        let events: u64 = opened.traces().map(|it: &Thread| it.events).sum();
        if events >= next {
            found.push(Found {
                events,
                watcher: Some(watcher(child.id())?),
                ..Found::default()
            });
            next *= 10;
        }
    }
    end(&mut child)?;
    ensure!(!found.is_empty(), "expected 1,000,000 events, found fewer");
    Ok(found)
}

/// Ends a job as a user would.
fn end(child: &mut Child) -> Result<()> {
    Command::new("kill").arg(child.id().to_string()).status()?;
    child.wait()?;
    Ok(())
}

/// The seconds from a job's hang to the verdict, and what watching it took until then.
fn verdict(run: &Path, job: &[String]) -> Result<Found> {
    // Who polls for what never comes is said to hang, too, if one waits no longer than that.
    let options = ["--hang", "3600", "--on-hang", "stop"];
    let mut child = record_command(run, &options, job)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(child.stderr.take().context("a pipe")?).lines();
    let (mut hung, mut told, mut taken) = (None, None, None);
    for line in lines {
        let line = line?;
        if let Some((_, since)) = line.split_once("waits since ") {
            hung = since.trim().parse::<f64>().ok();
        }
        if line.contains(": deadlock: ") && told.is_none() {
            told = Some(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64());
            taken = watcher(child.id()).ok();
        }
    }
    child.wait()?;
    let (hung, told) = hung.zip(told).context("expected a verdict, found none")?;
    let events = Run::open(run)?.traces().map(|it| it.events).sum();
    Ok(Found {
        events,
        verdict: Some(told - hung),
        watcher: taken,
        ..Found::default()
    })
}

/// At each power of ten: how many events a job has, what a look took, and what reading all of it did.
fn looks(run: &Path, job: &[String], most: u64, limit: Duration) -> Result<Vec<Found>> {
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
            found.push(Found {
                events,
                looks: Some((look, before.elapsed())),
                ..Found::default()
            });
            next *= 10;
        }
    }
    end(&mut child)?;
    ensure!(!found.is_empty(), "expected 1,000,000 events, found fewer");
    Ok(found)
}
