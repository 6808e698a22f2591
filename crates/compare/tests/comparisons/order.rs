//! Of several traces that differ, the earliest in the order of messages is the suspect.
#![allow(clippy::unwrap_used)]

use crate::odd_even::{self, Bug, function, odd_even, run};
use lockstep_compare::{
    CausalOrder, Culprit as Awaited, Options, compare, compare_in_order, outliers,
};
use lockstep_trace::{Event, ProcessName, Run, TraceName};
use std::collections::BTreeMap;

/// Rank 2 is who the others wait for.
struct Culprit;

impl CausalOrder for Culprit {
    fn time(&self, _: TraceName, event: u64) -> u64 {
        event
    }

    fn heard_of(&self, _: TraceName, _: u64) -> BTreeMap<TraceName, u64> {
        BTreeMap::new()
    }

    fn culprits(&self) -> Vec<Awaited> {
        vec![Awaited {
            process: ProcessName::rank(2),
            deed: None,
        }]
    }
}

/// Rank 2 is ahead of all others by 1000 events; rank 1 hears of what it does from its event 3 on.
struct Ahead;

impl CausalOrder for Ahead {
    fn time(&self, trace: TraceName, event: u64) -> u64 {
        event + if trace.process.rank == 2 { 0 } else { 1000 }
    }

    fn heard_of(&self, trace: TraceName, _: u64) -> BTreeMap<TraceName, u64> {
        if trace.process.rank == 2 {
            BTreeMap::from([(TraceName::new(1, 0), 3), (TraceName::new(3, 0), 100)])
        } else {
            BTreeMap::new()
        }
    }
}

/// What a healthy rank calls.
const USUAL: &[&str] = &[
    "MPI_Init",
    "MPI_Send",
    "MPI_Recv",
    "MPI_Send",
    "MPI_Finalize",
];

/// Each rank makes these calls.
fn ranks(calls: [&[&str]; 4]) -> Run {
    let trace = |names: &[&str]| {
        let call = |name: &&str| [Event::Call(function(name)), Event::Return];
        names.iter().flat_map(call).collect()
    };
    run(&odd_even::FUNCTIONS, calls.map(trace).to_vec())
}

#[test]
fn the_earliest_divergence_is_the_suspect_and_later_ones_its_consequences() {
    let usual = USUAL;
    let early: &[&str] = &[
        "MPI_Init",
        "MPI_Recv",
        "MPI_Recv",
        "MPI_Send",
        "MPI_Finalize",
    ];
    let late: &[&str] = &[
        "MPI_Init",
        "MPI_Send",
        "MPI_Recv",
        "MPI_Recv",
        "MPI_Finalize",
    ];
    let normal = ranks([usual; 4]);
    let faulty = ranks([usual, early, late, early]);
    let options = Options::default();
    let without = compare(&[&normal], &faulty, &options, &|_, _| {}).unwrap();
    assert_eq!(without.suspects[0].trace, TraceName::new(1, 0));
    assert!(
        without
            .suspects
            .iter()
            .all(|suspect| suspect.after.is_none())
    );

    let found = compare_in_order(&[&normal], &faulty, &options, Some(&Ahead), &|_, _| {}).unwrap();
    let suspects: Vec<_> = found
        .suspects
        .iter()
        .map(|it| (it.trace.process.rank, it.after))
        .collect();
    // Rank 1 hears of it at event 3, and differs at event 2: by itself.
    assert_eq!(suspects, [(2, None), (1, None), (3, None)]);

    let faulty = ranks([usual, late, late, usual]);
    let found = compare_in_order(&[&normal], &faulty, &options, Some(&Ahead), &|_, _| {}).unwrap();
    let second = &found.suspects[1];
    assert_eq!(
        (second.trace.process.rank, second.after),
        (1, Some(TraceName::new(2, 0)))
    );
    assert!(
        second
            .reasons
            .iter()
            .any(|reason| reason.contains("perhaps a consequence"))
    );
}

#[test]
fn of_those_that_end_early_the_one_that_the_others_wait_for_is_the_suspect() {
    let usual = USUAL;
    let normal = ranks([usual; 4]);
    let faulty = ranks([&usual[..2], &usual[..3], &usual[..4], &usual[..3]]);
    let options = Options::default();
    let first = |order: Option<&dyn CausalOrder>| {
        let found = compare_in_order(&[&normal], &faulty, &options, order, &|_, _| {}).unwrap();
        found.suspects[0].clone()
    };
    let found = first(Some(&Culprit));
    assert_eq!(found.trace, TraceName::new(2, 0));
    assert!(found.confidence > first(None).confidence);
    assert!(
        found
            .reasons
            .iter()
            .any(|it| it.contains("the others wait for it"))
    );
    // Who makes another call still comes before.
    let other: &[&str] = &[
        "MPI_Init",
        "MPI_Recv",
        "MPI_Recv",
        "MPI_Send",
        "MPI_Finalize",
    ];
    let faulty = ranks([other, &usual[..3], &usual[..4], &usual[..3]]);
    let found =
        compare_in_order(&[&normal], &faulty, &options, Some(&Culprit), &|_, _| {}).unwrap();
    assert_eq!(found.suspects[0].trace, TraceName::new(0, 0));
    assert_eq!(found.suspects[1].trace, TraceName::new(2, 0));
}

#[test]
fn a_call_that_all_make_for_their_settings_is_left_out_and_not_what_the_program_is_about() {
    let body = ["MPI_Send", "MPI_Recv"].repeat(8);
    let calls = |before: &[&'static str], left_out: usize| -> Vec<&'static str> {
        let mut body = body.clone();
        if left_out < body.len() {
            body.remove(left_out);
        }
        let parts = [&["MPI_Init"][..], before, &body, &["MPI_Finalize"]];
        parts.concat()
    };
    let normal = calls(&[], 99);
    let (same, skips) = (calls(&["MPI_Comm_size"], 99), calls(&["MPI_Comm_size"], 6));
    let normal = ranks([&normal; 4]);
    let faulty = ranks([&same, &same, &skips, &same]);
    let found = compare(&[&normal], &faulty, &Options::default(), &|_, _| {}).unwrap();
    assert_eq!(found.left_out, ["MPI_Comm_size"]);
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(2, 0),
        "{}",
        found.verdict
    );
    assert!(
        found
            .verdict
            .contains("calls MPI_Recv where the normal run calls MPI_Send"),
        "{}",
        found.verdict
    );
}

#[test]
fn the_first_iteration_with_a_new_body_is_told() {
    // Iterations differ among themselves, so that no loop is seen.
    let step = |number: usize| -> Vec<&'static str> {
        let mut calls = vec!["find_partner"];
        if number.is_multiple_of(3) {
            calls.push("MPI_Send");
        }
        if (number * number) % 5 == 1 {
            calls.push("MPI_Recv");
        }
        calls
    };
    let all = |bug: usize| -> Vec<&'static str> {
        let steps = (0..40).flat_map(|number| {
            let mut step = step(number);
            if number == bug {
                step.push("MPI_Comm_rank");
            }
            step
        });
        let calls = std::iter::once("MPI_Init").chain(steps);
        calls.chain(["MPI_Finalize"]).collect()
    };
    let (usual, bug) = (all(99), all(23));
    let normal = ranks([&usual; 4]);
    let faulty = ranks([&usual, &bug, &usual, &usual]);
    let found = compare(&[&normal], &faulty, &Options::default(), &|_, _| {}).unwrap();
    let phases = found.suspects[0].phases.clone().unwrap();
    assert_eq!(
        (phases.marker.as_str(), phases.normal, phases.faulty),
        ("find_partner()", 40, 40)
    );
    assert_eq!((phases.first_new, phases.new), (Some(24), 1));
    let told = "iteration 24 of 40 in the thread (from one find_partner() to the next) is the first with a new body; no other has one";
    assert!(
        found.suspects[0].reasons.iter().any(|it| it == told),
        "{:?}",
        found.suspects[0].reasons
    );
}

#[test]
fn one_rank_among_sixteen_stands_out() {
    let options = Options::default();
    let found = outliers(&odd_even(16, Bug::Swap), &options, 3.5).unwrap();
    assert!(found.differs);
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(5, 0),
        "{}",
        found.verdict
    );
    assert!(found.verdict.starts_with("trace 5.0 "), "{}", found.verdict);
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(
        (
            &json["suspects"][0]["trace"],
            &json["suspects"][0]["process"]
        ),
        (&"5.0".into(), &5.into())
    );

    let alike = ranks([&["MPI_Init", "MPI_Send", "MPI_Finalize"]; 4]);
    let found = outliers(&alike, &options, 3.5).unwrap();
    assert!(
        !found.differs && found.suspects.is_empty(),
        "{}",
        found.verdict
    );
    let error = outliers(&odd_even(2, Bug::None), &options, 3.5).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("expected at least three traces"),
        "{error}"
    );
}
