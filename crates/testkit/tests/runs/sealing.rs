//! Sealing that is killed at any of its system calls, or meets a full disk: the run says what it said before.

use lockstep_testkit::inject;
use lockstep_testkit::{Recipe, Recording, Scratch, copy, lockstep, record, tools};
use std::fs;

const KILL: &str = "signal=KILL";
const FULL: &str = "error=ENOSPC";

fn events(run: &Recording) -> Vec<String> {
    let traces = run.traces();
    let events = traces.iter();
    let mut all: Vec<String> = events
        .map(|trace| run.text(&["events", "-t", trace, "--arguments"]))
        .collect();
    all.push(run.text(&["calls", "--graph", "--all-processes"]));
    all
}

/// Seals copies of `run`, each with another disturbance.
fn seal_disturbed(scratch: &Scratch, run: &Recording, options: &[&str], calls: &[(&str, &str)]) {
    let expected = events(run);
    let directory = scratch.join("copy");
    let store = scratch.join("store");
    for (system_call, what) in calls {
        let mut met = 0;
        for number in 1.. {
            copy(&run.directory, &directory);
            let mut seal = lockstep(&["seal"]);
            seal.arg(&directory).args(options);
            let (outcome, is_met) = inject::system_call(scratch, &seal, system_call, what, number);
            met += u32::from(is_met);
            let copied = Recording {
                directory: directory.clone(),
                outcome,
            };
            let place = format!("{system_call} {what} {number}: {copied:#?}");
            assert_eq!(events(&copied), expected, "{place}");
            let sealed = directory.join("sealed.lockstep");
            if !is_met {
                assert_eq!(copied.outcome.status, 0, "{place}");
            }
            // Again, without a disturbance; nothing of the first attempt is in the way.
            if !sealed.exists() {
                let again = lockstep(&["seal"]).arg(&directory).args(options).output();
                let again = again.expect("lockstep runs");
                assert!(again.status.success(), "{place}: {again:?}");
                assert_eq!(events(&copied), expected, "{place}");
            }
            assert!(sealed.exists(), "{place}");
            fs::remove_dir_all(&directory).expect("it can be removed");
            let _ = fs::remove_dir_all(&store);
            if !is_met {
                break;
            }
        }
        assert!(met > 0, "{system_call}: never called");
    }
}

#[test]
fn a_run_survives_a_seal_that_ends_in_the_middle() {
    if !tools::require(&["gcc", "strace"]) {
        return;
    }
    let scratch = Scratch::new("sealing");
    let program = Recipe::new("c/fork.c").flag("-O0").build();
    let run = record(&scratch, &[], &[&program]);
    seal_disturbed(
        &scratch,
        &run,
        &[],
        &[
            ("write", KILL),
            ("write", FULL),
            ("fsync", KILL),
            ("fsync", FULL),
            ("rename", KILL),
            ("rename", FULL),
            ("unlinkat", KILL),
            ("unlinkat", "error=EIO"),
            ("openat", KILL),
        ],
    );
    let store = scratch.join("store").display().to_string();
    let calls = [("write", KILL), ("fsync", FULL), ("rename", KILL)];
    seal_disturbed(&scratch, &run, &["--store", &store], &calls);
}

#[test]
fn threads_that_are_kept_as_recorded_survive_it_too() {
    if !tools::require(&["gcc", "strace"]) {
        return;
    }
    let scratch = Scratch::new("sealing-kept");
    let program = Recipe::new("c/leaf_calls.c").flag("-O0").build();
    let run = record(
        &scratch,
        &["--max-size", "1M", "--keep", "last"],
        &[&program],
    );
    let calls = [("fsync", KILL), ("rename", KILL), ("unlinkat", KILL)];
    seal_disturbed(&scratch, &run, &[], &calls);
}
