//! Coverage in dynamic calls: what was recorded, of what was called.

use lockstep_testkit::{Recipe, Scratch, record, tools};
use serde_json::Value;

fn processes(info: &Value) -> &[Value] {
    info["processes"].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn what_is_not_recorded_is_counted_by_every_thread_and_process_whatever_its_end() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("coverage");
    let program = Recipe::new("c/uncountable.c")
        .flags(&["-O1", "-pthread"])
        .build();
    for (arguments, status) in [(&[][..], 0), (&["and die"][..], 137)] {
        let mut words = vec![program.display().to_string()];
        words.extend(arguments.iter().map(ToString::to_string));
        let run = record(&scratch, &[], &words);
        assert_eq!(run.outcome.status, status, "{run:#?}");
        let info = run.json(&["info"]);
        let found: Vec<(u64, f64)> = processes(&info)
            .iter()
            .map(|process| {
                let refused = process["functions"]["refused"].as_array().expect("a list");
                let tiny = refused.iter().find(|row| row["name"] == "tiny");
                let tiny = tiny.expect("a refusal");
                assert_eq!(tiny["more"], true, "{tiny:#}");
                let (calls, share) = (&tiny["calls"], &process["coverage_dynamic"]);
                (
                    calls.as_u64().expect("a count"),
                    share.as_f64().expect("a share"),
                )
            })
            .collect();
        assert_eq!(
            found.iter().map(|(calls, _)| *calls).collect::<Vec<_>>(),
            [12_300, 45]
        );
        for ((calls, share), process) in found.iter().zip(processes(&info)) {
            let recorded = process["coverage"]["recorded_calls"]
                .as_u64()
                .expect("a count");
            assert_eq!(process["coverage"]["unrecorded_calls"], *calls);
            let expected = recorded as f64 / (recorded + calls) as f64;
            assert!((share - expected).abs() < 1e-9, "{process:#}");
        }
        let text = run.text(&["info"]);
        assert!(text.contains("12,345 not recorded"), "{text}");
        assert!(text.contains("may have been called more often"), "{text}");
    }
}

#[test]
fn a_program_that_is_recorded_as_a_whole_is_covered_as_a_whole() {
    let scratch = Scratch::new("covered");
    let program = Recipe::new("c/tail_calls.c").flag("-O2").build();
    let run = record(&scratch, &[], &[&program]);
    let info = run.json(&["info"]);
    let process = &processes(&info)[0];
    assert_eq!(process["coverage_dynamic"], 1.0, "{info:#}");
    let calls: Value = run.json(&["calls"]);
    let calls = calls["functions"].as_array().expect("functions");
    let sum: u64 = calls.iter().filter_map(|row| row["calls"].as_u64()).sum();
    assert_eq!(process["coverage"]["recorded_calls"], sum);
    assert!(run.text(&["info"]).contains("covered: 100 % of"));
}

#[test]
fn what_is_lost_is_not_covered() {
    let scratch = Scratch::new("not-covered");
    let program = Recipe::new("c/irregular.c").flag("-O1").build();
    let words = [program.into_os_string(), "300000".into()];
    for keep in ["first", "last"] {
        let options = ["--max-size", "1M", "--keep", keep, "--codec", "none"];
        let run = record(&scratch, &options, &words);
        let info = run.json(&["info"]);
        let process = &processes(&info)[0];
        let share = process["coverage_dynamic"].as_f64().expect("a share");
        let recorded = process["coverage"]["recorded_calls"]
            .as_f64()
            .expect("a count");
        // Two calls a round.
        let expected = recorded / 600_003.0;
        assert!(
            (share - expected).abs() < 0.001,
            "{keep}: {share} {expected}"
        );
    }
}

#[test]
fn a_library_call_that_was_not_found_is_said_to_be_missing() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("not-found");
    let program = Recipe::new("c/undescribed.c")
        .flags(&["-O1", "-fno-builtin"])
        .build();
    let run = record(&scratch, &[], &[&program]);
    assert_eq!(run.outcome.status, 0, "{run:#?}");
    let info = run.json(&["info"]);
    let refused = processes(&info)[0]["functions"]["refused"]
        .as_array()
        .expect("a list");
    let missing: Vec<(&Value, &Value)> = refused
        .iter()
        .map(|row| (&row["name"], &row["more"]))
        .collect();
    assert_eq!(
        missing,
        [(&Value::from("labs"), &Value::from(true))],
        "{info:#}"
    );
    // By the stub that all calls of a function share.
    let calls: Value = run.json(&["calls"]);
    let calls = calls["functions"].as_array().expect("functions");
    let abs = calls
        .iter()
        .find(|row| row["name"] == "abs")
        .expect("a row");
    assert_eq!(abs["calls"], 2);
    assert!(
        run.text(&["info"])
            .contains("may have been called more often")
    );
}

#[test]
fn a_program_that_a_process_became_unseen() {
    if !tools::require(&["gcc", "env"]) {
        return;
    }
    let scratch = Scratch::new("became");
    for (flags, is_unseen) in [(&["-O1", "-static"], true), (&["-O1", "-pie"], false)] {
        let program = Recipe::new("c/recursion.c").flags(flags).build();
        let run = record(&scratch, &[], &["env".as_ref(), program.as_os_str()]);
        let text = run.text(&["info", "--all-processes"]);
        let says = text.contains("env called execvp last, and nothing is recorded of the program");
        assert_eq!(says, is_unseen, "{text}");
    }
}
