//! What tasks left out, by their trees and those of normal ones.

use super::{Departure, departure, unlike_before};
use crate::tree_tests::tree;
use lockstep_calltree::Forest;

fn between(normal: &str, other: &str) -> Option<Departure> {
    let mut forest = Forest::new();
    let (a, b) = (tree(&mut forest, normal), tree(&mut forest, other));
    departure(&forest, a, b)
}

fn words(found: Option<Departure>) -> Option<(String, String, String)> {
    found.map(|it| {
        let frames: Vec<String> = it
            .frames
            .iter()
            .map(|(name, nth)| format!("{name}#{nth}"))
            .collect();
        (
            frames.join(" "),
            it.left_out.join(" "),
            it.instead.join(" "),
        )
    })
}

fn some(frames: &str, left_out: &str, instead: &str) -> Option<(String, String, String)> {
    Some((frames.to_owned(), left_out.to_owned(), instead.to_owned()))
}

#[test]
fn who_only_stopped_left_nothing_out() {
    let normal = "main( step( send receive ) step( send receive ) end )";
    assert_eq!(
        between(normal, "main( step( send receive ) step( send!"),
        None
    );
    assert_eq!(between(normal, "main( step( send receive ) step("), None);
    assert_eq!(between(normal, "main("), None);
    assert_eq!(between(normal, normal), None);
}

#[test]
fn what_was_left_out_is_named_with_its_place() {
    let normal = "main( step( post MPI_Isend wait ) step( post MPI_Isend wait ) MPI_Barrier )";
    let found = between(
        normal,
        "main( step( post MPI_Isend wait ) step( post wait ) MPI_Barrier(",
    );
    assert_eq!(words(found), some("main#1 step#2", "MPI_Isend", ""));
    let found = between(normal, "main( step( post MPI_Isend wait ) MPI_Barrier(");
    assert_eq!(words(found), some("main#1", "step", ""));
    let found = between(
        normal,
        "main( step( post MPI_Isend wait ) step( post ) MPI_Barrier(",
    );
    assert_eq!(words(found), some("main#1 step#2", "MPI_Isend", ""));
    let found = between(
        normal,
        "main( step( post MPI_Isend wait ) step( post MPI_Recv(",
    );
    assert_eq!(words(found), some("main#1 step#2", "MPI_Isend", "MPI_Recv"));
}

#[test]
fn own_calls_may_be_fewer_and_messages_may_not() {
    let normal = "main( work work work MPI_Send MPI_Send MPI_Send end )";
    assert_eq!(
        between(normal, "main( work MPI_Send MPI_Send MPI_Send end )"),
        None
    );
    assert_eq!(
        between(
            normal,
            "main( work work work work MPI_Send MPI_Send MPI_Send end )"
        ),
        None
    );
    let found = between(normal, "main( work work work MPI_Send MPI_Send end )");
    assert_eq!(words(found), some("main#1", "MPI_Send", ""));
}

#[test]
fn a_polling_loop_is_as_long_as_it_is() {
    let normal = "main( MPI_Test MPI_Test MPI_Test use )";
    assert_eq!(between(normal, "main( MPI_Test use )"), None);
}

#[test]
fn habits_tell_without_a_normal_run() {
    let before = "step( post MPI_Isend wait ) MPI_Barrier ".repeat(5);
    let mut forest = Forest::new();
    let skipped = tree(
        &mut forest,
        &format!("main( {before} step( post wait ) MPI_Barrier("),
    );
    let found = unlike_before(&forest, skipped);
    assert_eq!(words(found), some("main#1 step#6", "MPI_Isend", ""));
    let same = tree(
        &mut forest,
        &format!("main( {before} step( post MPI_Isend wait ) MPI_Barrier("),
    );
    assert_eq!(unlike_before(&forest, same), None);
    // Every second call is another: no habit.
    let varied = "step( a MPI_Isend ) step( a ) ".repeat(4);
    let varied = tree(
        &mut forest,
        &format!("main( {varied} step( a MPI_Isend ) step( a ) MPI_Barrier("),
    );
    assert_eq!(unlike_before(&forest, varied), None);
}

#[test]
fn the_last_round_of_a_loop_left_a_send_out() {
    let unlike = |text: &str| {
        let mut forest = Forest::new();
        let root = tree(&mut forest, text);
        words(unlike_before(&forest, root))
    };
    let round = "MPI_Recv work MPI_Send ";
    let begin = |count: usize| format!("main( worker( {}", round.repeat(count));
    let found = unlike(&(begin(3) + "MPI_Recv work MPI_Recv("));
    assert_eq!(found, some("main#1 worker#1", "MPI_Send", ""));
    assert_eq!(unlike(&(begin(2) + "MPI_Recv work MPI_Recv(")), None);
    assert_eq!(unlike(&(begin(4) + "MPI_Recv(")), None);
    // What own functions do is theirs, and what comes besides is another matter.
    let found = unlike(&(begin(3) + "MPI_Recv work MPI_Send MPI_Bcast MPI_Recv("));
    assert_eq!(found, None);
    let master = "MPI_Recv hand_out( MPI_Send ) ".repeat(4);
    let found = unlike(&format!("main( {master} MPI_Recv MPI_Recv("));
    assert_eq!(found, None);
}

#[test]
fn a_loop_may_have_more_rounds_or_fewer() {
    let round = "MPI_Recv work MPI_Send ";
    let of = |rounds: usize, end: &str| format!("main( {}{end}", round.repeat(rounds));
    let rounds = |normal: &str, other: &str| between(normal, other).map(|it| it.rounds);
    let normal = of(3, "MPI_Recv MPI_Barrier )");
    // More, whether it is within one, at the end of one, or past the loop; and fewer.
    assert_eq!(rounds(&normal, &of(4, "MPI_Recv(")), Some(true));
    assert_eq!(
        rounds(&normal, &of(4, "MPI_Recv work MPI_Send(")),
        Some(true)
    );
    assert_eq!(rounds(&normal, &of(5, "MPI_Recv MPI_Barrier(")), Some(true));
    assert_eq!(rounds(&normal, &of(2, "MPI_Recv MPI_Barrier(")), Some(true));
    assert_eq!(rounds(&normal, &of(2, "MPI_Recv(")), None);
    // Not whole ones.
    assert_eq!(
        rounds(&normal, &of(2, "MPI_Recv work MPI_Recv(")),
        Some(false)
    );
    assert_eq!(
        rounds(&normal, &of(3, "MPI_Recv work MPI_Recv(")),
        Some(false)
    );
    assert_eq!(
        rounds(&normal, &of(4, "MPI_Recv work MPI_Recv(")),
        Some(false)
    );
}

#[test]
fn who_asks_still_is_not_ahead() {
    let of = |asked: usize, end: &str| format!("main( {}{end}", "MPI_Iprobe work ".repeat(asked));
    let normal = of(3, "MPI_Recv MPI_Iprobe work MPI_Recv MPI_Barrier )");
    assert_eq!(between(&normal, &of(9, "MPI_Iprobe(")), None);
    assert_eq!(between(&normal, &of(9, "")), None);
    // It went on to what is none of it; what was left out before it began to ask is.
    let found = words(between(&normal, &of(3, "MPI_Barrier(")));
    assert_eq!(found, some("main#1", "MPI_Recv MPI_Recv", ""));
    let normal = format!("main( MPI_Send {} MPI_Recv )", of(3, ""));
    let normal = normal.replace("main( MPI_Send main(", "main( MPI_Send");
    let found = words(between(&normal, &of(9, "MPI_Iprobe(")));
    assert_eq!(found, some("main#1", "MPI_Send", ""));
}

/// A step of another sort has nothing to do with a message that is missing: in the frames within may be what has.
#[test]
fn what_communicates_nothing_is_no_cause() {
    let unlike = |last: &str| {
        let step = "step( compute( plain ) send( MPI_Send ) ) ";
        let mut forest = Forest::new();
        let root = tree(
            &mut forest,
            &format!("main( {} {last} check( MPI_Barrier(", step.repeat(4)),
        );
        words(unlike_before(&forest, root))
    };
    assert_eq!(unlike("step( compute( tally ) send( MPI_Send ) )"), None);
    let found = unlike("step( compute( plain ) send( ) )");
    assert_eq!(found, some("main#1 step#5 send#1", "MPI_Send", ""));
}
