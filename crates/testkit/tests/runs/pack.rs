//! Packed runs: one file a node, read by every command as one a process, whoever was killed while it was made.

use lockstep_testkit::command;
use lockstep_testkit::inject;
use lockstep_testkit::mpi::{self, Mpi};
use lockstep_testkit::recording::{record_command, traced_environment};
use lockstep_testkit::{Recipe, Recording, Scratch, record, tools};
use std::fs;
use std::path::Path;

/// Names in a directory; none where there is no directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What commands say of a run.
fn said(run: &Recording) -> Vec<String> {
    let mut all = vec![run.text(&["calls", "--graph", "--all-processes"])];
    for trace in run.traces() {
        all.push(run.text(&["events", "-t", &trace, "--arguments"]));
        all.push(run.text(&["stack", "-t", &trace]));
        all.push(run.text(&["tree", "-t", &trace]));
    }
    all
}

fn ends(run: &Recording) -> Vec<serde_json::Value> {
    let info: serde_json::Value =
        serde_json::from_str(&run.text(&["info", "--json"])).expect("JSON");
    let processes = info["processes"].as_array().cloned().unwrap_or_default();
    processes.iter().map(|it| it["end"].clone()).collect()
}

#[test]
fn a_packed_run_is_the_same_in_one_file() {
    if !tools::require(&["gcc"]) {
        return;
    }
    let scratch = Scratch::new("pack");
    let (buffer, shown) = scratch.buffer();
    for source in ["c/leaf_calls.c", "c/exec_chain.c", "c/fork.c"] {
        let program = Recipe::new(source).flag("-O0").build();
        let plain = record(&scratch, &[], &[&program]);
        let run = record(&scratch, &["--buffer", &shown, "--pack"], &[&program]);
        assert_eq!(run.outcome.status, plain.outcome.status, "{run:#?}");
        let files = names(&run.directory.join("processes"));
        assert!(
            matches!(&files[..], [one] if one.ends_with(".pack")),
            "{files:?}"
        );
        assert_eq!(names(&run.directory.join("ends")), files);
        assert_eq!(said(&run), said(&plain));
        assert_eq!(ends(&run), ends(&plain));
        // It tells as many events.
        let told = |run: &Recording| {
            let sentence = run.outcome.stderr.clone();
            sentence.split(" bytes").next().map(str::to_owned)
        };
        assert_eq!(told(&run), told(&plain));
        assert!(!run.directory.join("buffers").exists());
        assert_eq!(names(&buffer), Vec::<String>::new());

        let _ = run.text(&["seal"]);
        assert!(!run.directory.join("processes").exists());
        assert_eq!(said(&run), said(&plain));
        assert_eq!(ends(&run), ends(&plain));
    }
    let refused = record(&scratch, &["--pack"], &["true"]);
    assert_eq!(refused.outcome.status, 125, "{refused:#?}");
    assert!(refused.outcome.stderr.contains("--buffer"));
}

#[test]
fn the_last_recorder_of_a_node_packs() {
    let _turn = mpi::a_turn();
    let scratch = Scratch::new("pack-mpi");
    let (buffer, shown) = scratch.buffer();
    let options = ["--buffer", &shown, "--pack"];
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let program = mpi.recipe("odd_even.c").flag("-O1").build();
        let mut around = mpi.launch(4);
        around.push(program.display().to_string());
        let plain = record(&scratch, &[], &around);
        let run = record(&scratch, &options, &around);
        assert_eq!(run.outcome.status, 0, "{run:#?}");

        let directory = scratch.join(format!("inside-{mpi:?}"));
        let recorder = record_command(&directory, &options, &[&program]);
        let mut words = mpi.launch(4);
        words.push(recorder.get_program().to_string_lossy().into_owned());
        let arguments = recorder.get_args();
        words.extend(arguments.map(|it| it.to_string_lossy().into_owned()));
        let outcome = command::run(traced_environment(&mut command::command(&words))).success();
        let inside = Recording { directory, outcome };
        for run in [&run, &inside] {
            let files = names(&run.directory.join("processes"));
            assert!(
                matches!(&files[..], [one] if one.ends_with(".pack")),
                "{files:?}"
            );
            assert_eq!(run.traces().len(), 4);
            let (status, result) = plain.compare(run, &[]);
            assert_eq!(status, 0, "{result:#}");
            assert_eq!(names(&buffer), Vec::<String>::new());
        }
    }
}

/// The events and calls of all traces.
fn events(run: &Recording) -> Vec<String> {
    let mut all = vec![run.text(&["calls", "--graph", "--all-processes"])];
    let traces = run.traces().into_iter();
    all.extend(traces.map(|trace| run.text(&["events", "-t", &trace])));
    all
}

#[test]
fn nothing_is_lost_where_packing_ends_in_the_middle() {
    if !tools::require(&["gcc", "strace"]) {
        return;
    }
    let scratch = Scratch::new("pack-kill");
    let (buffer, shown) = scratch.buffer();
    let program = Recipe::new("c/exec_chain.c").flag("-O0").build();
    let plain = record(&scratch, &[], &[&program]);
    let expected = events(&plain);
    for (system_call, what) in [
        ("rename", "signal=KILL"),
        ("fsync", "signal=KILL"),
        ("unlink", "signal=KILL"),
        ("fsync", "error=ENOSPC"),
        ("rename", "error=ENOSPC"),
    ] {
        let mut met = 0;
        for number in 1.. {
            let directory = scratch.join("disturbed");
            let options = ["--buffer", &shown, "--pack"];
            let inner = record_command(&directory, &options, &[&program]);
            let (outcome, is_met) =
                inject::system_call(&scratch, &inner, system_call, what, number);
            let run = Recording { directory, outcome };
            // Nobody closes the program's output before it has ended: what it wrote tells that it ran.
            if run.outcome.stdout == plain.outcome.stdout {
                met += u32::from(is_met);
                assert_eq!(
                    events(&run),
                    expected,
                    "{system_call} {what} {number}: {run:#?}"
                );
                let _ = run.text(&["seal"]);
                assert_eq!(
                    events(&run),
                    expected,
                    "{system_call} {what} {number}: {run:#?}"
                );
                assert_eq!(names(&buffer), Vec::<String>::new());
            }
            let _ = fs::remove_dir_all(&run.directory);
            let _ = fs::remove_dir_all(&buffer);
            fs::create_dir(&buffer).expect("scratch can be written");
            if !is_met {
                break;
            }
        }
        assert!(met > 0, "{system_call}: {what}");
    }
}
