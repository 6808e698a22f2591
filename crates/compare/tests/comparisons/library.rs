//! What a standard library does inside itself is no part of a program's way; what it calls of the program is.
#![allow(clippy::unwrap_used)]

use crate::made::{Made, Random};
use crate::odd_even;
use lockstep_compare::{Comparison, Options, compare};
use lockstep_trace::{End, EndKind, Event, FunctionId, Run, Thread, TraceName};

const NAMES: [&str; 11] = [
    "main",
    "count",
    "std::unordered_map<int, int>::operator[](int const&)",
    "std::_Hashtable<int, int>::_M_find_before_node(unsigned long) const",
    "memcmp",
    "std::for_each<int*, Task>(int*, int*, Task)",
    "visit",
    "inner",
    "abort",
    "work",
    "std::rethrow_exception(std::exception_ptr)",
];

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// Rank 2 leaves out what it does in a visit, from step 15 on.
    Inner,
    /// It does not look into the table in step 15.
    Lookup,
}

/// Four ranks of 30 steps: a look into a table whose chains follow from addresses, and a walk over a list.
fn tables(seed: u64, bug: Bug) -> Run {
    let mut random = Random::new(seed);
    let traces = (0..4).map(|rank| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            for step in 0..30 {
                let bug = if rank == 2 && step >= 15 {
                    bug
                } else {
                    Bug::None
                };
                trace.call("count", |trace| {
                    if !(bug == Bug::Lookup && step == 15) {
                        trace.call(NAMES[2], |trace| {
                            for _ in 0..random.below(3) {
                                trace.call(NAMES[3], |trace| {
                                    for _ in 0..random.below(3) {
                                        trace.leaf("memcmp");
                                    }
                                });
                            }
                        });
                    }
                    trace.leaf("work");
                });
                trace.call(NAMES[5], |trace| {
                    for _ in 0..3 {
                        trace.call("visit", |trace| {
                            if bug != Bug::Inner {
                                trace.leaf("inner");
                            }
                        });
                    }
                });
            }
        });
        trace.events
    });
    odd_even::run(&NAMES, traces.collect())
}

fn against(normals: u64, faulty: &Run) -> Comparison {
    let normals: Vec<Run> = (1..=normals).map(|seed| tables(seed, Bug::None)).collect();
    let normals: Vec<&Run> = normals.iter().collect();
    compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap()
}

#[test]
fn chains_of_a_table_are_no_difference() {
    for normals in [1, 4] {
        for seed in 50..53 {
            let found = against(normals, &tables(seed, Bug::None));
            assert!(!found.differs, "{normals}: {}", found.verdict);
        }
    }
}

#[test]
fn what_the_program_does_is_one_also_where_the_library_calls_it() {
    let told = [
        (
            Bug::Inner,
            "rank 2 returns from visit where the normal run calls inner, in visit()",
        ),
        (
            Bug::Lookup,
            "rank 2 calls work where the normal run calls std::unordered_map::operator[], in count()",
        ),
    ];
    for (bug, told) in told {
        for normals in [1, 4] {
            let found = against(normals, &tables(60, bug));
            assert!(found.differs, "{normals}: {}", found.verdict);
            assert_eq!(found.suspects[0].trace, TraceName::new(2, 0));
            assert!(
                found.verdict.starts_with(told),
                "{normals}: {}",
                found.verdict
            );
        }
    }
}

#[test]
fn a_loop_is_told_by_what_it_calls() {
    let calls = ["main", "read", "solve", "write"];
    let steps = |other: usize| {
        let mut trace = Made::new(&["main", "read", "solve", "write"]);
        trace.call("main", |trace| {
            for step in 0..3 {
                trace.leaf("read");
                trace.leaf(if step == other { "write" } else { "solve" });
                trace.leaf("write");
            }
        });
        odd_even::run(&calls, vec![trace.events])
    };
    let (normal, faulty) = (steps(9), steps(1));
    let found = compare(&[&normal], &faulty, &Options::default(), &|_, _| {}).unwrap();
    assert!(
        found
            .verdict
            .contains("in iteration 2 of the loop [read solve write]"),
        "{}",
        found.verdict
    );
}

/// Rank 3 ends in this call, in its last step, long after rank 2 did otherwise.
fn crashed(within: &str) -> Comparison {
    let normal = tables(1, Bug::None);
    let mut faulty = tables(2, Bug::Inner);
    let thread = &mut faulty.processes[3].threads[0];
    let mut events: Vec<Event> = thread.events().collect();
    let call = NAMES.iter().position(|it| *it == within).unwrap() as u32;
    events.truncate(events.len() - 1);
    events.push(Event::Call(FunctionId(call)));
    *thread = Thread::from_events(thread.name, events);
    faulty.processes[3].end = End {
        kind: EndKind::Signalled,
        code: Some(6),
        certain: true,
    };
    compare(&[&normal], &faulty, &Options::default(), &|_, _| {}).unwrap()
}

#[test]
fn a_crash_comes_first_beside_one_normal_run_too() {
    let found = crashed("abort");
    assert_eq!(found.suspects[0].trace, TraceName::new(3, 0));
    let verdict = &found.verdict;
    let said = "rank 3 calls abort where the normal run returns from main";
    assert!(verdict.starts_with(said), "{verdict}");
    assert!(verdict.contains(", and ended (signal 6)"), "{verdict}");
}

#[test]
fn who_rethrows_comes_behind_who_did_otherwise() {
    let found = crashed("std::rethrow_exception(std::exception_ptr)");
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(2, 0),
        "{}",
        found.verdict
    );
}
