//! Programs after public reports: what is right of three of them. A sample of `cargo xtask campaign reports`.

use lockstep_testkit::Scratch;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::reports::{Report, reports};

fn report(program: &str) -> Report {
    let all = reports().expect("the table and the sources can be read");
    let found = all.into_iter().find(|it| it.program == program);
    found.expect("it is in the table")
}

fn is_told(program: &str) {
    let Some(mpi) = Mpi::ALL.into_iter().find(|it| it.is_here()) else {
        return;
    };
    let scratch = Scratch::new("reports");
    let _turn = a_turn();
    let Some(answers) = report(program).ask(mpi, &scratch) else {
        return;
    };
    assert!(answers.healthy, "{answers:#?}");
    assert!(answers.alone.is_right(), "{answers:#?}");
    assert_ne!(answers.change(), "worse", "{answers:#?}");
}

#[test]
fn the_table_has_forty_programs_with_their_sources() {
    let all = reports().expect("the table and the sources can be read");
    assert_eq!(all.len(), 40);
}

#[test]
fn a_rank_that_leaves_a_loop_of_collectives_early_is_told() {
    is_told("read_rounds.c");
}

#[test]
fn a_rank_that_waits_for_a_message_of_one_that_sends_none_is_told() {
    is_told("interface25.f90");
}

#[test]
fn a_thread_that_takes_a_lock_twice_is_told() {
    is_told("read_twice.c");
}
