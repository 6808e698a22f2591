use super::*;
use crate::statistics::gate::settled::Sequence;
use proptest::prelude::*;

fn process(number: u32) -> ProcessName {
    ProcessName::rank(number)
}

/// Runs of few functions, so that many of them have much in common.
fn frames() -> impl Strategy<Value = Frames> {
    let list = (0..3u64, 0..3u64).prop_map(|(length, hash)| Sequence { length, hash });
    let lists = prop::collection::btree_map(list, 1..3u64, 1..3);
    let end = || prop::option::of((0..3u32).prop_map(FunctionKey));
    let follows = prop::collection::btree_set((end(), end()), 1..5);
    let flags = (prop::bool::weighted(0.4), prop::bool::weighted(0.3));
    (lists, follows, flags).prop_map(|(lists, follows, (shares, answers))| Frames {
        // As if lists of one length made the same calls; those without a call have no order.
        sorted: (lists.keys().filter(|it| it.length > 0))
            .map(|it| (*it, Sequence { hash: 0, ..*it }))
            .collect(),
        lists,
        follows,
        shares,
        answers,
    })
}

fn said() -> impl Strategy<Value = Said> {
    let names = prop_oneof![Just("MPI_INT"), Just("MPI_LONG")];
    prop_oneof![
        (0..4i64).prop_map(Said::Number),
        (-1..2i64).prop_map(Said::Offset),
        names.prop_map(|it| Said::Name(it.into())),
    ]
}

fn of_process() -> impl Strategy<Value = OfProcess> {
    let edge = (prop::option::of(0..2u32), 0..2u32);
    let edge = edge.prop_map(|(a, b)| (a.map(FunctionKey), FunctionKey(b)));
    let amount = (0..4u64, prop::bool::weighted(0.2));
    let amount = amount.prop_map(|(times, is_timed)| Amount { times, is_timed });
    let calls = prop::collection::btree_map(edge, amount, 0..4);
    let frames = prop::collection::btree_map((0..2u32).prop_map(FunctionKey), frames(), 0..3);
    let given = prop::collection::vec(said().prop_map(|it| ("tag", it)), 0..2);
    let given = prop::collection::btree_map(given, 1..3u64, 0..3);
    let given = prop::collection::btree_map(Just("MPI_Send".to_owned()), given, 0..2);
    (calls, frames, given, 0..2i32).prop_map(|(calls, frames, given, status)| OfProcess {
        end: Some((EndKind::Exited, Some(status))),
        calls,
        frames,
        given,
    })
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let processes = prop::collection::btree_map((0..2u32).prop_map(process), of_process(), 1..3);
    let first_come = prop::bool::weighted(0.3);
    (processes, first_come).prop_map(|(processes, first_come)| Behaviour {
        processes,
        first_come,
    })
}

/// Runs that are much like one another: one, and others that take some of its parts.
fn family() -> impl Strategy<Value = Vec<Behaviour>> {
    prop::collection::vec(behaviour(), 3).prop_flat_map(|ancestors| {
        let choice = prop::collection::vec((0..3usize, 0..3usize, 0..3usize, 0..3usize), 2..6);
        choice.prop_map(move |choices| {
            let of = |(a, b, c, d): (usize, usize, usize, usize)| {
                let mut run = ancestors[a].clone();
                for (name, own) in &mut run.processes {
                    let other = |it: usize| ancestors[it].processes.get(name);
                    if let Some(it) = other(b) {
                        own.calls.clone_from(&it.calls);
                    }
                    if let Some(it) = other(c) {
                        own.frames.clone_from(&it.frames);
                    }
                    if let Some(it) = other(d) {
                        own.given.clone_from(&it.given);
                    }
                }
                run
            };
            choices.into_iter().map(of).collect()
        })
    })
}

fn allows(normals: &[Behaviour], now: &Behaviour, ignores_counts: bool) -> bool {
    let normals: Vec<&Behaviour> = normals.iter().collect();
    departures(&normals, now, ignores_counts).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn what_some_normal_runs_allow_more_of_them_do(
        family in family(),
        stranger in behaviour(),
        place in 0..8usize,
        ignores_counts: bool,
    ) {
        let Some((now, normals)) = family.split_last() else {
            return Ok(());
        };
        for fewer in 1..=normals.len() {
            if allows(&normals[..fewer], now, ignores_counts) {
                prop_assert!(allows(normals, now, ignores_counts));
                let mut more = normals.to_vec();
                more.insert(place % (normals.len() + 1), stranger.clone());
                prop_assert!(allows(&more, now, ignores_counts));
            }
        }
        // A run is as it was itself, beside whatever else.
        let mut more = normals.to_vec();
        more.insert(place % (normals.len() + 1), now.clone());
        prop_assert!(allows(&more, now, ignores_counts));
        // Who ignores how often allows no less.
        prop_assert!(!allows(normals, now, false) || allows(normals, now, true));
    }
}

/// `main` calls `step` so often, and that each `exchange` in this order.
fn steps(times: u64) -> Behaviour {
    let (main, step) = (FunctionKey(0), FunctionKey(1));
    let amount = |times| Amount {
        times,
        is_timed: false,
    };
    let list = Sequence {
        length: times,
        hash: times,
    };
    let follows = BTreeSet::from([
        (None, Some(step)),
        (Some(step), Some(step)),
        (Some(step), None),
    ]);
    let frames = Frames {
        lists: BTreeMap::from([(list, 1)]),
        sorted: BTreeMap::new(),
        follows,
        shares: false,
        answers: false,
    };
    let own = OfProcess {
        end: Some((EndKind::Exited, Some(0))),
        calls: BTreeMap::from([
            ((None, main), amount(1)),
            ((Some(main), step), amount(times)),
        ]),
        frames: BTreeMap::from([(main, frames)]),
        given: BTreeMap::new(),
    };
    Behaviour {
        processes: BTreeMap::from([(process(0), own)]),
        first_come: false,
    }
}

#[test]
fn loops_go_round_as_often_as_in_some_normal_run_or_between() {
    assert!(allows(&[steps(20)], &steps(20), false));
    assert!(!allows(&[steps(20)], &steps(40), false));
    assert!(allows(&[steps(20)], &steps(40), true));
    assert!(!allows(&[steps(20), steps(20)], &steps(40), false));
    assert!(allows(&[steps(20), steps(40)], &steps(30), false));
    assert!(!allows(&[steps(20), steps(40)], &steps(41), false));
    assert!(!allows(&[steps(20)], &steps(0), true));
}

/// A function that takes locks, and so many of its calls in each of three orders.
fn orders(times: [u64; 3], answers: bool) -> Behaviour {
    let mut run = steps(1);
    let ends = [None, Some(FunctionKey(1)), Some(FunctionKey(2))];
    for own in run.processes.values_mut() {
        let list = |hash| Sequence { length: 2, hash };
        let lists: BTreeMap<_, _> = (0u64..).map(list).zip(times).collect();
        let frames = Frames {
            sorted: lists.keys().map(|it| (*it, list(0))).collect(),
            lists,
            follows: (ends.iter()).flat_map(|a| ends.map(|b| (*a, b))).collect(),
            shares: true,
            answers,
        };
        own.frames = BTreeMap::from([(FunctionKey(1), frames)]);
    }
    run
}

#[test]
fn a_lock_excuses_how_many_calls_are_made_and_not_their_order() {
    let normal = orders([8, 7, 0], false);
    let allowed = |times| allows(std::slice::from_ref(&normal), &orders(times, false), false);
    assert!(allowed([8, 7, 0]));
    assert!(allowed([6, 7, 0]));
    assert!(allowed([8, 9, 0]));
    assert!(!allowed([9, 6, 0]));
    assert!(!allowed([8, 6, 1]));
    // An answer may choose.
    assert!(allows(
        std::slice::from_ref(&normal),
        &orders([9, 6, 0], true),
        false
    ));
}
