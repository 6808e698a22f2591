//! `baseline check` as a gate: what it stops, and what it lets pass. A sample of `cargo xtask campaign gate`.

use lockstep_testkit::gate::{FLAGS, Gate, MUTATIONS, OTHER_FLAGS, REBUILDS};
use serde_json::Value;

fn changed(program: &str, kind: &str, flags: &[&str]) -> Vec<String> {
    let mut all = MUTATIONS.iter();
    let found = all.find(|it| (it.program, it.kind) == (program, kind));
    let words = found.expect("a change of that kind").words(flags);
    words.expect("the compiler of the baseline is here")
}

fn rebuilt(program: &str, name: &str) -> Vec<String> {
    let found = REBUILDS.iter().find(|it| it.name == name);
    let words = found.expect("a rebuild of that name").words(program);
    words.expect("the compiler of the baseline is here")
}

/// Exit status, and what the gate says.
fn check(gate: &Gate, words: &[String], options: &[&str]) -> (i32, Value) {
    let outcome = gate.check(words, options);
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    assert_eq!(answer["differs"], outcome.status == 1, "{outcome:#?}");
    (outcome.status, answer["gate"].clone())
}

/// Kind, function and caller of the first difference.
fn first(gate: &Value) -> [&str; 3] {
    let it = &gate["differences"][0];
    ["kind", "function", "caller"].map(|key| it[key].as_str().unwrap_or(""))
}

#[test]
fn calls_that_are_gone_new_or_counted_otherwise_are_stopped() {
    let Some(gate) = Gate::of("heat.cpp", 1) else {
        return;
    };
    let (status, found) = check(&gate, &changed("heat.cpp", "removed", FLAGS), &[]);
    assert_eq!(
        (status, first(&found)),
        (1, ["gone", "bound(Rod&)", "main"]),
        "{found:#}"
    );
    assert_eq!(found["builds"], "alike", "{found:#}");
    let (status, found) = check(&gate, &changed("heat.cpp", "added", FLAGS), &[]);
    assert_eq!(
        (status, first(&found)),
        (1, ["count", "report(int, double)", "main"]),
        "{found:#}"
    );
    // As often as before, in another round.
    let (status, found) = check(&gate, &changed("heat.cpp", "condition shifted", FLAGS), &[]);
    assert_eq!((status, first(&found)[0]), (1, "order"), "{found:#}");
    let (status, found) = check(&gate, &changed("heat.cpp", "removed", OTHER_FLAGS), &[]);
    assert_eq!(
        (status, first(&found)),
        (1, ["gone", "bound(Rod&)", "main"]),
        "{found:#}"
    );
    assert_eq!(found["builds"], "otherwise", "{found:#}");
    // What a larger input does more often.
    let larger = changed("heat.cpp", "argument", FLAGS);
    assert_eq!(check(&gate, &larger, &[]).0, 1);
    assert_eq!(check(&gate, &larger, &["--ignore-counts"]).0, 0);
}

#[test]
fn rebuilds_that_change_nothing_pass() {
    let Some(gate) = Gate::of("heat.cpp", 1) else {
        return;
    };
    for (name, builds) in [
        ("renamed local", "alike"),
        ("moved lines", "alike"),
        ("-g3", "alike"),
        ("without -g", "otherwise"),
        ("-O2", "otherwise"),
    ] {
        let words = rebuilt("heat.cpp", name);
        let (status, found) = check(&gate, &words, &[]);
        assert_eq!(
            (status, found["builds"].as_str()),
            (0, Some(builds)),
            "{name}: {found:#}"
        );
    }
    // Without the record, somebody may know.
    let plain = rebuilt("heat.cpp", "without -g");
    let (status, found) = check(&gate, &plain, &["--same-flags", "yes"]);
    assert_eq!(
        (status, found["builds"].as_str()),
        (0, Some("alike")),
        "{found:#}"
    );
    let same = rebuilt("heat.cpp", "moved lines");
    let (status, found) = check(&gate, &same, &["--same-flags", "no"]);
    assert_eq!(
        (status, found["builds"].as_str()),
        (0, Some("otherwise")),
        "{found:#}"
    );
}

#[test]
fn who_takes_the_work_and_how_often_is_asked_is_no_difference() {
    for program in ["orders.c", "ring.c"] {
        let Some(gate) = Gate::of(program, 1) else {
            continue;
        };
        let same = rebuilt(program, "comment");
        for _ in 0..4 {
            let (status, found) = check(&gate, &same, &[]);
            assert_eq!(status, 0, "{program}: {found:#}");
        }
    }
}

#[test]
fn arguments_of_mpi_are_compared() {
    let Some(gate) = Gate::of("ring.c", 1) else {
        return;
    };
    let (status, found) = check(&gate, &changed("ring.c", "argument", FLAGS), &[]);
    assert_eq!((status, first(&found)[0]), (1, "argument"), "{found:#}");
    let detail = &found["differences"][0]["detail"]["argument"];
    assert_eq!(
        (&detail["name"], &detail["now"]),
        (&"tag".into(), &"8".into()),
        "{found:#}"
    );
}
