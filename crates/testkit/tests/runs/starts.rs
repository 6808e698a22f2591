//! Forty starts of the campaign (`cargo xtask campaign starts` runs five thousand).

use lockstep_testkit::starts::Start;
use lockstep_testkit::{Recipe, Scratch, command, lockstep, mpi::Mpi, record, tools};

#[test]
fn every_rank_begins_to_record() {
    if !tools::require(&["gcc", "sh"]) {
        return;
    }
    let all: Vec<Mpi> = Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()).collect();
    let scratch = Scratch::new("starts");
    for number in 0..40 {
        let start = Start::draw(20_261_128, number, &all);
        assert_eq!(start.run(&scratch), None, "{start}");
    }
}

/// A file of zeros is a process that was ended before it began. Every command says so in the same words.
#[test]
fn a_process_that_never_began() {
    const NAME: &str = "processes/here-4000000-1-0.lockstep";
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("starts-zeros");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let run = record(&scratch, &[], &[program]).directory;
    std::fs::write(run.join(NAME), vec![0; 262_144]).expect("a file");
    let note = format!(
        "lockstep: {NAME}: byte 0: expected the header of a process file, found zeros: the process never began to record"
    );
    let run = run.display().to_string();
    let export = scratch.join("export").display().to_string();
    for words in [
        &["info"][..],
        &["info", "--json"],
        &["progress", "--json"],
        &["calls", "--json"],
        &["stack", "-t", "0.0"],
        &["export", "--to", "json", "-o", &export],
        &["export", "--to", "parquet", "--force", "-o", &export],
    ] {
        let words = [words, &[&run]].concat();
        let outcome = command::run(&mut lockstep(&words));
        assert_eq!(outcome.status, 0, "{words:?}: {outcome:#?}");
        let said = outcome.stderr.lines().filter(|line| *line == note).count();
        assert_eq!(said, 1, "{words:?}: {outcome:#?}");
    }
}
