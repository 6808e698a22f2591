//! Worked examples: small strings, and the published tables of odd/even sort.

use lockstep_loops::{Bodies, Element, Mode, Names, expand, fold, reference};

/// Folds a string letter by letter and writes it as `L0^2 a`, with the loop table after it.
fn folded(text: &str, k: usize, mode: Mode) -> String {
    let mut bodies = Bodies::new();
    let sequence = fold(text.bytes().map(u32::from), k, mode, &mut bodies);
    let mut slow = Bodies::new();
    assert_eq!(
        sequence,
        reference::fold(text.bytes().map(u32::from), k, mode, &mut slow)
    );
    let mut again = String::new();
    expand(&sequence, &bodies, &mut |token| {
        again.push(token as u8 as char)
    });
    assert_eq!(again, text);
    let mut names = Names::new();
    names.scan(&sequence, &bodies);
    let letters: Vec<String> = (0..=127u8).map(|byte| (byte as char).to_string()).collect();
    let symbol = |token: u32| letters[token as usize].as_str();
    let mut out = names.tokens(&sequence, symbol).join(" ");
    for (number, body) in names.order().iter().enumerate() {
        let body = names.body(*body, &bodies, symbol).join(" ");
        out += &format!(", L{number}={body}");
    }
    out
}

#[test]
fn small_strings() {
    let same = [
        ("abab", "L0^2, L0=a b"),
        ("aaaa", "L0^4, L0=a"),
        ("ababa", "L0^2 a, L0=a b"),
        ("abcabcab", "L0^2 a b, L0=a b c"),
        ("abcabdabcabd", "L0^2, L0=a b c a b d"),
        ("", ""),
        ("a", "a"),
    ];
    for (text, expected) in same {
        assert_eq!(folded(text, 10, Mode::Exact), expected);
        assert_eq!(folded(text, 10, Mode::Shape), expected);
    }
    let exact = [
        ("aabaabaab", "L1^3, L0=a, L1=L0^2 b"),
        ("aaabaabaaab", "L0^3 L1^2 a b, L0=a, L1=b L0^2"),
        ("ababcababc", "L1^2, L0=a b, L1=L0^2 c"),
        ("aabbaabbaabb", "L2^3, L0=a, L1=b, L2=L0^2 L1^2"),
        ("abaababaab", "a b L0^2 L1^2 a b, L0=a, L1=b a"),
        ("aabaabbbb", "L1^2 L2^3, L0=a, L1=L0^2 b, L2=b"),
    ];
    for (text, expected) in exact {
        assert_eq!(folded(text, 10, Mode::Exact), expected, "{text}");
    }
    let shape = [
        ("aabaabaab", "L1^3, L0=a, L1=L0 b"),
        ("aaabaabaaab", "L1^3, L0=a, L1=L0 b"),
        ("ababcababc", "L1^2, L0=a b, L1=L0 c"),
        ("aabbaabbaabb", "L2^3, L0=a, L1=b, L2=L0 L1"),
        ("abaababaab", "a b L0^2 L1^2 a b, L0=a, L1=b a"),
        ("aabaabbbb", "L1^2 L2^3, L0=a, L1=L0 b, L2=b"),
    ];
    for (text, expected) in shape {
        assert_eq!(folded(text, 10, Mode::Shape), expected, "{text}");
    }
}

#[test]
fn the_longest_body_counts_elements() {
    for mode in [Mode::Exact, Mode::Shape] {
        assert_eq!(folded("abcdabcd", 3, mode), "a b c d a b c d");
        assert_eq!(folded("abcdabcd", 4, mode), "L0^2, L0=a b c d");
        assert_eq!(folded("aaaa", 0, mode), "a a a a");
    }
}

#[test]
fn trip_counts_are_kept_beside_the_shape() {
    let counts = |text: &str| {
        let mut bodies = Bodies::new();
        let sequence = fold(text.bytes().map(u32::from), 10, Mode::Shape, &mut bodies);
        let [Element::Loop(looped)] = sequence.as_slice() else {
            panic!("one loop")
        };
        (
            looped.count(),
            looped.inner()[0].counts.iter().collect::<Vec<_>>(),
        )
    };
    assert_eq!(counts("aaaabaabaaab"), (3, vec![4, 2, 3]));
    assert_eq!(counts("aaabaabaaab"), (3, vec![3, 2, 3]));
    assert_eq!(counts("aabaabaab"), (3, vec![2, 2, 2]));
    assert_eq!(counts("ababcababc"), (2, vec![2, 2]));
}

/// Tables 3.3 and 3.4 of the thesis, and the 16-rank runs of its figures 3.5 and 3.6: traces as they
/// are called, loops numbered over all of them.
#[test]
fn odd_even_sort() {
    let names = [
        "MPI_Init",
        "MPI_Comm_Rank",
        "MPI_Comm_Size",
        "MPI_Send",
        "MPI_Recv",
        "MPI_Finalize",
    ];
    let around = |middle: &[u32], finalize: bool| {
        let mut trace = vec![0, 1, 2];
        trace.extend(middle);
        trace.extend(finalize.then_some(5));
        trace
    };
    let (even, odd) = ([3, 4], [4, 3]);
    let fold_all = |traces: &[Vec<u32>]| {
        let mut bodies = Bodies::new();
        let mut loops = Names::new();
        let folded: Vec<Vec<Element>> = traces
            .iter()
            .map(|trace| fold(trace.iter().copied(), 10, Mode::Shape, &mut bodies))
            .collect();
        folded
            .iter()
            .for_each(|sequence| loops.scan(sequence, &bodies));
        let table: Vec<Vec<String>> = loops
            .order()
            .iter()
            .map(|body| loops.body(*body, &bodies, |token| names[token as usize]))
            .collect();
        let tokens: Vec<String> = folded
            .iter()
            .map(|sequence| {
                loops
                    .tokens(sequence, |token| names[token as usize])
                    .join(" ")
            })
            .collect();
        let families: Vec<u128> = loops
            .order()
            .iter()
            .map(|body| bodies.family(*body))
            .collect();
        assert!(
            families.windows(2).all(|pair| pair[0] == pair[1]),
            "one family"
        );
        (table, tokens)
    };

    // Ranks at the border of four have half of the exchanges.
    let four: Vec<Vec<u32>> = (0..4)
        .map(|rank| {
            let body = if rank % 2 == 0 { even } else { odd };
            around(
                &body.repeat(if rank == 0 || rank == 3 { 2 } else { 4 }),
                true,
            )
        })
        .collect();
    let (table, tokens) = fold_all(&four);
    assert_eq!(table, [["MPI_Send", "MPI_Recv"], ["MPI_Recv", "MPI_Send"]]);
    for (rank, looped) in ["L0^2", "L1^4", "L0^4", "L1^2"].iter().enumerate() {
        assert_eq!(
            tokens[rank],
            format!("MPI_Init MPI_Comm_Rank MPI_Comm_Size {looped} MPI_Finalize")
        );
    }

    let swapped = [odd.repeat(7), even.repeat(9)].concat();
    let stuck = [odd.repeat(7), vec![3]].concat();
    let (_, tokens) = fold_all(&[
        around(&even.repeat(16), true),
        around(&odd.repeat(16), true),
        around(&swapped, true),
        around(&stuck, false),
    ]);
    let start = "MPI_Init MPI_Comm_Rank MPI_Comm_Size";
    assert_eq!(tokens[1], format!("{start} L1^16 MPI_Finalize"));
    assert_eq!(tokens[2], format!("{start} L1^7 L0^9 MPI_Finalize"));
    assert_eq!(tokens[3], format!("{start} L1^7 MPI_Send"));
}
