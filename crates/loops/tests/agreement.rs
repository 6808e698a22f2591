//! The fast folding against the rules followed to the letter.

use lockstep_loops::{Bodies, Mode, expand, fold, reference};
use proptest::prelude::*;

/// Random letters, and (so that deep nesting occurs) random programs of nested loops run for real.
fn strings() -> impl Strategy<Value = Vec<u32>> {
    let letters = (1u32..5).prop_flat_map(|letters| prop::collection::vec(0..letters, 0..60));
    let program = prop::collection::vec((0u32..4).prop_map(|letter| vec![letter]), 1..4)
        .prop_recursive(4, 24, 3, |inner| {
            prop::collection::vec((inner, 1usize..5), 1..4).prop_map(|parts| {
                parts
                    .into_iter()
                    .map(|(part, times)| part.concat().repeat(times))
                    .map(|part| part.into_iter().take(200).collect())
                    .collect()
            })
        })
        .prop_map(|parts| parts.concat());
    prop_oneof![letters, program]
}

fn check(tokens: &[u32], k: usize, mode: Mode) -> Result<(), TestCaseError> {
    // One table for both: equal bodies must also get equal ids.
    let mut bodies = Bodies::new();
    let fast = fold(tokens.iter().copied(), k, mode, &mut bodies);
    let known = bodies.len();
    let slow = reference::fold(tokens.iter().copied(), k, mode, &mut bodies);
    prop_assert_eq!(&fast, &slow);
    prop_assert_eq!(known, bodies.len());
    let mut again = Vec::new();
    expand(&fast, &bodies, &mut |token| again.push(token));
    prop_assert_eq!(again, tokens);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60_000, ..ProptestConfig::default() })]

    #[test]
    fn fast_is_as_slow(tokens in strings(), k in 1usize..13) {
        check(&tokens, k, Mode::Shape)?;
        check(&tokens, k, Mode::Exact)?;
    }
}

#[test]
fn every_short_string() {
    for length in 0..11 {
        for number in 0..1u32 << length {
            let tokens: Vec<u32> = (0..length).map(|bit| number >> bit & 1).collect();
            for mode in [Mode::Shape, Mode::Exact] {
                for k in [1, 2, 5] {
                    check(&tokens, k, mode).expect("agreement");
                }
            }
        }
    }
}

#[test]
fn a_loop_in_one_table_is_the_loop_in_another() {
    let mut one = Bodies::new();
    let mut two = Bodies::new();
    let _ = fold([9, 9, 8, 9, 9, 9, 8], 10, Mode::Shape, &mut two);
    let a = fold([1, 1, 2, 1, 1, 2], 10, Mode::Shape, &mut one);
    let b = fold([1, 1, 1, 2, 1, 1, 2], 10, Mode::Shape, &mut two);
    let hash = |sequence: &[lockstep_loops::Element], bodies: &Bodies| match sequence {
        [lockstep_loops::Element::Loop(looped)] => bodies.hash(looped.body()),
        _ => panic!("one loop"),
    };
    assert_eq!(hash(&a, &one), hash(&b, &two));
}
