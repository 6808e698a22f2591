//! Calls that left out what others of their function do.

use super::*;
use crate::tree_tests::tree;

fn unlike(text: &str) -> Option<(String, usize, Vec<String>)> {
    let mut forest = Forest::new();
    let root = tree(&mut forest, text);
    let missed = Missed {
        message: true,
        ..Missed::default()
    };
    let found = Habits::new(&forest, &[root])?.exception(root, &missed)?;
    let (name, nth) = found.frames.last()?.clone();
    Some((name, nth, found.left_out))
}

const ROUND: &str = "east( MPI_Recv MPI_Send ) work ";

#[test]
fn one_call_of_many_left_a_send_out() {
    let begin = ROUND.repeat(9);
    let left_out = Some(("east".to_owned(), 10, vec!["MPI_Send".to_owned()]));
    // Long ago, or just now.
    for rest in [ROUND.repeat(5), String::new()] {
        let text = format!("main( {begin} east( MPI_Recv ) {rest} east( MPI_Recv(");
        assert_eq!(unlike(&text), left_out);
    }
    // In frames of several callers.
    let step = "step( east( MPI_Send ) west( MPI_Recv ) ) ";
    let text = format!(
        "main( {} step( east( ) west( MPI_Recv ) ) step(",
        step.repeat(9)
    );
    let expected = Some(("east".to_owned(), 1, vec!["MPI_Send".to_owned()]));
    assert_eq!(unlike(&text), expected);
    // A function that goes two ways, turn by turn.
    let turns = "both( MPI_Send MPI_Send ) both( MPI_Recv MPI_Recv ) ".repeat(9);
    let text = format!("main( {turns} both( MPI_Send ) both( MPI_Recv MPI_Recv ) both(");
    assert!(unlike(&text).is_some_and(|it| it.1 == 19));
}

#[test]
fn the_call_that_is_open_left_a_send_out_on_its_way() {
    let step = "swap( MPI_Irecv MPI_Send MPI_Send MPI_Wait ) ";
    let begin = step.repeat(8);
    let expected = Some(("swap".to_owned(), 9, vec!["MPI_Send".to_owned()]));
    let cases = [
        ("swap( MPI_Irecv MPI_Send MPI_Wait(", expected.clone()),
        ("swap( MPI_Irecv MPI_Wait(", None),
        ("swap( MPI_Irecv MPI_Send MPI_Send(", None),
        ("swap( MPI_Irecv(", None),
        ("swap( MPI_Wait(", None),
    ];
    for (rest, expected) in cases {
        assert_eq!(unlike(&format!("main( {begin}{rest}")), expected, "{rest}");
    }
    let few = format!("main( {}swap( MPI_Irecv MPI_Send MPI_Wait(", step.repeat(7));
    assert_eq!(unlike(&few), None);
}

#[test]
fn a_collective_operation_takes_all_of_them() {
    let first = "residual( MPI_Allreduce ) ";
    let unlike = |own: &str| {
        let mut forest = Forest::new();
        let root = tree(
            &mut forest,
            &format!("main( {own} residual( ) take( MPI_Recv("),
        );
        let other = format!("main( {first} residual( MPI_Allreduce(");
        let other = tree(&mut forest, &other);
        let roots = [[root].as_slice(), &[other; 9]].concat();
        let collectives = BTreeSet::from(["MPI_Allreduce".into()]);
        let missed = Missed {
            collectives,
            ..Missed::default()
        };
        Habits::new(&forest, &roots)?.exception(root, &missed)
    };
    assert!(unlike(first).is_some_and(|it| it.left_out == ["MPI_Allreduce"]));
    assert_eq!(unlike(""), None);
}

/// A task within a grid sends to two, one on its border to one.
#[test]
fn what_others_do_often_may_be_an_exception_in_one() {
    let inner = "sweep( MPI_Send MPI_Send ) ".repeat(9);
    let slip = format!("main( {inner} sweep( MPI_Send ) {inner} take( MPI_Recv(");
    let border = format!("main( {} take( MPI_Recv(", "sweep( MPI_Send ) ".repeat(19));
    let unlike = |others: &[&str]| {
        let mut forest = Forest::new();
        let texts = [slip.as_str()].into_iter().chain(others.iter().copied());
        let roots: Vec<NodeId> = texts.map(|it| tree(&mut forest, it)).collect();
        let missed = Missed {
            message: true,
            ..Missed::default()
        };
        let all = Habits::new(&forest, &roots)?.exception(roots[0], &missed);
        assert_eq!(all, None);
        let found = Habits::own_exception(&forest, &roots, 0, &missed)?;
        found.frames.last().map(|it| it.1)
    };
    assert_eq!(unlike(&[&border]), Some(10));
    // Or itself, from elsewhere.
    let back = "back( sweep( MPI_Send ) ) ".repeat(9);
    let forth = "forth( sweep( MPI_Send MPI_Send ) ) ".repeat(9);
    let mut forest = Forest::new();
    let text = format!("main( {back} {forth} forth( sweep( MPI_Send ) ) take( MPI_Recv(");
    let root = tree(&mut forest, &text);
    let missed = Missed {
        message: true,
        ..Missed::default()
    };
    let found = Habits::own_exception(&forest, &[root], 0, &missed);
    let frames = found.map(|it| it.frames);
    let expected = [("main", 1), ("forth", 10), ("sweep", 1)];
    assert_eq!(
        frames,
        Some(expected.map(|it| (it.0.to_owned(), it.1)).to_vec())
    );
    // Another inner one goes that way now and then, too.
    let other = format!("main( {inner} {inner} sweep( MPI_Send ) take( MPI_Recv(");
    assert_eq!(unlike(&[&border, &other]), None);
    // Once in very many calls, and the slip is the last of its own.
    let unlike_at_the_end = |rounds: usize, since: &str| {
        let mut forest = Forest::new();
        let own = format!("main( {inner} sweep( MPI_Send ) {since} take( MPI_Recv(");
        let many = "sweep( MPI_Send MPI_Send ) ".repeat(rounds);
        let other = format!("main( {many} sweep( MPI_Send ) {many} take( MPI_Recv(");
        let roots = [&own, &border, &other].map(|it| tree(&mut forest, it));
        Habits::own_exception(&forest, &roots, 0, &missed).is_some()
    };
    assert!(unlike_at_the_end(40, ""));
    assert!(!unlike_at_the_end(40, &inner));
    assert!(!unlike_at_the_end(10, ""));
}

#[test]
fn what_is_no_habit_is_no_exception() {
    let begin = ROUND.repeat(9);
    let cases = [
        // All alike; too few; the first of them; two of them.
        format!("main( {begin} east( MPI_Recv("),
        format!("main( {} east( MPI_Recv ) east(", ROUND.repeat(7)),
        format!("main( east( MPI_Recv ) {begin} east("),
        format!("main( {begin} east( MPI_Recv ) {ROUND} east( MPI_Recv ) east("),
        // Less or more than one send.
        format!("main( {begin} east( MPI_Send ) east("),
        format!("main( {begin} east( ) east("),
        format!("main( {begin} east( MPI_Recv MPI_Send MPI_Send ) east("),
        // A function that goes now this way and now that.
        format!("main( {begin} east( MPI_Bcast ) east( MPI_Recv ) east("),
        // It is still there.
        format!("main( {begin} east( MPI_Recv("),
        // Two functions.
        format!(
            "main( {begin} east( MPI_Recv ) {} west( ) west(",
            "west( MPI_Send ) ".repeat(9)
        ),
    ];
    for text in cases {
        assert_eq!(unlike(&text), None, "{text}");
    }
}
