//! `go test -o` keeps what `go coverage` reads.

use lockstep_testkit::{Scratch, artifacts, command, tools};
use serde_json::Value;

#[test]
fn what_a_campaign_covered() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go-coverage");
    let kept = scratch.join("found");
    let lockstep = artifacts::lockstep().display().to_string();
    let kept = kept.display().to_string();
    let run = |words: &[&str]| {
        let mut all = vec![lockstep.as_str(), "go"];
        all.extend(words);
        let mut command = command::command(&all);
        command.current_dir(artifacts::repository().join("programs/go/zoo"));
        command::run(&mut command)
    };
    let tested = run(&[
        "test",
        "--runs",
        "3",
        "-o",
        &kept,
        "./chan_first_of_many",
        "--",
        "-run",
        "TestRepaired",
    ]);
    assert_eq!(tested.status, 0, "{}", tested.stderr);
    let text = run(&["coverage", &kept]).success().stdout;
    tools::note(&text);
    // The buffer has room for all: no send ever waits, and the buggy one is never reached.
    assert!(
        text.contains("- blocked: the send never had to wait"),
        "{text}"
    );
    assert!(text.contains("never reached"), "{text}");
    let json = run(&["coverage", &kept, "--json"]).success().stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let (covered, total) = (&json["coverage"]["covered"], &json["coverage"]["total"]);
    assert!(covered.as_u64() > Some(0) && covered.as_u64() < total.as_u64());
    // Both tell of the same usages.
    let same = format!("{covered} of {total} requirements covered");
    assert!(tested.stdout.contains(&same), "{same}: {}", tested.stdout);
    let missing = run(&["coverage", &kept, "--missing"]).success().stdout;
    assert!(!missing.contains("  + "), "{missing}");
}

/// Its goroutines are judged where ranks would be.
#[test]
fn progress_of_a_go_program() {
    if !tools::require(&["go"]) {
        return;
    }
    let scratch = Scratch::new("go-progress");
    let kept = scratch.join("found").display().to_string();
    let lockstep = artifacts::lockstep().display().to_string();
    let words = ["go", "test", "-o", &kept, "./double_lock_defer_in_loop"];
    let words = [&[lockstep.as_str()], &words[..], &["--", "-run", "TestBug"]].concat();
    let mut command = command::command(&words);
    command.current_dir(artifacts::repository().join("programs/go/zoo"));
    assert_eq!(command::run(&mut command).status, 1);
    let run = format!("{kept}/run-1");
    let progress = |more: &[&str]| {
        let words = [&[lockstep.as_str(), "progress", &run], more].concat();
        command::run(&mut command::command(&words))
    };
    let found = progress(&[]);
    assert_eq!(found.status, 1);
    assert!(
        found.stdout.starts_with("global-deadlock: "),
        "{}",
        found.stdout
    );
    let json: Value = serde_json::from_str(&progress(&["--json"]).stdout).expect("JSON");
    assert_eq!(
        (&json["hang"], &json["kind"]),
        (&true.into(), &"deadlock".into())
    );
    let waits = json["waits"].as_array().expect("waits");
    assert!(
        waits.iter().any(|wait| wait["from"] == wait["to"]),
        "{waits:?}"
    );
}
