//! What `record` says last: what `progress` makes of the run, and which command shows more. It changes neither the program's
//! output nor its status.

use lockstep_testkit::command::{self, Running};
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::record_command;
use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};
use std::time::Duration;

/// Long enough for any answer.
const OPTIONS: [&str; 2] = ["--verdict", "60"];

/// The last line says what `progress` does, and names this command.
fn check(recording: &Recording, next: &str) -> String {
    let progress = recording.json(&["progress"]);
    let verdict = progress["verdict"].as_str().expect("a sentence").to_owned();
    let directory = recording.directory.display();
    let last = recording.outcome.stderr.lines().last();
    let expected = format!("lockstep: {verdict}. Next: lockstep {next} {directory}");
    assert_eq!(last, Some(expected.as_str()), "{:#?}", recording.outcome);
    verdict
}

#[test]
fn how_a_program_without_mpi_ended() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("concluded");
    let well = record(
        &scratch,
        &OPTIONS,
        &[Recipe::new("c/leaf_calls.c").flag("-O0").build()],
    );
    assert_eq!(well.outcome.status, 0, "{:#?}", well.outcome);
    check(&well, "calls");
    let crashed = record(&scratch, &OPTIONS, &["sh", "-c", "kill -SEGV $$"]);
    assert_eq!(crashed.outcome.status, 139, "{:#?}", crashed.outcome);
    let verdict = check(&crashed, "progress");
    assert!(verdict.contains("signal 11"), "{verdict}");
    let amiss = record(&scratch, &OPTIONS, &["sh", "-c", "exit 3"]);
    assert_eq!(amiss.outcome.status, 3, "{:#?}", amiss.outcome);
    check(&amiss, "progress");
}

/// What the ends of processes tell is what `progress` says; only where they do not tell all, events are read.
#[test]
fn what_the_ends_tell_is_what_progress_says() {
    if !tools::require(&["gcc", "sh"]) {
        return;
    }
    let scratch = Scratch::new("concluded-ends");
    let family = Recipe::new("c/family.c").build().display().to_string();
    let plain = |source: &str| vec![Recipe::new(source).build().display().to_string()];
    let shell = |script: &str| ["sh", "-c", script].map(str::to_owned).to_vec();
    for (words, by_ends) in [
        (plain("c/leaf_calls.c"), true),
        (plain("c/unseen_returns.c"), true),
        (plain("c/short_threads.c"), true),
        (vec![family, "waits".to_owned()], true),
        (shell("true; sh -c 'exec true'; (exit 3); true"), false),
        (shell("true | cat; exec true"), true),
        (shell("exit 3"), false),
        (shell("kill -SEGV $$"), false),
        // Its threads come together.
        (plain("openmp/sections.c"), false),
    ] {
        let recording = record(&scratch, &OPTIONS, &words);
        let next = match recording.outcome.status {
            0 => "calls",
            _ => "progress",
        };
        check(&recording, next);
        let found = recording.json(&["progress", "--at-the-end"]);
        let whole = recording.json(&["progress"]);
        assert_eq!(found["verdict"], whole["verdict"], "{words:?}");
        let is_by_ends = found.get("by_ends_alone").is_some();
        assert_eq!(is_by_ends, by_ends, "{words:?}: {found:#}");
    }
}

#[test]
fn an_answer_that_takes_too_long_is_left_to_the_next_command() {
    let scratch = Scratch::new("concluded-late");
    let late = record(&scratch, &["--verdict", "0.000001"], &["true"]);
    let next = format!(
        "lockstep: Next: lockstep progress {}",
        late.directory.display()
    );
    assert_eq!(late.outcome.stderr.lines().last(), Some(next.as_str()));
    let none = record(&scratch, &["--verdict", "0"], &["true"]);
    assert!(!none.outcome.stderr.contains("Next"), "{:#?}", none.outcome);
    assert_eq!((late.outcome.status, none.outcome.status), (0, 0));
}

#[test]
fn how_a_job_ended() {
    let _turn = a_turn();
    let scratch = Scratch::new("concluded-jobs");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let recorded = |word: &str| record(&scratch, &OPTIONS, &mpi.words("standstill.c", 4, word));
        let well = recorded("none");
        assert_eq!(well.outcome.status, 0, "{mpi:?}: {:#?}", well.outcome);
        check(&well, "calls");
        // Rank 1 reduces in another way than the others: that stops nobody.
        let mismatch = recorded("operation");
        assert_eq!(
            mismatch.outcome.status, 0,
            "{mpi:?}: {:#?}",
            mismatch.outcome
        );
        let verdict = check(&mismatch, "progress");
        assert!(verdict.contains("MPI_MAX"), "{verdict}");
        let directory = scratch.join(format!("stopped-{mpi:?}"));
        let words = mpi.words("standstill.c", 4, "heads");
        let mut command = record_command(&directory, &OPTIONS, &words);
        let running = Running::start(&mut command);
        std::thread::sleep(Duration::from_secs(3));
        let outcome = running.stop();
        let stopped = Recording { directory, outcome };
        let verdict = check(&stopped, "progress");
        assert!(verdict.starts_with("deadlock: "), "{verdict}");
        // Inside the launcher one of them says it.
        let directory = scratch.join(format!("inside-{mpi:?}"));
        let program = mpi.recipe("standstill.c").flags(&["-g", "-O1"]).build();
        let recorder = record_command(&directory, &OPTIONS, &[program]);
        let outcome = command::run(&mut command::behind(mpi.launch(4), &recorder)).success();
        assert_eq!(outcome.stderr.matches("Next: ").count(), 1, "{outcome:#?}");
    }
}
