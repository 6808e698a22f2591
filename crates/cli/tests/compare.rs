//! `compare` and its neighbours as scripts meet them, on small runs made from traces in Chrome's format.

use lockstep_testkit::command::{self, Outcome};
use lockstep_testkit::{Scratch, lockstep};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// A run of one process, each of whose threads makes these calls within `main`: `a` is a call, `a( b c )` one with calls
/// within it.
fn run(scratch: &Scratch, name: &str, threads: &[&str]) -> PathBuf {
    let mut events = Vec::new();
    for (thread, calls) in threads.iter().enumerate() {
        let mut event = |phase: &str, name: &str| {
            let time = events.len();
            events
                .push(json!({"ph": phase, "name": name, "pid": 1, "tid": 1 + thread, "ts": time}));
        };
        event("B", "main");
        for word in calls.split_whitespace() {
            if word != ")" {
                event("B", word.trim_end_matches('('));
            }
            if !word.ends_with('(') {
                event("E", "");
            }
        }
        event("E", "main");
    }
    let file = scratch.join("trace.json");
    fs::write(&file, Value::from(events).to_string()).expect("a file");
    let run = scratch.join(name);
    let mut import = lockstep(&["import", "--from", "chrome", "-o"]);
    let _ = command::run(import.arg(&run).arg(&file)).success();
    run
}

/// A command over runs, with a cache of its own.
fn ask(scratch: &Scratch, command: &str, runs: &[&Path], options: &[&str]) -> Outcome {
    let mut lockstep = lockstep(&[command]);
    lockstep.env("XDG_CACHE_HOME", scratch.join("cache"));
    command::run(lockstep.args(runs).args(options))
}

/// The answers that are kept, by their names.
fn kept(scratch: &Scratch) -> Vec<PathBuf> {
    let directories = fs::read_dir(scratch.join("cache/lockstep/compare"));
    let mut found: Vec<PathBuf> = directories
        .into_iter()
        .flatten()
        .flat_map(|maker| fs::read_dir(maker.expect("an entry").path()).expect("a directory"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    found.sort();
    found
}

#[test]
fn an_answer_is_kept_for_the_same_runs_and_options_alone() {
    let scratch = Scratch::new("kept");
    let normal = run(&scratch, "normal", &["a b c", "a b c"]);
    let faulty = run(&scratch, "faulty", &["a b c", "a d c"]);
    let compare = |options: &[&str]| ask(&scratch, "compare", &[&normal, &faulty], options);
    let first = compare(&[]);
    assert_eq!(first.status, 1, "{first:#?}");
    let one = kept(&scratch);
    assert_eq!(one.len(), 1);
    assert_eq!(compare(&[]), first);
    let in_json = compare(&["--json"]);
    assert_eq!(kept(&scratch), one);
    assert_eq!(compare(&["--json", "--fresh"]), in_json);
    assert_eq!(kept(&scratch), one);

    // A damaged entry is not asked, and made again.
    let text = fs::read_to_string(&one[0]).expect("an entry");
    fs::write(&one[0], text.replace("calls d where", "CALLS d where")).expect("an entry");
    assert_eq!(compare(&[]), first);
    fs::write(&one[0], &text[..text.len() / 2]).expect("an entry");
    assert_eq!(compare(&[]), first);
    assert_eq!(fs::read_to_string(&one[0]).expect("an entry"), text);

    assert_eq!(compare(&["--filter", "everything"]).status, 1);
    assert_eq!(kept(&scratch).len(), 2);
    // Another run under the same name.
    fs::remove_dir_all(&faulty).expect("a run");
    assert_eq!(run(&scratch, "faulty", &["a b c", "a b c"]), faulty);
    assert_eq!(compare(&[]).status, 0);
    assert_eq!(kept(&scratch).len(), 3);
}
