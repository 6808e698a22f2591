//! A run with hostile names: whatever a command prints of it, nothing that is hidden reaches a terminal or a page.

use lockstep_testkit::{Scratch, command, lockstep};
use lockstep_trace::is_hidden;
use serde_json::json;
use std::fs;
use std::path::Path;

const NAME: &str = "a\u{202e}b\u{2028}c\u{200b}d\u{1b}[2Je\nf\u{61c}\u{2066}g\u{feff}\r\u{e0041}";

/// A trace of two processes, as Chrome has them, in which every name is hostile.
fn trace(path: &Path, calls: u32) {
    let mut events = Vec::new();
    for index in 0..calls {
        for process in [1, 2] {
            let steps = [("B", ""), ("B", "inner"), ("E", "inner"), ("E", "")];
            for (at, (phase, suffix)) in (index * 10..).zip(steps) {
                let name = format!("{NAME}{}{suffix}", index % 3);
                events.push(json!({"name": name, "ph": phase, "ts": at, "pid": process, "tid": 1}));
            }
        }
    }
    fs::write(path, json!({"traceEvents": events}).to_string()).expect("scratch");
}

fn assert_shown(text: &str, words: &[&str]) {
    let hidden: Vec<char> = text
        .chars()
        .filter(|c| is_hidden(*c) && *c != '\n')
        .collect();
    assert!(hidden.is_empty(), "{words:?}: {hidden:?}");
}

#[test]
fn nothing_hidden_is_printed() {
    let scratch = Scratch::new("hostile-names");
    let directory = scratch.path();
    let run = "r\u{202e}n";
    for (file, to, calls) in [("a.json", run, 12), ("b.json", "other", 11)] {
        trace(&scratch.join(file), calls);
        let mut import = lockstep(&["import", "--from", "chrome", file, "-o", to]);
        assert_eq!(command::run(import.current_dir(directory)).status, 0);
    }
    let questions: [&[&str]; 21] = [
        &["info", "--refused", run],
        &["events", "-t", "0.0", run],
        &["tree", "-t", "0.0", run],
        &["calls", run],
        &["calls", "--graph", run],
        &["stack", run],
        &["loops", run],
        &["lattice", run],
        &["lattice", "--dot", run],
        &["lattice", "--svg", "lattice.html", run],
        &["similarity", run],
        &["similarity", "--csv", run],
        &["outliers", run],
        &["progress", "--html", "progress.html", run],
        &["compare", "--html", "compare.html", run, "other"],
        &["diff", run, "other", "-t", "0.0"],
        &["report", run, "other", "-o", "report.html"],
        &["runs", "."],
        &["runs", "prune", "--older", "0s", "--dry-run", "."],
        &["info", "no\u{202e}thing"],
        &["seal", run],
    ];
    for words in questions {
        let outcome = command::run(lockstep(words).current_dir(directory));
        assert!([0, 1, 2].contains(&outcome.status), "{outcome:#?}");
        assert_shown(&outcome.stdout, words);
        assert_shown(&outcome.stderr, words);
    }
    for page in [
        "lattice.html",
        "progress.html",
        "compare.html",
        "report.html",
    ] {
        let text = fs::read_to_string(scratch.join(page)).expect("a page");
        assert_shown(&text, &[page]);
    }
    // JSON has names as they are.
    let calls = command::run(lockstep(&["calls", "--json", run]).current_dir(directory));
    let calls: serde_json::Value = serde_json::from_str(&calls.stdout).expect("JSON");
    let functions = calls["functions"].as_array().expect("functions");
    assert!(
        functions.iter().any(|it| it["name"] == format!("{NAME}0")),
        "{calls:#}"
    );
}
