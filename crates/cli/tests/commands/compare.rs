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

/// The lines behind the first that holds `head`, without their indentation.
fn behind<'a>(text: &'a str, head: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| !line.contains(head));
    lines.skip(1).map(str::trim).collect()
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

#[test]
fn parts_are_compared_and_nothing_else() {
    let scratch = Scratch::new("parts");
    let normal = run(&scratch, "normal", &["a start x y x y stop b", "a c"]);
    let before = run(&scratch, "before", &["d start x y x y stop b", "a c"]);
    let within = run(&scratch, "within", &["d start x y x z stop b", "a c"]);
    let ask = |command: &str, other: &Path, options: &[&str]| {
        let words = ["--from", "start", "--to", "stop"];
        let options: Vec<&str> = words.iter().chain(options).copied().collect();
        ask(&scratch, command, &[&normal, other], &options)
    };
    let outcome = ask("compare", &before, &[]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let left_out = "nothing is looked at of 0.1, which never call start (--from)";
    assert!(outcome.stdout.contains(left_out), "{outcome:#?}");
    assert_eq!(ask("diff", &before, &["-t", "0.0"]).status, 0);

    let outcome = ask("compare", &within, &["--json"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(found["suspects"][0]["trace"], "0.0");
    // main d . start . x . y . x . z: its events are those of the trace.
    let first = &found["suspects"][0]["divergence"];
    assert_eq!(
        (&first["event"], &first["faulty"]),
        (&json!(11), &json!("z"))
    );
    let outcome = ask("diff", &within, &["-t", "0.0", "--json"]);
    let found: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(
        (&found["equal"], &found["first_divergence"]["event"]),
        (&json!(false), &json!(11))
    );

    let loops = command::run(
        lockstep(&["loops", "-t", "0.0", "--from", "start", "--to", "stop"]).arg(&normal),
    );
    assert_eq!(
        behind(&loops.stdout, "WITH LOOPS FOLDED"),
        ["0.0     start L0^2"]
    );
    // What is open where the part ends says nothing; what returns from before it is no part of it.
    let around = run(&scratch, "around", &["f( a start ) g( x stop ) b"]);
    let loops = command::run(
        lockstep(&["loops", "--keep-returns", "--from", "start", "--to", "stop"]).arg(&around),
    );
    assert_eq!(
        behind(&loops.stdout, "WITH LOOPS FOLDED"),
        ["0.0     start return g x L0^2"]
    );

    for option in ["--from", "--to", "--split-at"] {
        let outcome = command::run(lockstep(&["loops", option, "nobody"]).arg(&normal));
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(
            outcome
                .stderr
                .contains(&format!("{option}: expected a name")),
            "{outcome:#?}"
        );
    }
}

#[test]
fn pieces_have_names_and_can_be_chosen_by_them() {
    let scratch = Scratch::new("pieces");
    let normal = run(
        &scratch,
        "normal",
        &["a step x step x y step x", "a step x"],
    );
    let faulty = run(
        &scratch,
        "faulty",
        &["a step x step x a step x", "a step x"],
    );
    let ask = |command: &str, runs: &[&Path], options: &[&str]| {
        let words = ["--split-at", "step"];
        let options: Vec<&str> = words.iter().chain(options).copied().collect();
        ask(&scratch, command, runs, &options)
    };
    let loops = ask("loops", &[&normal], &[]).stdout;
    let expected = [
        "0.0@0 0.1@0        main a",
        "0.0@1 0.0@3 0.1@1  step x",
        "0.0@2              step x y",
    ];
    assert_eq!(behind(&loops, "WITH LOOPS FOLDED"), expected);
    let one = ask("loops", &[&normal], &["-t", "0.0@2,0.1@1"]).stdout;
    assert_eq!(
        behind(&one, "WITH LOOPS FOLDED"),
        ["0.0@2   step x y", "0.1@1   step x"]
    );
    // A trace of which no piece is named is chosen as a whole.
    let mixed = ask("loops", &[&normal], &["-t", "0.0@2", "-t", "0.1"]).stdout;
    assert_eq!(
        behind(&mixed, "WITH LOOPS FOLDED"),
        ["0.0@2   step x y", "0.1@0   main a", "0.1@1   step x"]
    );
    let lattice = ask("lattice", &[&normal], &["--json"]).stdout;
    assert!(lattice.contains("\"0.0@2\""), "{lattice}");

    let both: &[&Path] = &[&normal, &faulty];
    let diff = ask("diff", both, &["-t", "0.0"]);
    assert_eq!(diff.status, 1, "{diff:#?}");
    assert!(
        diff.stdout.starts_with("0.0 differs, first in 0.0@2."),
        "{diff:#?}"
    );
    let lines: Vec<&str> = diff.stdout.lines().skip(2).map(str::trim).collect();
    let expected = [
        "0.0@0",
        "0.0@1",
        "~ in 0.0@2",
        "step",
        "x",
        "-   y",
        "+   a",
        "0.0@3",
    ];
    assert_eq!(lines, expected);
    assert_eq!(ask("diff", both, &["-t", "0.0@1"]).status, 0);
    assert_eq!(ask("diff", both, &["-t", "0.0@2"]).status, 1);
    assert_eq!(ask("diff", both, &["-t", "0.0@7"]).status, 2);
    let outcome = command::run(lockstep(&["loops", "-t", "0.0@2"]).arg(&normal));
    assert!(
        outcome.stderr.contains("expected --split-at too"),
        "{outcome:#?}"
    );

    let compare = ask("compare", both, &["--json"]).stdout;
    let found: Value = serde_json::from_str(&compare).expect("JSON");
    assert_eq!(found["top"]["threads"][0][0], "0.0@2");
}

#[test]
fn roles_can_be_chosen() {
    let scratch = Scratch::new("roles");
    let threads = ["start m m end", "w x", "w x", "w x"];
    let normals = ["one", "two"].map(|name| run(&scratch, name, &threads));
    let faulty = run(&scratch, "faulty", &["start m n end", "w x", "w y", "w x"]);
    let compare = |role: &str| {
        let more = normals[1].display().to_string();
        let options = ["--normal", &more, "-t", role, "--json"];
        ask(&scratch, "compare", &[&normals[0], &faulty], &options)
    };
    for (role, trace) in [("worker", "0.2"), ("master", "0.0")] {
        let found: Value = serde_json::from_str(&compare(role).stdout).expect("JSON");
        let suspects = found["suspects"].as_array().expect("suspects");
        assert_eq!(suspects.len(), 1, "{found}");
        assert_eq!(suspects[0]["trace"], trace);
    }
    let loops = ask(&scratch, "loops", &[&normals[0]], &["-t", "worker"]).stdout;
    assert_eq!(behind(&loops, "WITH LOOPS FOLDED"), ["0.1-3   main w x"]);
    let outcome = compare("boss");
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(
        outcome
            .stderr
            .contains("found that they play master, worker"),
        "{outcome:#?}"
    );
}

#[test]
fn an_order_of_calls_that_wavers_in_normal_runs_is_a_note() {
    let scratch = Scratch::new("order");
    let put = "pthread_mutex_lock put pthread_mutex_unlock";
    let get = "pthread_mutex_lock get pthread_mutex_unlock";
    let work =
        |name: &str, words: &str| run(&scratch, name, &["start", &format!("work( {words} )")]);
    // What one normal run alone does, the next one may do in another way again.
    let normals = [
        work("one", &format!("{put} {get} rest")),
        work("two", &format!("{get} rest {put}")),
        work("three", &format!("{put} {get} rest")),
        work("four", &format!("{put} {get} rest")),
    ];
    let faulty = work("faulty", &format!("{put} get pthread_mutex_unlock rest"));
    let more = [1, 2, 3].map(|it| normals[it].display().to_string());
    let compare = |options: &[&str]| {
        let mut words: Vec<&str> = more.iter().flat_map(|it| ["--normal", it]).collect();
        words.extend(options);
        ask(&scratch, "compare", &[&normals[0], &faulty], &words)
    };
    let expected = "trace 0.1 calls get right after pthread_mutex_unlock in work(), which no normal run does; \
                    normal runs waver in the order of calls there, so that this may be timing";
    let text = compare(&[]);
    assert_eq!(text.status, 0, "{text:#?}");
    let words: Vec<&str> = text.stdout.split_whitespace().collect();
    let note = format!("Note: {expected}");
    assert!(words.join(" ").contains(&note), "{text:#?}");
    let json = compare(&["--json"]);
    assert_eq!(json.status, 0, "{json:#?}");
    let found: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(found["differs"], false);
    let notes = found["notes"].as_array().expect("notes");
    assert!(notes.contains(&json!(expected)), "{notes:?}");
}

#[test]
fn calls_are_told_by_callers_paths_and_locks() {
    let scratch = Scratch::new("families");
    let lock = "GOMP_critical_start copy GOMP_critical_end";
    let locked = format!("work( {lock} ) work( {lock} copy )");
    let normal = run(&scratch, "normal", &[&locked, &locked]);
    let faulty = run(
        &scratch,
        "faulty",
        &[&locked, "work( copy ) work( copy copy )"],
    );
    let attributes = |run: &Path, words: &[&str]| -> Vec<String> {
        let options = [&["--filter", "custom", "--custom", "copy", "--json"], words].concat();
        let found: Value =
            serde_json::from_str(&ask(&scratch, "lattice", &[run], &options).stdout).expect("JSON");
        let concepts = found["concepts"].as_array().expect("concepts");
        let all = concepts
            .iter()
            .flat_map(|it| it["own_attributes"].as_array().expect("a list"));
        all.map(|it| it.as_str().expect("a name").to_owned())
            .collect()
    };
    let callers = ["--attributes", "callers"];
    assert_eq!(attributes(&normal, &callers), ["work calls copy"]);
    let counted = ["--attributes", "callers", "--frequency", "actual"];
    assert_eq!(attributes(&normal, &counted), ["work calls copy:3"]);
    assert_eq!(
        attributes(&normal, &["--attributes", "paths"]),
        ["main > work > copy"]
    );
    let locks = ["--attributes", "locks", "--frequency", "actual"];
    assert_eq!(
        attributes(&normal, &locks),
        ["copy:1", "copy in critical:2"]
    );
    assert_eq!(
        attributes(&faulty, &["--attributes", "locks"]),
        ["copy", "copy in critical"]
    );

    let both: &[&Path] = &[&normal, &faulty];
    let words = [
        "--filter",
        "custom",
        "--custom",
        "copy",
        "--attributes",
        "locks",
        "--clusters",
        "2",
    ];
    let compare = ask(
        &scratch,
        "compare",
        both,
        &[&words[..], &["--json"]].concat(),
    );
    let found: Value = serde_json::from_str(&compare.stdout).expect("JSON");
    assert_eq!(found["table"][0]["attributes"], "locks");
    assert_eq!(found["view"]["difference"]["matrix"][0][1], 0.5);
    let refused = ask(
        &scratch,
        "compare",
        both,
        &["--attributes", "paths", "--split-at", "work"],
    );
    assert_eq!(refused.status, 2);
    assert!(
        refused.stderr.contains("single or double of the pieces"),
        "{refused:#?}"
    );
}

#[test]
fn attributes_of_ones_own_are_compared_beside_the_others() {
    let scratch = Scratch::new("own");
    let [normal, faulty] = ["normal", "faulty"].map(|name| run(&scratch, name, &["a", "a", "a"]));
    let file = |name: &str, value: Value| {
        fs::write(scratch.join(name), value.to_string()).expect("a file");
        scratch.join(name).display().to_string()
    };
    let before = file(
        "before.json",
        json!({"0.0": ["holds a"], "0.1": ["holds a"], "0.2": ["holds a"]}),
    );
    let after = file(
        "after.json",
        json!({"0.0": ["holds a"], "0.1": ["holds a"], "0.2": ["holds b"]}),
    );
    let both: &[&Path] = &[&normal, &faulty];
    let options = ["--own", &before, &after, "--filter", "everything", "--json"];
    let compare = ask(&scratch, "compare", both, &options);
    let found: Value = serde_json::from_str(&compare.stdout).expect("JSON");
    // main, a and what it holds: 2 of 4 are common where before all were.
    assert_eq!(
        found["view"]["difference"]["matrix"][0],
        json!([0.0, 0.0, 0.5])
    );
    let note = "own attributes: `holds a` of 0.2 in the normal run only, `holds b` of 0.2 in the faulty run only";
    assert_eq!(found["notes"], json!([note]));
    let strange = file("strange.json", json!({"9.0": ["holds a"]}));
    let refused = ask(&scratch, "compare", both, &["--own", &before, &strange]);
    assert_eq!(refused.status, 2);
    assert!(
        refused
            .stderr
            .contains("--own: expected attributes of 0.0-2, found some of 9.0"),
        "{refused:#?}"
    );
}

#[test]
fn a_lattice_that_is_too_large_is_refused_with_its_size() {
    let scratch = Scratch::new("lattice");
    let count = 12;
    let lacks_one = |row: usize| {
        let cells = (0..count).map(|column| if row == column { '.' } else { 'X' });
        cells.chain(['\n']).collect::<String>()
    };
    let names = |letter: char| (0..count).map(move |it| format!("{letter}{it}\n"));
    let head = format!("B\n\n{count}\n{count}\n\n");
    let text: String = [head]
        .into_iter()
        .chain(names('g'))
        .chain(names('m'))
        .chain((0..count).map(lacks_one))
        .collect();
    let file = scratch.join("contranominal.cxt");
    fs::write(&file, text).expect("a file");
    let refused = ask(&scratch, "lattice", &[&file], &["--limit", "1000"]);
    assert_eq!(refused.status, 2);
    let said = "expected a lattice of at most 1000 concepts (--limit), found 4096 of 12 objects";
    assert!(refused.stderr.contains(said), "{refused:#?}");
    let refused = ask(&scratch, "lattice", &[&file], &["--limit", "100"]);
    assert!(
        refused
            .stderr
            .contains("found more than 1000 of 12 objects"),
        "{refused:#?}"
    );

    let poset = ask(&scratch, "lattice", &[&file], &["--poset", "--json"]).stdout;
    let found: Value = serde_json::from_str(&poset).expect("JSON");
    let length = |key: &str| found[key].as_array().map(Vec::len);
    // Each object below all attributes but one.
    assert_eq!(
        (length("concepts"), length("covers")),
        (Some(24), Some(132))
    );
}

#[test]
fn diff_shows_the_most_suspicious_trace_unless_told_which() {
    let scratch = Scratch::new("diff-alone");
    let normal = run(&scratch, "normal", &["a b c", "x y z x y z"]);
    let faulty = run(&scratch, "faulty", &["a b c", "x y z x z"]);
    let outcome = ask(&scratch, "diff", &[&normal, &faulty], &[]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(outcome.stdout.starts_with("0.1 "), "{outcome:#?}");
    let says = "of 2 traces this is 0.1, which is unlike the normal run most (-t P.T for another)";
    assert!(outcome.stderr.contains(says), "{outcome:#?}");
    let outcome = ask(&scratch, "diff", &[&normal, &normal], &[]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let says = "of 2 traces this is 0.0, and none differs";
    assert!(outcome.stderr.contains(says), "{outcome:#?}");
}
