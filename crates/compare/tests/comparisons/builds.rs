//! Runs of two builds: clones, inlined functions, and what is a difference all the same.
#![allow(clippy::unwrap_used)]

use crate::made::Made;
use crate::odd_even;
use lockstep_compare::{Comparison, Options, compare};
use lockstep_trace::Run;

const NAMES: [&str; 9] = [
    "main",
    "step",
    "sort",
    "sort.part.0",
    "swap",
    "MPI_Send",
    "MPI_Recv",
    "give_up",
    "rest",
];

/// Six ranks of the same build, which do this in each of ten steps (rank, step).
fn run(build: &str, step: impl Fn(&mut Made, usize, usize)) -> Run {
    let traces = (0..6).map(|rank| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            (0..10).for_each(|number| step(trace, rank, number))
        });
        trace.events
    });
    let mut run = odd_even::run(&NAMES, traces.collect());
    // Each build has `sort` under its own name alone.
    let absent = if build == "1" { "sort.part.0" } else { "sort" };
    for function in run.functions.iter_mut().filter(|it| it.name == absent) {
        (function.name, function.linkage) = ("none".into(), "none".into());
    }
    for process in &mut run.processes {
        process.build = build.to_owned();
    }
    run
}

fn found(normal: &Run, faulty: &Run) -> Comparison {
    compare(&[normal], faulty, &Options::default(), &|_, _| {}).unwrap()
}

/// Without optimisation: everything is called by its name.
fn plain(trace: &mut Made) {
    trace.call("step", |trace| {
        trace.call("sort", |trace| {
            trace.leaf("swap");
            trace.leaf("MPI_Send");
        });
        trace.call("rest", |trace| trace.leaf("MPI_Recv"));
    });
}

/// With it: `step` and `swap` are inlined, and of `sort` its greater part is called.
fn optimised(trace: &mut Made) {
    trace.call("sort.part.0", |trace| trace.leaf("MPI_Send"));
    trace.call("rest", |trace| trace.leaf("MPI_Recv"));
}

#[test]
fn clones_and_inlined_functions_are_no_difference() {
    let before = run("1", |trace, _, _| plain(trace));
    let now = run("2", |trace, _, _| optimised(trace));
    for (normal, faulty) in [(&before, &now), (&now, &before)] {
        let found = found(normal, faulty);
        assert!(!found.differs, "{}", found.verdict);
        let builds = found.builds.unwrap();
        assert_eq!(builds.by_base_name, ["sort.part.0"]);
        let mut once = [builds.normal_only, builds.faulty_only];
        once.sort();
        assert_eq!(once, [vec![], vec!["step".to_owned(), "swap".to_owned()]]);
        assert!(builds.elsewhere.is_empty());
    }
    // The same build never calls otherwise for nothing.
    let other = run("1", |trace, _, _| optimised(trace));
    let same = found(&before, &other);
    assert!(same.differs && same.builds.is_none());
}

#[test]
fn what_is_inlined_in_some_places_alone_is_left_out() {
    let before = run("1", |trace, _, _| {
        trace.call("sort", |trace| trace.leaf("swap"));
        trace.call("rest", |trace| trace.leaf("swap"));
        trace.leaf("MPI_Send");
    });
    let now = run("2", |trace, _, _| {
        trace.leaf("sort");
        trace.call("rest", |trace| trace.leaf("swap"));
        trace.leaf("MPI_Send");
    });
    let found = found(&before, &now);
    assert!(!found.differs, "{}", found.verdict);
    assert_eq!(found.builds.unwrap().elsewhere, ["swap"]);
}

#[test]
fn a_call_that_one_rank_leaves_out_is_told() {
    let before = run("1", |trace, _, _| plain(trace));
    let now = run("2", |trace, rank, step| {
        if (rank, step) == (3, 7) {
            trace.call("sort.part.0", |trace| trace.leaf("MPI_Send"));
        } else {
            optimised(trace);
        }
    });
    let found = found(&before, &now);
    assert!(
        found
            .verdict
            .starts_with("rank 3 calls sort where the normal run calls rest"),
        "{}",
        found.verdict
    );
}

#[test]
fn a_function_that_one_rank_alone_calls_is_no_inlined_one() {
    let before = run("1", |trace, _, _| plain(trace));
    let now = run("2", |trace, rank, step| {
        optimised(trace);
        if (rank, step) == (3, 7) {
            trace.leaf("give_up");
        }
    });
    let found = found(&before, &now);
    assert!(
        found.verdict.starts_with("rank 3 calls give_up"),
        "{}",
        found.verdict
    );
}

#[test]
fn two_programs_are_no_two_builds() {
    let one = run("1", |trace, _, _| {
        trace.call("step", |trace| trace.leaf("swap"));
        trace.leaf("MPI_Send");
    });
    let other = run("2", |trace, _, _| {
        trace.call("give_up", |trace| trace.leaf("rest"));
        trace.leaf("MPI_Send");
    });
    let builds = |faulty: &Run| found(&one, faulty).builds.unwrap();
    let strangers = builds(&other).strangers.unwrap();
    assert_eq!(
        (strangers.normal, strangers.faulty, strangers.both),
        (2, 2, 0)
    );
    assert!(builds(&other).note().contains("found two programs"));
    // One function that both call is enough of two.
    let kin = run("2", |trace, _, _| {
        trace.call("step", |trace| trace.leaf("rest"));
        trace.leaf("MPI_Send");
    });
    assert_eq!(builds(&kin).strangers, None);
}
