//! Of several traces that differ, the earliest in the order of messages is the suspect.
#![allow(clippy::unwrap_used)]

mod odd_even;

use lockstep_compare::{CausalOrder, Options, compare, compare_in_order, outliers};
use lockstep_trace::{Event, Run, TraceName};
use odd_even::{Bug, function, odd_even, run};
use std::collections::BTreeMap;

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
    let usual: &[&str] = &[
        "MPI_Init",
        "MPI_Send",
        "MPI_Recv",
        "MPI_Send",
        "MPI_Finalize",
    ];
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
