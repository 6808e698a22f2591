//! A job that is looked at while it runs: what is found by reading what is new is what is found by reading all.

use lockstep_format::stat::Stat;
use lockstep_progress::{Follower, Progress, analyse};
use lockstep_testkit::command::Running;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Scratch, command};
use lockstep_trace::{EndKind, Live, Run};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The processes of a run on this host.
fn processes(run: &Path) -> Vec<Pid> {
    let names = fs::read_dir(run.join("processes")).into_iter().flatten();
    let names = names.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let pid = |name: String| {
        let mut parts = name.rsplit('-');
        parts.nth(2)?.parse().ok().and_then(Pid::from_raw)
    };
    names.filter_map(pid).collect()
}

fn is_stopped(pid: Pid) -> bool {
    let line = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = Stat::parse(&line.unwrap_or_default());
    stat.is_none_or(|it| !matches!(it.state, b'R' | b'S' | b'D'))
}

/// Copies a run while its processes stand still.
fn copy(run: &Path, to: &Path) {
    let all = processes(run);
    let signal = |signal| {
        for pid in &all {
            let _ = kill_process(*pid, signal);
        }
    };
    signal(Signal::STOP);
    let begin = Instant::now();
    while !all.iter().all(|it| is_stopped(*it)) && begin.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let words = ["cp", "-r", "--sparse=always"].map(PathBuf::from);
    let words = words.into_iter().chain([run.to_owned(), to.to_owned()]);
    let words: Vec<PathBuf> = words.collect();
    let mut copied = command::run(&mut command::command(&words));
    // The recorder goes on: what it has just written may get its name between the list of names and the copy.
    for _ in 0..5 {
        if !copied.stderr.contains("No such file") {
            break;
        }
        fs::remove_dir_all(to).expect("a directory of ours");
        copied = command::run(&mut command::command(&words));
    }
    signal(Signal::CONT);
    assert_eq!(copied.status, 0, "{copied:#?}");
}

/// Copies of a job's run, made while it runs or hangs, for some seconds at most.
fn copies(scratch: &Scratch, words: &[String]) -> Vec<PathBuf> {
    let run = scratch.join("run");
    let mut running = Running::start(&mut record_command(&run, &[], words));
    let begin = Instant::now();
    let mut found = Vec::new();
    let is_enough =
        |found: &[PathBuf]| begin.elapsed() > Duration::from_secs(6) || found.len() == 40;
    while !running.is_over() && !is_enough(&found) {
        std::thread::sleep(Duration::from_millis(30));
        if run.join("lockstep.json").exists() {
            let to = scratch.join(format!("copy-{}", found.len()));
            copy(&run, &to);
            found.push(to);
        }
    }
    let _ = running.stop();
    found.push(run);
    found
}

fn text(found: &Progress) -> String {
    format!("{found:#?}")
}

/// Of all looks the most operations that were kept, and the most calls that were known again.
fn check(source: &str, flags: &[&str], arguments: &[&str]) -> Option<(usize, u64)> {
    let mpi = Mpi::ALL.into_iter().find(|mpi| mpi.is_here())?;
    let _turn = a_turn();
    let scratch = Scratch::new("live");
    let program = mpi.recipe(source).flags(flags).build();
    let mut words = mpi.launch(4);
    words.push(program.display().to_string());
    words.extend(arguments.iter().map(|it| (*it).to_owned()));
    let copies = copies(&scratch, &words);
    let expected: Vec<Option<String>> = copies
        .iter()
        .map(|it| {
            let run = Live::default().open(it).ok()?;
            Some(text(&Follower::in_detail().analyse(&run)))
        })
        .collect();
    let mut most = (0, 0);
    for step in [1, 3, 7] {
        let (mut live, mut follower) = (Live::default(), Follower::default());
        for (copy, expected) in copies.iter().zip(&expected).step_by(step) {
            let found = live
                .open(copy)
                .ok()
                .map(|run| text(&follower.analyse(&run)));
            assert_eq!(&found, expected, "{source}, {}", copy.display());
            most = (
                most.0.max(follower.kept()),
                most.1.max(follower.known_again()),
            );
        }
    }
    let run = Live::default().open(copies.last().expect("a run"));
    let at_once = run.ok().map(|run| text(&Follower::default().analyse(&run)));
    assert_eq!(Some(&at_once), expected.last(), "{source}, at once");
    let run = Run::open(copies.last().expect("a run")).expect("a run");
    assert_eq!(
        Some(text(&analyse(&run))),
        expected.last().cloned().flatten()
    );
    Some(most)
}

#[test]
fn a_job_that_hangs() {
    check("standstill.c", &["-g", "-O1"], &["heads"]);
}

#[test]
fn a_job_that_polls() {
    check("bugs.c", &["-g", "-O1", "-fopenmp"], &["iprobe_loop"]);
}

#[test]
fn threads_that_wait_for_each_other() {
    check("bugs.c", &["-g", "-O1", "-fopenmp"], &["join_receiver"]);
}

#[test]
fn a_job_that_talks_all_the_time() {
    for (way, calls) in [("rounds", 1), ("halo", 3)] {
        let most = check("polling.c", &["-g", "-O1"], &[way, "3000", "9000"]);
        // Ranks 0 and 1 exchange 3000 messages, and the others more.
        let is_known = |(kept, again)| kept < 500 && again > 2 * 2900 * calls;
        assert!(most.is_none_or(is_known), "{way}: {most:?}");
    }
}

#[test]
fn a_job_that_goes_on() {
    check("hydro.c", &["-g", "-O1"], &[]);
    check("workers.c", &["-g", "-O1"], &["3000"]);
}

/// A deadlock that buffers prevented is no hang: whoever watches a job has no use for the replay that finds it.
#[test]
fn what_might_have_come_otherwise_is_asked_when_the_job_is_over() {
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return;
    };
    let _turn = a_turn();
    let scratch = Scratch::new("live-over");
    let program = mpi.recipe("lapses.c").flags(&["-g", "-O1"]).build();
    let mut words = mpi.launch(4);
    words.extend([program.display().to_string(), "heads".into(), "2".into()]);
    let run = scratch.join("run");
    let mut running = Running::start(&mut record_command(&run, &[], &words));
    let (mut live, mut follower) = (Live::default(), Follower::default());
    let mut is_there = false;
    while !running.is_over() {
        std::thread::sleep(Duration::from_millis(100));
        let Ok(opened) = live.open(&run) else {
            continue;
        };
        let mut ranks = opened.processes.iter();
        if ranks.all(|it| it.end.kind == EndKind::Running) {
            assert_eq!(follower.analyse(&opened).potential, None);
            is_there |= analyse(&opened).potential.is_some();
        }
    }
    assert!(is_there, "nobody looked while the ranks slept");
    let opened = live.open(&run).expect("a run");
    let found = Follower::default().analyse(&opened);
    assert_eq!(text(&found), text(&analyse(&opened)));
    assert!(found.potential.is_some());
}
