//! A sealed run says what the run said before, and a damaged one says what is wrong with it.

use lockstep_testkit::command::Outcome;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, command, copy, record, tools};
use lockstep_trace::Run;
use std::fs;
use std::path::Path;

/// `lockstep` with these words.
fn call(words: &[&str]) -> Outcome {
    command::run(&mut lockstep(words))
}

/// What commands say of the run.
fn answers(run: &Path, other: &Path) -> Vec<(String, Outcome)> {
    let run = run.to_str().expect("a path");
    let other = other.to_str().expect("a path");
    let info = call(&["info", run, "--json"]);
    let value: serde_json::Value = serde_json::from_str(&info.stdout).expect("JSON");
    let processes = value["processes"].as_array().cloned().unwrap_or_default();
    let threads = processes.iter().flat_map(|it| it["threads"].as_array());
    let traces: Vec<(String, u64)> = threads
        .flatten()
        .map(|it| {
            let name = it["trace"].as_str().unwrap_or_default();
            (name.to_owned(), it["events"].as_u64().unwrap_or(0))
        })
        .collect();
    let mut all: Vec<Vec<String>> = [
        "info RUN",
        "info RUN --json",
        "calls RUN --graph",
        "calls RUN --json",
        "loops RUN",
        "loops RUN --filter memory --json",
        "compare OTHER RUN --json",
        "compare RUN OTHER --filter everything --attributes single",
    ]
    .iter()
    .map(|line| line.split(' ').map(str::to_owned).collect())
    .collect();
    for (trace, events) in traces.iter().take(8) {
        let at = (events / 3).to_string();
        let to = (events / 3 + 100).to_string();
        let last = events.saturating_sub(1).to_string();
        for line in [
            &["events", "RUN", "--raw"][..],
            &["events", "RUN", "--arguments", "--time"],
            &["events", "RUN", "--from", &at, "--to", &to],
            &["events", "RUN", "--from", &at, "--to", &to, "--time"],
            &["tree", "RUN"],
            &["stack", "RUN"],
            &["stack", "RUN", "--json", "--at", &at],
            &["stack", "RUN", "--at", &last],
            &["diff", "OTHER", "RUN"],
        ] {
            let mut line: Vec<String> = line.iter().map(ToString::to_string).collect();
            line.extend(["-t".to_owned(), trace.clone()]);
            all.push(line);
        }
    }
    all.iter()
        .map(|line| {
            let words: Vec<&str> = line
                .iter()
                .map(|word| match word.as_str() {
                    "RUN" => run,
                    "OTHER" => other,
                    word => word,
                })
                .collect();
            (line.join(" "), call(&words))
        })
        .collect()
}

fn assert_same(before: &[(String, Outcome)], after: &[(String, Outcome)]) {
    assert_eq!(before.len(), after.len());
    for ((line, before), (_, after)) in before.iter().zip(after) {
        assert_eq!(before.status, after.status, "{line}: {after:#?}");
        assert!(before.stdout == after.stdout, "{line}: other output");
        assert_eq!(before.stderr, after.stderr, "{line}");
    }
}

/// Seals a run, and looks at it before and after.
fn check(scratch: &Scratch, run: &Recording) {
    let other = scratch.join("other");
    copy(&run.directory, &other);
    let before = answers(&run.directory, &other);
    let path = run.directory.to_str().expect("a path");
    let sealed = call(&["seal", path, "--json"]);
    assert_eq!(sealed.status, 0, "{sealed:#?}");
    assert!(!run.directory.join("processes").exists());
    assert_same(&before, &answers(&run.directory, &other));
    let again = call(&["seal", path]);
    assert_eq!(again.status, 2, "{again:#?}");
    assert!(again.stderr.contains("not sealed"), "{again:#?}");
}

fn check_program(source: &str, options: &[&str]) {
    check_with(source, options, &[]);
}

fn check_with(source: &str, options: &[&str], arguments: &[&str]) {
    if !tools::require(&["gcc", "g++"]) {
        return;
    }
    let scratch = Scratch::new("sealed");
    let mut recipe = Recipe::new(source).flag("-O1").flag("-pthread");
    if source.ends_with(".cpp") {
        recipe = recipe.compiler("g++");
    }
    let mut words = vec![recipe.build().into_os_string()];
    words.extend(arguments.iter().map(Into::into));
    let run = record(&scratch, options, &words);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    check(&scratch, &run);
}

#[test]
fn calls_and_tail_calls() {
    check_program("c/tail_calls.c", &[]);
    check_program("c/recursion.c", &[]);
    check_program("c/leaf_calls.c", &[]);
    check_program("c/longjmp.c", &[]);
}

#[test]
fn processes_that_fork_and_run_others() {
    check_program("c/fork.c", &[]);
    check_program("c/exec_chain.c", &[]);
}

#[test]
fn threads_signals_and_exceptions() {
    check_program("threads/odd_even.c", &[]);
    // Ten signals: the faster it is recorded, the more it calls between them.
    check_with("c/signals.c", &[], &["10"]);
    check_program("cpp/throw.cpp", &[]);
}

#[test]
fn events_that_were_left_out() {
    for keep in ["first", "last"] {
        let options = ["--max-size", "1M", "--codec", "none", "--keep", keep];
        check_with("c/irregular.c", &options, &["400000"]);
    }
    check_program("c/switch_table.c", &["--codec", "seed"]);
    check_program("c/callbacks.c", &["--trace", "main"]);
}

#[test]
fn ranks() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        if !mpi.is_here() {
            continue;
        }
        let scratch = Scratch::new("sealed-ranks");
        let program = mpi.recipe("arguments.c").flag("-O1").build();
        let turn = a_turn();
        let mut words = mpi.launch(3);
        words.push(program.display().to_string());
        words.push(scratch.join("said").display().to_string());
        let run = record(&scratch, &[], &words);
        drop(turn);
        check(&scratch, &run);
    }
}

fn small(scratch: &Scratch) -> Option<Recording> {
    if !tools::require(&["gcc"]) {
        return None;
    }
    let program = Recipe::new("c/tail_calls.c").flag("-O2").build();
    Some(record(scratch, &["--no-time"], &[program.as_os_str()]))
}

#[test]
fn runs_share_a_store() {
    let scratch = Scratch::new("sealed-store");
    let Some(first) = small(&scratch) else { return };
    let Some(second) = small(&scratch) else {
        return;
    };
    let third = record(
        &scratch,
        &[],
        &[Recipe::new("c/leaf_calls.c").flag("-O1").build()],
    );
    let other = scratch.join("other");
    copy(&first.directory, &other);
    let runs = [&first, &second, &third];
    let before: Vec<_> = runs
        .iter()
        .map(|it| answers(&it.directory, &other))
        .collect();
    let store = scratch.join("store");
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    let store_path = path(&store);
    let seal = |runs: &[&Recording]| {
        let mut words = vec!["seal".to_owned()];
        words.extend(runs.iter().map(|it| path(&it.directory)));
        words.extend([
            "--store".to_owned(),
            store_path.clone(),
            "--json".to_owned(),
        ]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = call(&words);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let value: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        value["runs"][0]["after"]["trees"].as_u64().unwrap_or(0)
    };
    let one = seal(&[&first]);
    let same = seal(&[&second, &third]);
    assert!(one > 0);
    // The second run did what the first did.
    assert!(same > 0 && fs::read_dir(&store).expect("a store").count() == 3);
    for (run, before) in runs.iter().zip(&before) {
        assert_same(before, &answers(&run.directory, &other));
    }
    fs::rename(&store, scratch.join("away")).expect("a store");
    let lost = call(&["info", &path(&first.directory)]);
    assert_eq!(lost.status, 2);
    let says = lost
        .stderr
        .contains("expected the store that it refers to at");
    assert!(says && lost.stderr.contains("found nothing"), "{lost:#?}");
}

/// Whether the run opens and its trees are read; what is wrong otherwise.
fn open(run: &Path) -> Result<(), String> {
    let run = Run::open(run).map_err(|error| error.to_string())?;
    run.load().map_err(|error| error.to_string())
}

#[test]
fn every_truncation_and_every_flipped_bit_is_told() {
    let scratch = Scratch::new("sealed-damage");
    let Some(run) = small(&scratch) else { return };
    let path = run.directory.to_str().expect("a path");
    assert_eq!(call(&["seal", path, "--keep-capture"]).status, 0);
    assert!(run.directory.join("processes").exists());
    let file = run.directory.join("sealed.lockstep");
    let bytes = fs::read(&file).expect("a sealed file");
    assert_eq!(open(&run.directory), Ok(()));
    for length in 0..bytes.len() {
        fs::write(&file, &bytes[..length]).expect("written");
        let told = open(&run.directory).expect_err("cut off");
        assert!(
            told.contains(": byte ") && told.contains("expected"),
            "{told}"
        );
    }
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, flipped).expect("written");
        let told = open(&run.directory).expect_err("flipped");
        assert!(told.contains(": byte ") && told.contains("found"), "{told}");
    }
    fs::write(&file, &bytes[..bytes.len() / 2]).expect("written");
    for words in [
        &["info", path][..],
        &["events", path, "-t", "0.0"],
        &["calls", path],
    ] {
        let outcome = call(words);
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(outcome.stderr.contains("expected"), "{outcome:#?}");
    }
}
