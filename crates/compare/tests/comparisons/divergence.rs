//! First divergence on odd/even sort, and on what loops can do.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::words::tree;
use lockstep_calltree::Forest;
use lockstep_compare::{Divergence, DivergenceKind, Divergences, Side, first_divergence};
use lockstep_loops::Names;
use lockstep_trace::TraceName;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

fn compare(normal: &str, faulty: &str) -> Divergences {
    let mut forest = Forest::new();
    let normal = tree(&mut forest, normal);
    let faulty = tree(&mut forest, faulty);
    let mut names = Names::new();
    // As among the traces of odd/even sort: rank 0 comes first.
    let even = tree(&mut forest, "2[ MPI_Send MPI_Recv ]");
    for root in [even, normal, faulty] {
        forest.name_loops(root, &mut names);
    }
    let trace = TraceName::new(5, 0);
    first_divergence(
        &forest,
        trace,
        Side::whole(normal),
        Side::whole(faulty),
        None,
        &names,
    )
}

fn structure(normal: &str, faulty: &str) -> Divergence {
    let found = compare(normal, faulty).structure;
    found.expect("a difference of structure")
}

const NORMAL: &str =
    "main( MPI_Init MPI_Comm_rank MPI_Comm_size 16[ MPI_Recv MPI_Send ] MPI_Finalize )";

#[test]
fn swap_bug() {
    let found = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] 9[ MPI_Send MPI_Recv ] MPI_Finalize )",
    );
    assert_eq!(found.kind, DivergenceKind::OtherCall);
    assert_eq!(found.event, 1 + 6 + 7 * 4);
    assert_eq!(found.normal_event, found.event);
    assert_eq!(found.stack, ["main"]);
    assert_eq!(found.normal.as_deref(), Some("MPI_Recv"));
    assert_eq!(found.faulty.as_deref(), Some("MPI_Send"));
    assert_eq!(found.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        found.to_string(),
        "calls MPI_Send where it called MPI_Recv, in iteration 8 of L1, in main"
    );
}

#[test]
fn deadlock_bug() {
    let found = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] MPI_Send(",
    );
    assert_eq!(found.kind, DivergenceKind::OtherCall);
    assert!(found.faulty_is_open);
    assert_eq!(found.event, 1 + 6 + 7 * 4);
    assert_eq!(found.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        found.to_string(),
        "calls MPI_Send (and never returns from it) where it called MPI_Recv, in iteration 8 of L1, in main"
    );
    // Its neighbour waits for ever in a call that it used to return from.
    let victim = structure(
        NORMAL,
        "main( MPI_Init MPI_Comm_rank MPI_Comm_size 7[ MPI_Recv MPI_Send ] MPI_Recv(",
    );
    assert_eq!(victim.kind, DivergenceKind::EndsEarly);
    assert_eq!(victim.event, 1 + 6 + 7 * 4 + 1);
    assert_eq!(victim.stack, ["main", "MPI_Recv"]);
    assert_eq!(victim.normal.as_deref(), Some("return"));
    assert_eq!(victim.faulty, None);
    assert_eq!(victim.loops, [("L1".to_owned(), 8)]);
    assert_eq!(
        victim.to_string(),
        "stops in MPI_Recv where it returned, in iteration 8 of L1"
    );
}

#[test]
fn trip_counts_alone() {
    let found = compare(NORMAL, &NORMAL.replace("16[", "7["));
    assert_eq!(found.structure, None);
    let counts = found.counts.expect("a difference of counts");
    assert_eq!(counts.kind, DivergenceKind::Counts);
    assert_eq!(counts.loops, [("L1".to_owned(), 8)]);
    assert_eq!(counts.normal.as_deref(), Some("MPI_Recv"));
    assert_eq!(counts.faulty.as_deref(), Some("MPI_Finalize"));
    assert_eq!(compare(NORMAL, NORMAL), Divergences::default());
}

#[test]
fn a_call_that_comes_instead_of_another_is_no_repetition() {
    let found = structure("main( Send Recv Wait )", "main( Send Send Wait )");
    assert_eq!((found.event, found.normal.as_deref()), (3, Some("Recv")));
    assert_eq!(found.faulty.as_deref(), Some("Send"));
}

#[test]
fn a_call_left_out_is_no_trip_count() {
    let normal = "main( 8[ Send Recv ] Fin )";
    let found = structure(normal, "main( 3[ Send Recv ] Send 4[ Send Recv ] Fin )");
    assert_eq!(found.event, 1 + 12 + 2);
    assert_eq!(found.normal.as_deref(), Some("Recv"));
    assert_eq!(found.faulty.as_deref(), Some("Send"));
    assert_eq!(found.loops, [("L1".to_owned(), 4)]);
    // Once and more than once is the same loop, though only one of them looks like it.
    assert_eq!(
        compare("main( a b c )", "main( a 5[ b ] c )").structure,
        None
    );
    assert_eq!(
        compare("main( a 5[ b ] c )", "main( a b c )").structure,
        None
    );
}

#[test]
fn polling_is_a_trip_count() {
    let normal = "main( a p a 2[ p ] a p a 3[ p ] z )";
    let faulty = "main( a 3[ p ] a p a p a 4[ p ] z )";
    assert_eq!(compare(normal, faulty).structure, None);
    assert_eq!(compare(faulty, normal).structure, None);
    assert_eq!(compare(faulty, "main( a p z )").structure, None);
    // Not polling at all is something else.
    let found = structure(normal, "main( a 3[ p ] a a p a z )");
    assert_eq!(found.faulty.as_deref(), Some("a"));
    assert_eq!(found.normal.as_deref(), Some("p"));
}

/// A program whose loops run as often as they are told, at least once.
#[derive(Debug, Clone)]
enum Part {
    Leaf(&'static str),
    Call(&'static str, Vec<Part>),
    Loop(Vec<Part>),
}

fn programs() -> impl Strategy<Value = Vec<Part>> {
    let names = prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]);
    let leaf = names.clone().prop_map(Part::Leaf);
    let part = leaf.prop_recursive(3, 12, 3, move |inner| {
        let body = prop::collection::vec(inner, 1..4);
        prop_oneof![
            (names.clone(), body.clone()).prop_map(|(name, body)| Part::Call(name, body)),
            body.prop_map(Part::Loop),
        ]
    });
    prop::collection::vec(part, 1..5)
}

fn run(parts: &[Part], trips: &mut dyn FnMut() -> u32, out: &mut String) {
    for part in parts {
        match part {
            Part::Leaf(name) => *out += &format!("{name} "),
            Part::Call(name, body) => {
                *out += &format!("{name}( ");
                run(body, trips, out);
                *out += ") ";
            }
            Part::Loop(body) => {
                for _ in 0..trips() {
                    run(body, trips, out);
                }
            }
        }
    }
}

/// A run of a program with trip counts drawn from `seed`.
fn random_run(parts: &[Part], seed: u64, least: u32) -> String {
    let mut state = seed | 1;
    let mut text = String::from("main( ");
    let mut trips = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        least + (state % 4) as u32
    };
    run(parts, &mut trips, &mut text);
    text + ")"
}

/// Gives every call of a program a function of its own.
fn rename(parts: &mut [Part], next: &mut usize) {
    for part in parts {
        match part {
            Part::Leaf(name) => *name = name_of(next),
            Part::Call(name, body) => {
                *name = name_of(next);
                rename(body, next);
            }
            Part::Loop(body) => rename(body, next),
        }
    }
}

fn name_of(next: &mut usize) -> &'static str {
    const NAMES: &str = "f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 f21 f22 f23 f24 f25 f26 f27 f28 f29 f30 f31 f32 f33 f34 f35 f36 f37 f38 f39";
    *next += 1;
    &NAMES[4 * (*next % 40)..][..3]
}

/// Programs that occur: each call site calls another function.
fn distinct(seed: u64) -> Vec<Part> {
    let mut bytes = [7; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let mut program = programs().new_tree(&mut runner).unwrap().current();
    rename(&mut program, &mut 0);
    program
}

/// Whatever the trip counts (two or more, so that loops can be told), structure is the same. Greedy
/// folding makes exceptions of a few; they must stay few.
#[test]
fn other_trip_counts_are_no_other_structure() {
    let (mut found, mut all) = (0, 0);
    for seed in 0..2000 {
        let program = distinct(seed);
        let a = random_run(&program, seed * 7919 + 13, 2);
        let b = random_run(&program, seed * 104_729 + 5, 2);
        if a.len().max(b.len()) < 3000 && a != b {
            all += 1;
            found += u32::from(compare(&a, &b).structure.is_some());
        }
    }
    assert!(all > 1000 && found * 200 <= all, "{found} of {all}");
}

/// The events of a program as words: calls, and `)`.
fn words(text: &str) -> Vec<String> {
    let text = text.replace('(', "( ");
    let words = text.split_whitespace();
    words
        .flat_map(|word| match word {
            ")" => vec![")".to_owned()],
            word => match word.strip_suffix('(') {
                Some(name) => vec![name.to_owned()],
                None => vec![word.to_owned(), ")".to_owned()],
            },
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn another_call_is_found_where_it_is(seed in any::<u64>(), at in any::<prop::sample::Index>(), least in 1u32..3) {
        let normal = random_run(&distinct(seed), seed, least);
        let tokens: Vec<&str> = normal.split_whitespace().collect();
        prop_assume!(tokens.len() < 2000);
        let leaves: Vec<usize> = (0..tokens.len())
            .filter(|index| !tokens[*index].ends_with('(') && tokens[*index] != ")")
            .collect();
        let leaf = leaves[at.index(leaves.len())];
        let event = words(&tokens[..leaf].join(" ")).len() as u64;
        let mut other = tokens.clone();
        other[leaf] = "other";
        let found = compare(&normal, &other.join(" ")).structure.expect("found");
        prop_assert_eq!(found.event, event);
        prop_assert_eq!(found.faulty.as_deref(), Some("other"));
        // The other way round it is found as well; but what was `a b a other a b` may be explained as
        // `a b` three times, and then lacks the rest at its end.
        prop_assert!(compare(&other.join(" "), &normal).structure.is_some());
        // A call from which it never returns.
        let open = format!("{}(", tokens[..=leaf].join(" "));
        let found = compare(&normal, &open).structure.expect("found");
        prop_assert_eq!(found.event, event + 1);
        prop_assert_eq!(found.kind, DivergenceKind::EndsEarly);
        prop_assert_eq!(found.stack.last().map(String::as_str), Some(tokens[leaf]));
    }

    #[test]
    fn counts_differ_where_the_events_do(program in programs(), seeds in any::<(u64, u64)>()) {
        let a = random_run(&program, seeds.0, 1);
        let b = random_run(&program, seeds.1, 1);
        prop_assume!(a.len().max(b.len()) < 3000);
        let found = compare(&a, &b);
        let (a, b) = (words(&a), words(&b));
        let same = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        prop_assert_eq!(a == b, found.difference(true).is_none());
        if let Some(counts) = found.counts {
            prop_assert_eq!(counts.event, same as u64);
            prop_assert_eq!(counts.normal_event, same as u64);
        }
        if let Some(structure) = found.structure {
            prop_assert!(structure.event >= same as u64);
        }
    }
}
