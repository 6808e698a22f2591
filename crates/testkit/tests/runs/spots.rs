//! Where a rank is that computes while others wait for it: the lines of its loop, which no trace shows. It goes on unharmed.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recording, Scratch, command, record};
use serde_json::json;

const HANG: [&str; 4] = ["--hang", "2", "--verdict", "60"];

/// The sentence ends with lines of the loop.
fn check(told: &str, verb: &str) {
    const SOURCE: &str = include_str!("../../../../programs/mpi/spins.c");
    let line = |text: &str| {
        let mut lines = SOURCE.lines().zip(1..);
        let found = lines.find(|it| it.0.contains(text));
        found.expect("a line").1
    };
    let range: std::ops::RangeInclusive<u32> = line("// first")..=line("// last");
    let head = format!("; rank 2 {verb} at spins.c:");
    let (_, lines) = told.split_once(&head).expect(told);
    let word = |c: char| !(c.is_ascii_digit() || c == '-');
    let lines = lines.split(word).next().expect(told).split('-');
    for line in lines.map(|it| it.parse::<u32>().expect(told)) {
        assert!(range.contains(&line), "{told}");
    }
}

/// It was said that rank 2 is slow so far, and then that it went on; the finished run says so, too.
fn went_on(recording: &Recording) {
    let told = &recording.outcome.stderr;
    assert!(told.contains(": slow so far; rank 2 runs at "), "{told}");
    assert!(!told.contains("look there"), "{told}");
    assert_eq!(told.matches("s: rank 2 was slow for ").count(), 1, "{told}");
    let progress = recording.json(&["progress"]);
    assert_eq!(progress["hang"], false, "{progress:#}");
    assert_eq!(progress["went_on"]["tasks"], json!([2]), "{progress:#}");
    let seconds = progress["went_on"]["seconds"].as_f64().expect("a time");
    assert!((2.0..60.0).contains(&seconds), "{progress:#}");
    let verdict = progress["verdict"].as_str().expect("a sentence");
    assert!(verdict.ends_with(" s and went on"), "{verdict}");
    let last = told.lines().last().expect("a line");
    assert!(
        last.starts_with(&format!("lockstep: {verdict}. Next: ")),
        "{told}"
    );
}

#[test]
fn the_lines_of_a_loop_without_a_call() {
    let scratch = Scratch::new("spots");
    let _turn = a_turn();
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("spins.c").flags(&["-g", "-O2"]).build();
        let program = [program.display().to_string(), "9".to_owned()];
        let mut around = mpi.launch(4);
        around.extend(program.clone());
        let recording = record(&scratch, &HANG, &around);
        let outcome = &recording.outcome;
        assert_eq!(outcome.status, 0, "{mpi:?}: {outcome:#?}");
        assert_eq!(outcome.stdout, "well\n", "{mpi:?}: {outcome:#?}");
        check(&outcome.stderr, "runs");
        went_on(&recording);
        // Each rank's recorder is its parent here, and waits for it.
        let run = scratch.join("inside");
        let recorded = record_command(&run, &HANG, &program);
        let outcome = command::run(&mut command::behind(mpi.launch(4), &recorded));
        assert_eq!(outcome.status, 0, "{mpi:?}: {outcome:#?}");
        assert_eq!(outcome.stdout, "well\n", "{mpi:?}: {outcome:#?}");
        check(&outcome.stderr, "runs");
        std::fs::remove_dir_all(&run).expect("a run");
    }
}

#[test]
fn what_was_seen_is_told_when_it_is_over() {
    let scratch = Scratch::new("spots-kept");
    let _turn = a_turn();
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return;
    };
    let program = mpi.recipe("spins.c").flags(&["-g", "-O2"]).build();
    let mut words = mpi.launch(4);
    words.extend([program.display().to_string(), "60".to_owned()]);
    let recording: Recording = record(&scratch, &["--hang", "2", "--on-hang", "stop"], &words);
    assert_eq!(recording.outcome.status, 1, "{:#?}", recording.outcome);
    let progress = recording.json(&["progress"]);
    check(progress["verdict"].as_str().expect("a sentence"), "ran");
}
