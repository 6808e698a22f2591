//! The fast folding against the rules followed to the letter.

use lockstep_loops::{Bodies, Element, Folding, Mode, expand, fold, reference};
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
    #![proptest_config(ProptestConfig { cases: 50_000, ..ProptestConfig::default() })]

    #[test]
    fn fast_is_as_slow(tokens in strings(), k in 1usize..13) {
        check(&tokens, k, Mode::Shape)?;
        check(&tokens, k, Mode::Exact)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Bodies around and beyond the 64 elements that are looked at as bits, of many symbols.
    #[test]
    fn long_bodies_are_found_as_slowly(
        body in prop::collection::vec(0u32..300, 55..80),
        times in 2usize..4,
        before in prop::collection::vec(0u32..300, 0..3),
        k in 60usize..80,
    ) {
        let tokens = [before, body.repeat(times), body[..20].to_vec()].concat();
        check(&tokens, k, Mode::Shape)?;
        check(&tokens, k, Mode::Exact)?;
    }
}

/// Loops of random depth planted among letters, now and then broken by another letter, of tables and heights that the short
/// strings do not reach.
fn planted() -> impl Strategy<Value = Vec<u32>> {
    let letters = prop_oneof![Just(2u32), Just(3), Just(6), Just(40)];
    letters.prop_flat_map(|letters| {
        let part = prop::collection::vec(0..letters, 1..40).prop_recursive(4, 40, 4, |inner| {
            let parts = prop::collection::vec((inner, 1usize..6), 1..4);
            parts.prop_map(|parts| {
                let parts = parts.into_iter();
                parts
                    .flat_map(|(part, times)| part.repeat(times))
                    .take(600)
                    .collect()
            })
        });
        let broken = prop::collection::vec((0usize..3000, 0..letters), 0..4);
        (prop::collection::vec(part, 1..6), broken).prop_map(|(parts, broken)| {
            let mut tokens: Vec<u32> = parts.concat();
            for (place, letter) in broken {
                if let Some(token) = tokens.get_mut(place) {
                    *token = letter;
                }
            }
            tokens
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn planted_loops_fold_as_slowly(tokens in planted(), k in 1usize..=60) {
        check(&tokens, k, Mode::Shape)?;
        check(&tokens, k, Mode::Exact)?;
    }

    /// A symbol may be any number, those included that loops are told by.
    #[test]
    fn symbols_are_no_loops(tokens in strings(), k in 1usize..13) {
        let tokens: Vec<u32> = tokens.iter().map(|token| match token {
            0 => 0,
            _ => u32::MAX - (token - 1),
        }).collect();
        check(&tokens, k, Mode::Shape)?;
        check(&tokens, k, Mode::Exact)?;
    }
}

/// Numbers below a limit, the same in every run.
fn random(mut state: u64) -> impl FnMut(usize) -> usize {
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    }
}

/// Stacks of thousands of elements, that shrink by hundreds at once: all K.
#[test]
fn high_stacks_fold_as_slowly() {
    let mut below = random(7);
    for k in 1..=60 {
        let letters = [2, 3, 5, 50][k % 4];
        let body: Vec<u32> = (0..k).map(|_| below(letters) as u32).collect();
        let mut tokens = Vec::new();
        while tokens.len() < 900 {
            tokens.extend((0..below(200)).map(|_| below(letters) as u32));
            tokens.extend(body.repeat(1 + below(4)));
        }
        check(&tokens, k, Mode::Shape).expect("agreement");
        check(&tokens, k, Mode::Exact).expect("agreement");
    }
}

/// Loops in loops that go round for long, with other trip counts and other bodies each time: what was done on a stack before is
/// done again.
#[test]
fn long_programs_fold_as_slowly() {
    let mut below = random(11);
    for program in 0..60 {
        let letters = [2, 3, 6, 40][program % 4];
        let mut letter = || below(letters) as u32;
        let parts: Vec<Vec<u32>> = (0..6)
            .map(|part| (0..=part).map(|_| letter()).collect())
            .collect();
        let k = [1, 3, 10, 50, 70][program % 5];
        let mut tokens = Vec::new();
        while tokens.len() < 2_000 {
            let (outer, middle) = (&parts[below(6)], &parts[below(6)]);
            for _ in 0..below(40) {
                tokens.extend(outer);
                for _ in 0..[2, 5, 5, 9][below(4)] {
                    tokens.extend(middle);
                    tokens.extend(parts[below(2)].repeat(below(7)));
                }
            }
        }
        tokens.truncate(3_000);
        check(&tokens, k, Mode::Shape).expect("agreement");
        check(&tokens, k, Mode::Exact).expect("agreement");
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
    let hash = |sequence: &[Element], bodies: &Bodies| match sequence {
        [Element::Loop(looped)] => bodies.hash(looped.body()),
        _ => panic!("one loop"),
    };
    assert_eq!(hash(&a, &one), hash(&b, &two));
}

/// A program: tokens, and loops over programs.
#[derive(Debug, Clone)]
enum Part {
    Token(u32),
    Times(u64, Vec<Part>),
}

fn programs() -> impl Strategy<Value = Vec<Part>> {
    let token = (0u32..3).prop_map(Part::Token);
    let part = token.prop_recursive(4, 20, 4, |inner| {
        let body = prop::collection::vec(inner, 1..4);
        (1u64..9, body).prop_map(|(times, body)| Part::Times(times, body))
    });
    prop::collection::vec(part, 0..6)
}

fn push_all(parts: &[Part], folding: &mut Folding, bodies: &mut Bodies, pushed: &mut u64) {
    for part in parts {
        match part {
            Part::Token(token) => {
                *pushed += 1;
                folding.push(*token, bodies);
            }
            Part::Times(times, body) => {
                let mut left = *times;
                let mut repeat = folding.start();
                while left > 0 {
                    push_all(body, folding, bodies, pushed);
                    left = folding.repeat(&mut repeat, left - 1);
                }
            }
        }
    }
}

fn written_out(parts: &[Part], out: &mut Vec<u32>) {
    for part in parts {
        match part {
            Part::Token(token) => out.push(*token),
            Part::Times(times, body) => (0..*times).for_each(|_| written_out(body, out)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn repeating_is_as_pushing_again(program in programs(), k in 1usize..13, shape in any::<bool>()) {
        let mode = if shape { Mode::Shape } else { Mode::Exact };
        let mut tokens = Vec::new();
        written_out(&program, &mut tokens);
        let mut bodies = Bodies::new();
        let plain = fold(tokens.iter().copied(), k, mode, &mut bodies);
        let mut folding = Folding::new(k, mode);
        push_all(&program, &mut folding, &mut bodies, &mut 0);
        prop_assert_eq!(folding.finish(), plain);
    }
}

#[test]
fn many_iterations_cost_as_much_as_a_few() {
    let inner = Part::Times(1_000_000, vec![Part::Token(1), Part::Token(2)]);
    let program = [
        Part::Token(3),
        Part::Times(1_000_000_000, vec![inner, Part::Token(0)]),
    ];
    let (mut folding, mut pushed) = (Folding::new(10, Mode::Shape), 0);
    push_all(&program, &mut folding, &mut Bodies::new(), &mut pushed);
    assert!(pushed < 100, "{pushed} tokens pushed");
    let sequence = folding.finish();
    let [_, Element::Loop(looped)] = sequence.as_slice() else {
        panic!("a token and a loop")
    };
    assert_eq!(looped.count(), 1_000_000_000);
    assert_eq!(
        looped.inner()[0].counts.runs(),
        [(1_000_000, 1_000_000_000)]
    );
}
