#![allow(clippy::unwrap_used)]
//! Tasks made of calls, and which of them is behind.

use crate::place::{Moment, Program, open};
use crate::tree_tests::tree;
use lockstep_calltree::Forest;
use std::cmp::Ordering::{self, Equal, Greater, Less};

fn compare(a: &str, b: &str, others: &[&str]) -> Option<Ordering> {
    let mut forest = Forest::new();
    let mut roots = vec![tree(&mut forest, a), tree(&mut forest, b)];
    for other in others {
        roots.push(tree(&mut forest, other));
    }
    let roots: Vec<Moment> = roots.into_iter().map(Moment::from).collect();
    let program = Program::new(&forest, &roots);
    let (a, b) = (program.coordinates(roots[0]), program.coordinates(roots[1]));
    let result = program.compare(&a, &b);
    let mirrored = program.compare(&b, &a);
    assert_eq!(result.map(Ordering::reverse), mirrored);
    result
}

#[test]
fn an_earlier_iteration_is_behind() {
    let a = format!("main( {} step( f!", "step( f g ) ".repeat(811));
    let b = format!("main( {} reduce!", "step( f g ) ".repeat(812));
    assert_eq!(compare(&a, &b, &[]), Some(Less));
}

/// Of a loop within one that is entered where it has no header.
#[test]
fn the_last_calls_are_counted_however_often_they_come() {
    let asks = |times: usize| format!("{} MPI_Irecv ", "MPI_Testany ".repeat(times));
    let text = |last: usize| {
        let before: String = [3, 1, 2, 7].map(asks).concat();
        format!(
            "main( MPI_Init {} {before} {} MPI_Testany!",
            "MPI_Irecv ".repeat(4),
            "MPI_Testany ".repeat(last)
        )
    };
    let at = |text: &str| {
        let mut forest = Forest::new();
        let moment = Moment::from(tree(&mut forest, text));
        Program::new(&forest, &[moment]).coordinates(moment)
    };
    // As walked one by one, and as multiplied.
    let (few, many) = (at(&text(2)), at(&text(50_000)));
    let turns = |it: &crate::place::Coordinates| it.levels[1].loops.clone();
    let (few, many) = (turns(&few), turns(&many));
    assert_eq!(few.len(), many.len());
    for (few, many) in few.iter().zip(&many) {
        let more = if few.index == 0 { 0 } else { 49_998 };
        assert_eq!(many.iteration, few.iteration + more);
        assert_eq!((many.index, many.entered), (few.index, few.entered));
    }
}

#[test]
fn what_leads_to_the_other_is_behind() {
    let whole = "main( step( f g ) reduce step( f g ) reduce )";
    assert_eq!(
        compare(
            "main( step( f g ) reduce step( f!",
            "main( step( f g ) reduce step( f g ) reduce!",
            &[whole]
        ),
        Some(Less)
    );
}

#[test]
fn arms_of_a_conditional_are_not_compared() {
    let ways = "main( a left b a right b a left b )";
    assert_eq!(compare("main( a left!", "main( a right!", &[ways]), None);
    assert_eq!(
        compare("main( a left!", "main( a right b!", &[ways]),
        Some(Less)
    );
}

#[test]
fn who_does_the_same_in_another_order_is_in_the_same_iteration() {
    let even = format!("main( {} send!", "send receive ".repeat(7));
    let odd = format!("main( {} receive!", "receive send ".repeat(7));
    assert_eq!(compare(&even, &odd, &[]), None);
    let later = format!("main( {} receive!", "receive send ".repeat(8));
    assert_eq!(compare(&even, &later, &[]), Some(Less));
}

#[test]
fn inner_counters_begin_again() {
    // A: outer 5, inner 2 (40 in all); B: outer 5, inner 3 (25 in all).
    let a = format!(
        "main( {} outer inner inner!",
        format!("outer {} ", "inner ".repeat(10)).repeat(4)
    );
    let b = format!(
        "main( {} outer inner inner inner!",
        format!("outer {} ", "inner ".repeat(5)).repeat(4)
    );
    assert_eq!(compare(&a, &b, &[]), Some(Less));
}

#[test]
fn calls_from_several_places_are_told_apart() {
    // Two exchanges a step, of which one rank left out one: not an iteration less.
    let steps = "step exchange compute exchange reduce ".repeat(9);
    let a = format!("main( {steps} step compute exchange reduce!");
    let b = format!("main( {steps} step exchange compute exchange reduce!");
    assert_eq!(compare(&a, &b, &[]), Some(Equal));
    let c = format!("main( {steps} step exchange!");
    assert_eq!(compare(&c, &b, &[]), Some(Less));
}

#[test]
fn the_same_place_is_equal() {
    let text = "main( step( f g ) step( f!";
    assert_eq!(compare(text, text, &[]), Some(Equal));
    assert_eq!(
        compare("main( step( f", "main( step( f!", &[]),
        Some(Greater)
    );
}

#[test]
fn trip_counts_cost_nothing_and_are_right() {
    for times in [1, 2, 3, 50] {
        let body = "outer inner inner inner ".repeat(times);
        let text = format!("main( start {body} outer inner!");
        let mut forest = Forest::new();
        let root = tree(&mut forest, &text);
        let program = Program::new(&forest, &[root.into()]);
        let standing = program.stand(root.into());
        let numbers = |loops: &[(String, u64)]| -> Vec<u64> {
            loops.iter().map(|(_, iteration)| *iteration).collect()
        };
        let expected = [times as u64 + 1, 1];
        assert_eq!(numbers(&program.loops(&standing.at)), expected, "{times}");
        assert_eq!(numbers(&standing.iterations), expected, "{times}");
    }
}

#[test]
fn a_moment_is_the_end_of_what_was_before_it() {
    let steps = "step( a a a b( c d c d ) e ) ".repeat(4);
    let text = format!("main( start {steps} step( a a b( {} c", "c d ".repeat(5));
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut forest = Forest::new();
    let whole = tree(&mut forest, &text);
    let mut event = 0;
    let mut moments = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let before = words[..index].join(" ");
        let (is_call, events) = match *word {
            ")" => (false, 1),
            _ if word.ends_with('(') => (true, 1),
            _ => (true, 2),
        };
        if is_call {
            let name = word.trim_end_matches('(');
            let root = tree(&mut forest, &format!("{before} {name}!"));
            moments.push((event, root));
        }
        event += events;
    }
    let program = Program::of_all(&forest);
    assert!(moments.len() > 50);
    for (event, root) in moments {
        let moment = Moment {
            root: whole,
            event: Some(event),
        };
        let found = program.coordinates(moment);
        assert_eq!(found, program.coordinates(root.into()), "event {event}");
        assert_eq!(open(&forest, moment), open(&forest, root.into()));
        assert_eq!(Program::new(&forest, &[moment]).coordinates(moment), found);
    }
}

#[test]
fn what_was_never_left_stands_before_what_usually_follows() {
    let steps = "step work reduce ".repeat(9);
    let a = format!("main( {steps} step work extra!");
    let b = format!("main( {steps} step work reduce!");
    assert_eq!(compare(&a, &b, &[]), Some(Less));
}

#[test]
fn what_was_never_left_may_be_in_a_loop_or_after_it() {
    let rounds = |times: usize, at: &str| format!("main( {}{at}!", "g a b ".repeat(times));
    // One call, or calls that go round.
    for last in ["z", "y x y x y"] {
        let last = rounds(9, last);
        assert_eq!(compare(&rounds(5, "g a"), &last, &[]), Some(Less), "{last}");
        assert_eq!(compare(&rounds(8, "g a"), &last, &[]), Some(Less), "{last}");
        assert_eq!(compare(&rounds(11, "g a"), &last, &[]), None, "{last}");
        // Who came to the end shows that it is after the loop.
        let over = format!("main( {}z y x y end )", "g a b ".repeat(9));
        assert_eq!(
            compare(&rounds(11, "g a"), &last, &[&over]),
            Some(Less),
            "{last}"
        );
    }
    // In the middle of an iteration the loop does not end.
    assert_eq!(
        compare(&rounds(9, "g a z"), &rounds(11, "g a"), &[]),
        Some(Less)
    );
}

/// Each comes through as many rounds of its own to what all are in.
#[test]
fn who_went_round_more_often_before_all_came_together_is_no_further() {
    let task = |rounds: usize, at: &str| format!("main( {}solve( {at}!", "init ".repeat(rounds));
    assert_eq!(compare(&task(3, "p"), &task(2, "p q"), &[]), Some(Less));
    // Who still goes round shows that solve may be called within.
    let other = "main( init init init init!";
    assert_eq!(compare(&task(3, "p"), &task(2, "p q"), &[other]), None);
}

#[test]
fn who_left_something_out_is_ahead_of_who_does_it() {
    let steps = "step barrier bcast reduce ".repeat(9);
    let a = format!("main( {steps} step barrier!");
    let b = format!("main( {steps} step bcast!");
    assert_eq!(compare(&a, &b, &[]), Some(Less));
}

const NONE: [u64; 0] = [];

/// What is said of the iterations of the first of some tasks, outermost loop first.
fn said(tasks: &[&str]) -> Vec<u64> {
    let mut forest = Forest::new();
    let roots = tasks.iter().map(|it| tree(&mut forest, it));
    let roots: Vec<Moment> = roots.map(Moment::from).collect();
    let program = Program::new(&forest, &roots);
    let iterations = program.stand(roots[0]).iterations;
    iterations.iter().map(|it| it.1).collect()
}

fn task(before: &[(&str, usize)], at: &str) -> String {
    let before = before
        .iter()
        .map(|(body, times)| format!("{body} ").repeat(*times));
    format!("main( start {} {at}!", before.collect::<String>())
}

#[test]
fn behind_a_loop_is_in_no_iteration() {
    let behind = task(&[("send receive", 20)], "finalize");
    assert_eq!(said(&[&behind]), NONE);
    // Nor is an arm that nobody took before, for all that is known.
    let other = task(&[("send receive", 25)], "send");
    assert_eq!(said(&[&behind, &other]), NONE);
    // Whoever is in the loop still is.
    let still = task(&[("send receive", 20)], "send");
    assert_eq!(said(&[&still, &behind]), [21]);
    // But if somebody came round from it.
    let inside = task(&[("send receive", 20)], "send arm");
    assert_eq!(said(&[&inside]), NONE);
    let other = task(&[("send receive", 22), ("send arm receive", 1)], "send");
    assert_eq!(said(&[&inside, &other]), [21]);
    assert_eq!(said(&[&other]), [24]);
}

#[test]
fn between_calls_it_is_known_only_in_the_middle() {
    let rest = |rounds, last: &str| {
        let body = "first middle last ".repeat(rounds);
        said(&[&format!("main( start {body} {last}")])
    };
    assert_eq!(rest(4, "first"), [5]);
    assert_eq!(rest(4, "first middle last"), NONE);
}

#[test]
fn a_round_is_counted_once_whatever_it_is_entered_by() {
    let sends = task(&[("send wait", 6)], "send");
    let receives = task(&[("receive wait", 6)], "receive");
    let both = |rounds| task(&[("send wait receive wait", rounds)], "send");
    assert_eq!(said(&[&both(6), &sends, &receives]), [7]);
    assert_eq!(said(&[&sends, &both(6), &receives]), [7]);
    assert_eq!(said(&[&receives, &both(6), &sends]), [7]);
    // Arms, which it takes as it comes, or a loop in the loop: 9, or 4.
    let turns = task(
        &[
            ("send wait", 2),
            ("receive wait", 3),
            ("send wait", 1),
            ("receive wait", 2),
        ],
        "send",
    );
    assert_eq!(said(&[&turns, &sends, &receives]), NONE);
}

#[test]
fn a_loop_that_begins_with_a_loop_has_rounds_that_are_alike() {
    let alike = task(&[("a a a b", 3), ("a", 1)], "a");
    assert_eq!(said(&[&alike]), [4, 2]);
    // A loop in a loop, or a condition.
    let unlike = task(&[("a a a b a a b a a a a b a", 1)], "a");
    assert_eq!(said(&[&unlike]), NONE);
    let first = task(&[("a", 5)], "a");
    assert_eq!(said(&[&first, &alike]), [6]);
}

#[test]
fn conditions_do_not_change_the_count() {
    let body = "a b c a c a c a b c a c a c ";
    assert_eq!(said(&[&format!("main( {body} a c!")]), [7]);
    assert_eq!(said(&[&format!("main( {body} a b!")]), [7]);
    let rounds = [("a c", 1), ("a b c", 1), ("a c", 5)];
    assert_eq!(said(&[&task(&rounds, "a")]), [8]);
}

#[test]
fn a_second_loop_begins_anew() {
    for (rounds, expected) in [(1, 2), (2, 3), (5, 6)] {
        let before = [("a b", 6), ("c b", rounds)];
        let other = task(&[("a b", 6), ("c b", 9)], "c");
        for at in ["c", "c b"] {
            assert_eq!(said(&[&task(&before, at), &other]), [expected], "{at}");
        }
    }
    // The same calls in both: whether the last of the first loop are those of the second, calls do not tell.
    let other = task(&[("g x y z", 6), ("h x y z", 9)], "h");
    for at in ["h", "h x", "h x y", "h x y z"] {
        let task = task(&[("g x y z", 6), ("h x y z", 3)], at);
        let said = said(&[&task, &other]);
        assert!(said.is_empty() || said == [4], "{at}: {said:?}");
    }
}

/// Who prints first comes to the solver, too, which nobody has left yet.
#[test]
fn a_call_that_nobody_left_is_one_place() {
    let waits = "solve( exchange( MPI_Send MPI_Wait!";
    let reduces = "solve( exchange( MPI_Send MPI_Wait ) dot MPI_Allreduce!";
    for (one, other) in [
        ("read", "read"),
        ("read print", "read"),
        ("read", "read print"),
        ("read print flush", "read"),
        ("read print", "read flush"),
    ] {
        let (a, b) = (
            format!("main( {one} {waits}"),
            format!("main( {other} {reduces}"),
        );
        assert_eq!(compare(&a, &b, &[]), Some(Less), "{one}, {other}");
    }
}
