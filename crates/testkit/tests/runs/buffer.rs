//! Node-local capture: process files lie in another directory while their processes run, and in the
//! run afterwards, whoever was killed.

use lockstep_testkit::command::{self, Running};
use lockstep_testkit::mpi::{self, Mpi};
use lockstep_testkit::recording::{record_command, traced_environment};
use lockstep_testkit::{Recipe, Recording, Scratch, lockstep, record, tools};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything in a directory, and in those in it.
fn all_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(all_files(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_run_is_the_same_and_nothing_stays_behind() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("buffer");
    let (buffer, shown) = scratch.buffer();
    let programs = [
        Recipe::new("c/leaf_calls.c").flag("-O0").build(),
        // Processes that replace their program, and children.
        Recipe::new("c/exec_chain.c").flag("-O0").build(),
        Recipe::new("c/fork.c").flag("-O0").build(),
    ];
    for program in programs {
        let plain = record(&scratch, &[], &[&program]);
        for options in [&["--buffer", &shown][..], &["--buffer", &shown, "--redact"]] {
            let run = record(&scratch, options, &[&program]);
            assert_eq!(run.outcome.status, plain.outcome.status, "{run:#?}");
            assert_eq!(run.traces(), plain.traces());
            for trace in run.traces() {
                let events = |run: &Recording| run.text(&["events", "-t", &trace]);
                assert_eq!(events(&run), events(&plain), "{trace}");
            }
            assert!(!run.directory.join("buffers").exists());
            assert_eq!(fs::read_dir(&buffer).map(Iterator::count).ok(), Some(0));
        }
    }
}

#[test]
fn ranks_share_it_around_the_launcher_and_inside() {
    let _turn = mpi::a_turn();
    let scratch = Scratch::new("buffer-mpi");
    let (buffer, shown) = scratch.buffer();
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let program = mpi.recipe("odd_even.c").flag("-O1").build();
        let mut around = mpi.launch(4);
        around.push(program.display().to_string());
        let run = record(&scratch, &["--buffer", &shown], &around);
        assert_eq!(run.outcome.status, 0, "{run:#?}");
        assert_eq!(run.traces().len(), 4);

        let inside = scratch.join(format!("inside-{mpi:?}"));
        let mut words = mpi.launch(4);
        let recorder = record_command(&inside, &["--buffer", &shown], &[&program]);
        words.push(recorder.get_program().to_string_lossy().into_owned());
        words.extend(
            recorder
                .get_args()
                .map(|it| it.to_string_lossy().into_owned()),
        );
        let outcome = command::run(traced_environment(&mut command::command(&words))).success();
        let inside = Recording {
            directory: inside,
            outcome,
        };
        assert_eq!(inside.traces().len(), 4);
        let (status, result) = run.compare(&inside, &[]);
        assert_eq!(status, 0, "{result:#}");
        for run in [&run, &inside] {
            assert!(!run.directory.join("buffers").exists());
        }
        assert_eq!(all_files(&buffer), Vec::<PathBuf>::new());
    }
}

#[test]
fn what_a_killed_recorder_left_is_found_and_gathered() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("buffer-kill");
    let (buffer, shown) = scratch.buffer();
    let program = Recipe::new("c/waits.c").flag("-O0").build();
    let killed = |name: &str| {
        let directory = scratch.join(name);
        let mut command = record_command(&directory, &["--buffer", &shown], &[&program]);
        let running = Running::start(&mut command);
        // It is read from there while it runs, too.
        let run = Recording::end_when_open(directory, running, "sleep", Running::kill);
        assert_eq!(all_files(&run.directory.join("processes")).len(), 0);
        run
    };
    let stack = |run: &Recording| run.text(&["stack", "-t", "0.0"]);
    let run = killed("gathered");
    let before = stack(&run);
    assert!(before.contains("inner") && before.contains("sleep"));
    let _ = run.text(&["seal"]);
    assert_eq!(stack(&run), before);
    assert_eq!(fs::read_dir(&buffer).map(Iterator::count).ok(), Some(0));
    assert!(!run.directory.join("buffers").exists());

    // On another node, or after a restart of this one.
    let lost = killed("lost");
    fs::remove_dir_all(&buffer).expect("it can be removed");
    let info = lockstep(&["info"]).arg(&lost.directory).output();
    let info = info.expect("lockstep runs");
    let told = String::from_utf8_lossy(&info.stderr).into_owned();
    assert!(
        told.contains("node-local/lockstep-") && told.contains("not here"),
        "{told}"
    );
}

#[test]
fn without_a_directory_nothing_is_started() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("buffer-none");
    let program = Recipe::new("c/leaf_calls.c").flag("-O0").build();
    let missing = scratch.join("missing").display().to_string();
    let run = record(&scratch, &["--buffer", &missing], &[&program]);
    assert_eq!(run.outcome.status, 125, "{run:#?}");
    assert_eq!(run.outcome.stdout, "");
    assert!(run.outcome.stderr.contains(&missing), "{run:#?}");
    assert!(!run.directory.exists());
}
