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
    let missing = run(&["coverage", &kept, "--missing"]).success().stdout;
    assert!(!missing.contains("  + "), "{missing}");
}
