#![allow(clippy::unwrap_used)]

#[path = "../../../tests/comparisons/words/mod.rs"]
mod words;

use super::edit::{Edit, elements, iteration, mirrored};
use super::lines::LineKind;
use super::*;
use proptest::prelude::*;
use words::tree;

fn lines(normal: &str, faulty: &str) -> Vec<String> {
    let mut forest = Forest::new();
    let (a, b) = (tree(&mut forest, normal), tree(&mut forest, faulty));
    let mut names = Names::new();
    // As among the traces of odd/even sort: rank 0 comes first.
    let even = tree(&mut forest, "2[ Send Recv ]");
    for root in [even, a, b] {
        forest.name_loops(root, &mut names);
    }
    let diff = Diff {
        equal: false,
        first_divergence: None,
        ops: diff_trees(&forest, a, b, &names),
        loops: Vec::new(),
        normal_open: Vec::new(),
        faulty_open: Vec::new(),
        builds: None,
        left_out: None,
    };
    let sign = |kind| match kind {
        LineKind::Common => '=',
        LineKind::Normal => '-',
        LineKind::Faulty => '+',
        LineKind::Changed => '~',
    };
    diff.lines()
        .into_iter()
        .map(|line| {
            format!(
                "{}{} {}",
                "  ".repeat(line.depth),
                sign(line.kind),
                line.text
            )
        })
        .collect()
}

#[test]
fn swap_bug() {
    let found = lines(
        "Init Rank Size 16[ Recv Send ] Fin",
        "Init Rank Size 7[ Recv Send ] 9[ Send Recv ] Fin",
    );
    assert_eq!(
        found,
        [
            "= Init",
            "= Rank",
            "= Size",
            "= L1^7",
            "~ iterations 8-16: L1 [Recv Send] -> L0 [Send Recv] x9 (rotation)",
            "= Fin",
        ]
    );
}

#[test]
fn deadlock_bug() {
    let found = lines(
        "Init Rank Size 16[ Recv Send ] Fin",
        "Init Rank Size 7[ Recv Send ] Send(",
    );
    assert_eq!(
        found,
        [
            "= Init",
            "= Rank",
            "= Size",
            "~ L1: 16 -> 7  [Recv Send]",
            "- Fin",
            "+ Send  (never returned)",
        ]
    );
}

#[test]
fn missing_critical_section() {
    let found = lines(
        "main( 50[ exec( 3[ twoopt ] ) critical_start memcpy critical_end ] )",
        "main( 50[ exec( 3[ twoopt ] ) memcpy ] )",
    );
    assert_eq!(
        found,
        [
            "~ main",
            "  ~ iterations 1-50: L2 [exec critical_start memcpy critical_end] -> L3 [exec memcpy] x50",
        ]
    );
}

#[test]
fn counts_within_calls_within_loops() {
    let found = lines(
        "main( 5[ f( 3[ a ] ) g ] h )",
        "main( 2[ f( 3[ a ] ) g ] 2[ f( 4[ a ] ) g ] f( 3[ a ] ) g h )",
    );
    assert_eq!(
        found,
        [
            "~ main",
            "  ~ in 2 iterations of L2, first in iteration 3",
            "    ~ f",
            "      ~ L1: 3 -> 4  [a]",
            "    = g",
            "  = h",
        ]
    );
    assert!(lines("main( 5[ a ] )", "main( 5[ a ] )").is_empty());
}

#[test]
fn a_change_within_the_calls_of_later_iterations() {
    let before = "find exchange( recv send ) high find exchange( recv send ) low";
    let after = "find exchange( send recv ) high find exchange( send recv ) low";
    let exchange = [
        "  ~ in 5 iterations of L1, first in iteration 4",
        "    = find",
        "    ~ exchange",
        "      - recv",
        "      = send",
        "      + recv",
        "    = high",
        "    = find",
        "    ~ exchange",
        "      - recv",
        "      = send",
        "      + recv",
        "    = low",
    ];
    let found = lines(
        &format!("sort( 8[ {before} ] )"),
        &format!("sort( 3[ {before} ] 5[ {after} ] )"),
    );
    assert_eq!(found[..2], ["~ sort", "  = L1^3"]);
    assert_eq!(found[2..], exchange);
    let stuck = lines(
        &format!("sort( 8[ {before} ] )"),
        &format!("sort( 3[ {before} ] find exchange( recv send ) high find exchange( send("),
    );
    assert_eq!(
        stuck,
        [
            "~ sort  (never returned in the faulty run)",
            "  = L1^3",
            "  ~ in iteration 4 of L1",
            "    = find",
            "    = exchange",
            "    = high",
            "    = find",
            "    ~ exchange  (never returned in the faulty run)",
            "      - recv",
            "      ~ send  (never returned in the faulty run)",
            "    - low",
            "  ~ L1: 8 -> 4  [find exchange high find exchange low]",
        ]
    );
}

/// Test threads have small stacks.
#[test]
fn a_runaway_recursion_is_compared_as_far_as_it_can_be_told() {
    let deep = |depth: usize, last: &str| format!("{}{last} ", "f( x ".repeat(depth));
    assert!(lines(&deep(20_000, "a"), &deep(20_000, "b")).len() > 100);
    assert!(lines(&deep(20_000, "a"), &deep(30_000, "a")).len() > 100);
    let mut forest = Forest::new();
    let a = tree(&mut forest, &deep(20_000, "a"));
    let b = tree(&mut forest, &deep(30_000, "b"));
    let (a, b) = (Side::whole(a), Side::whole(b));
    let trace = TraceName::new(0, 0);
    let found = first_divergence(&forest, trace, a, b, None, &Names::new());
    assert_eq!(found.structure.unwrap().stack.len(), 20_000);
}

#[test]
fn long_equal_parts_are_cut_short() {
    let many: Vec<String> = (0..100).map(|number| format!("f{number}")).collect();
    let many = many.join(" ");
    let found = lines(&format!("{many} x"), &format!("{many} y"));
    assert_eq!(found.len(), 11);
    assert_eq!(found[4], "= ... 92 more");
    assert_eq!(found[9..], ["- x", "+ y"]);
}

#[test]
fn flat_entries() {
    let list = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
    let normal = list("Init Rank Size L1^16 Fin");
    let faulty = list("Init Rank Size L1^7 Send");
    let found = flat::entries(&normal, &faulty, true);
    let tokens = |text: &str| list(text);
    assert_eq!(
        found,
        [
            Op::Equal {
                tokens: tokens("Init Rank Size")
            },
            Op::Normal {
                tokens: tokens("L1^16 Fin")
            },
            Op::Faulty {
                tokens: tokens("L1^7 Send"),
                open: true
            },
        ]
    );
    assert!(flat::entries(&normal, &normal, true).is_empty());
}

/// What edits make of a list: checks that they take exactly that list, and gives the other.
fn apply(forest: &Forest, edits: &[Edit], list: &[NodeId]) -> Vec<NodeId> {
    let mut rest = list;
    let mut out = Vec::new();
    let mut take = |nodes: &[NodeId]| {
        assert!(rest.starts_with(nodes));
        rest = &rest[nodes.len()..];
    };
    for edit in edits {
        match edit {
            Edit::Equal(nodes) => {
                take(nodes);
                out.extend(nodes);
            }
            Edit::Normal(nodes) => take(nodes),
            Edit::Faulty(nodes) => out.extend(nodes),
            Edit::Counts(a, b) => {
                assert_eq!(forest.shape(*a), forest.shape(*b));
                take(&[*a]);
                out.push(*b);
            }
            Edit::Call(a, b, edits) => {
                take(&[*a]);
                let inner = apply(forest, edits, &elements(forest, *a, false));
                assert_eq!(inner, elements(forest, *b, false));
                out.push(*b);
            }
            Edit::Body(a, b, edits) => {
                take(&[*a]);
                let inner = apply(forest, edits, &iteration(forest, *a));
                assert_eq!(inner, iteration(forest, *b));
                out.push(*b);
            }
            Edit::Continued(continued) => {
                let mut nodes: Vec<NodeId> = continued.kept.into_iter().collect();
                nodes.extend(&continued.nodes);
                let body = iteration(forest, continued.looped);
                if continued.in_faulty {
                    take(&[continued.looped]);
                    out.extend(nodes);
                    assert_eq!(apply(forest, &continued.edits, &body), continued.first);
                } else {
                    take(&nodes);
                    out.push(continued.looped);
                    assert_eq!(apply(forest, &continued.edits, &continued.first), body);
                }
            }
            Edit::Split(split) => {
                let both = |one, other| {
                    if split.after {
                        [one, other]
                    } else {
                        [other, one]
                    }
                };
                let (from, to) = if split.in_faulty {
                    take(&[split.normal]);
                    out.extend(both(split.faulty, split.other));
                    (split.normal, split.other)
                } else {
                    take(&both(split.normal, split.other));
                    out.push(split.faulty);
                    (split.other, split.faulty)
                };
                let inner = apply(forest, &split.edits, &iteration(forest, from));
                assert_eq!(inner, iteration(forest, to));
            }
        }
    }
    assert!(rest.is_empty());
    out
}

/// Random programs as text.
fn programs() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
    let part = leaf.prop_recursive(4, 24, 4, |inner| {
        let body = prop::collection::vec(inner, 1..4).prop_map(|parts| parts.join(" "));
        prop_oneof![
            (prop::sample::select(vec!["f", "g"]), body.clone())
                .prop_map(|(f, body)| format!("{f}( {body} )")),
            (1u32..6, body).prop_map(|(times, body)| format!("{times}[ {body} ]")),
        ]
    });
    (prop::collection::vec(part, 0..6), any::<bool>()).prop_map(|(parts, open)| {
        format!("main( {} {}", parts.join(" "), if open { "" } else { ")" })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn edits_lead_from_one_to_the_other(normal in programs(), faulty in programs()) {
        let mut forest = Forest::new();
        let (a, b) = (tree(&mut forest, &normal), tree(&mut forest, &faulty));
        let there = Aligner::new(&forest).traces(a, b);
        let (list_a, list_b) = (elements(&forest, a, false), elements(&forest, b, false));
        if a == b {
            prop_assert!(there.is_empty());
        } else {
            prop_assert_eq!(apply(&forest, &there, &list_a), list_b.clone());
        }
        let back = Aligner::new(&forest).traces(b, a);
        prop_assert_eq!(&mirrored(&there), &back);
        prop_assert_eq!(mirrored(&back), there);
        let mut names = Names::new();
        forest.name_loops(a, &mut names);
        forest.name_loops(b, &mut names);
        let ops = diff_trees(&forest, a, b, &names);
        prop_assert_eq!(ops.is_empty(), a == b);
        let json = serde_json::to_string(&ops).unwrap();
        prop_assert!(!json.contains("L?"));
    }

    #[test]
    fn flat_is_mirrored(a in prop::collection::vec("[abc]", 0..12), b in prop::collection::vec("[abc]", 0..12)) {
        let tokens = |ops: &[Op], normal: bool| -> Vec<String> {
            ops.iter()
                .flat_map(|op| match op {
                    Op::Equal { tokens } => tokens.clone(),
                    Op::Normal { tokens } if normal => tokens.clone(),
                    Op::Faulty { tokens, .. } if !normal => tokens.clone(),
                    _ => Vec::new(),
                })
                .collect()
        };
        let there = flat::entries(&a, &b, false);
        let back = flat::entries(&b, &a, false);
        if a != b {
            prop_assert_eq!(tokens(&there, true), a);
            prop_assert_eq!(tokens(&there, false), b);
        }
        let turned: Vec<Op> = {
            let mut ops: Vec<Op> = back
                .into_iter()
                .map(|op| match op {
                    Op::Normal { tokens } => Op::Faulty { tokens, open: false },
                    Op::Faulty { tokens, .. } => Op::Normal { tokens },
                    op => op,
                })
                .collect();
            for index in 1..ops.len() {
                if matches!((&ops[index - 1], &ops[index]), (Op::Faulty { .. }, Op::Normal { .. })) {
                    ops.swap(index - 1, index);
                }
            }
            ops
        };
        prop_assert_eq!(turned, there);
    }
}
