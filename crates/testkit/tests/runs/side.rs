//! Arguments of MPI calls and times, against what the programs themselves say.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recipe, Recording, Scratch, command, record};
use std::path::Path;

const RANKS: usize = 3;

fn record_ranks(scratch: &Scratch, mpi: Mpi, options: &[&str], program: &Path) -> Recording {
    let _turn = a_turn();
    let mut words = mpi.launch(RANKS);
    words.push(program.display().to_string());
    words.push(scratch.join("said").display().to_string());
    let recording = record(scratch, options, &words);
    assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
    recording
}

/// The parts of `text` that stand between its parentheses.
fn parts(text: &str) -> Vec<&str> {
    let inside = text.split_once('(').map_or("", |(_, inside)| inside);
    let inside = inside.strip_suffix(')').unwrap_or(inside);
    inside.split(", ").filter(|part| !part.is_empty()).collect()
}

/// Whether the trace's line says what the program's line does: the same function, and every part.
fn says(line: &str, expected: &str) -> bool {
    let name = expected.split('(').next().unwrap_or_default();
    let right_function = match name {
        "return" => line.starts_with("return "),
        name => {
            let fortran = name.to_lowercase();
            line.starts_with(&format!("call {name}("))
                || line.starts_with(&format!("call {fortran}_("))
        }
    };
    // Statuses stand in parentheses of their own.
    let has = |part: &&str| {
        let key = format!("({part}");
        line.contains(&format!("{part},"))
            || line.contains(&format!("{part})"))
            || line.ends_with(&key)
    };
    right_function && parts(expected).iter().all(has)
}

fn check(mpi: Mpi, source: &str) {
    if !mpi.is_here() {
        return;
    }
    let scratch = Scratch::new("arguments");
    let program = mpi.recipe(source).flag("-O1").build();
    let run = record_ranks(&scratch, mpi, &[], &program);
    for rank in 0..RANKS {
        let own = format!("{rank} ");
        // The C program writes a file for each rank, the Fortran program prints.
        let file = std::fs::read_to_string(scratch.join(format!("said.{rank}")));
        let file = file.unwrap_or_default();
        let expected: Vec<&str> = run
            .outcome
            .stdout
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix(&own))
            .chain(file.lines())
            .collect();
        assert!(expected.len() > 10, "{:#?}", run.outcome);
        let text = run.text(&["events", "-t", &format!("{rank}.0"), "--arguments"]);
        let mut lines = text.lines();
        for wanted in expected {
            assert!(
                lines.any(|line| says(line, wanted)),
                "{mpi:?} {source}: rank {rank} said {wanted}, which the trace does not, at its place:\n{text}"
            );
        }
    }
}

#[test]
fn arguments_are_what_the_program_says_in_c() {
    for mpi in Mpi::ALL {
        check(mpi, "arguments.c");
    }
}

#[test]
fn arguments_are_what_the_program_says_in_fortran() {
    for mpi in Mpi::ALL {
        check(mpi, "arguments.f90");
    }
}

#[test]
fn ranks_that_do_the_same_have_the_same_events() {
    let mpi = Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let scratch = Scratch::new("equal");
    let program = mpi.recipe("arguments.c").flag("-O1").build();
    let run = record_ranks(&scratch, mpi, &[], &program);
    let without = record_ranks(&scratch, mpi, &["--no-arguments", "--no-time"], &program);
    let first = run.text(&["events", "-t", "0.0", "--raw"]);
    for rank in 0..RANKS {
        let trace = format!("{rank}.0");
        assert_eq!(run.text(&["events", "-t", &trace, "--raw"]), first);
        assert_eq!(without.text(&["events", "-t", &trace, "--raw"]), first);
    }
    // The same bytes too, as far as the staging area has been encoded.
    let info = run.json(&["info"]);
    let bytes = |rank: usize| info["processes"][rank]["threads"][0]["bytes"].clone();
    assert_eq!(bytes(1), bytes(0));
    assert_eq!(bytes(2), bytes(0));
    let plain = without.text(&["events", "-t", "0.0", "--arguments", "--time"]);
    assert!(!plain.contains("count="), "{plain}");
}

#[test]
fn times_go_forward_and_are_known_at_mpi_calls() {
    let mpi = Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let scratch = Scratch::new("times");
    let program = mpi.recipe("arguments.c").flag("-O1").build();
    let run = record_ranks(&scratch, mpi, &[], &program);
    let events = run.json(&["events", "-t", "1.0", "--time"]);
    let mut last = 0.0;
    let mut known = 0;
    for event in events["events"].as_array().into_iter().flatten() {
        let time = event["seconds"].as_f64().or(event["after"].as_f64());
        let time = time.unwrap_or_else(|| panic!("no time: {event}"));
        assert!(time >= last, "{time} after {last}");
        last = time;
        known += u32::from(event["known"] == true);
    }
    assert!(known > 1, "{events}");
    let info = run.json(&["info"]);
    let thread = &info["processes"][1]["threads"][0];
    let (first, end) = (thread["first_seen"].as_f64(), thread["last_seen"].as_f64());
    assert!(first < end && end < Some(100.0), "{thread}");
    assert_eq!(thread["arguments_lost"], 0);
}

/// Beside the arguments stands from where a call returns: `compare` and `diff` tell its line.
#[test]
fn of_two_lines_that_call_the_one_that_did_is_told() {
    let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) else {
        return;
    };
    let _turn = a_turn();
    let program = mpi.recipe("two_lines.c").flags(&["-g", "-O1"]).build();
    let ways: [(&[&str], &str); 2] = [
        (&[], "two_lines.c:12"),
        (&["--no-arguments"], "two_lines.c:12 or 14"),
    ];
    for (options, line) in ways {
        let scratches = [Scratch::new("late"), Scratch::new("early")];
        let runs = [0, 1].map(|which| {
            let mut words = mpi.launch(RANKS);
            words.push(program.display().to_string());
            words.extend((which == 1).then(|| "early".to_owned()));
            let recording = record(&scratches[which], options, &words);
            assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
            recording.directory
        });
        let mut compare = lockstep(&["compare"]);
        let outcome = command::run(compare.args(&runs));
        let told = format!(
            "rank 1 calls MPI_Allreduce where the normal run calls MPI_Barrier, in step() at {line}, after"
        );
        assert!(outcome.stdout.starts_with(&told), "{outcome:#?}");
        let mut diff = lockstep(&["diff", "--json", "-t", "1.0"]);
        let outcome = command::run(diff.args(&runs));
        let found: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("json");
        let lines = found["first_divergence"]["source"].as_array().map(Vec::len);
        assert_eq!(lines, Some(line.split(" or ").count()), "{found:#}");
    }
}

#[test]
fn a_program_without_mpi_has_times_too() {
    let scratch = Scratch::new("plain-times");
    let program = Recipe::new("c/leaf_calls.c").flag("-O1").build();
    let run = record(&scratch, &[], &[&program]);
    let info = run.json(&["info"]);
    let thread = &info["processes"][0]["threads"][0];
    assert!(
        thread["last_seen"].as_f64() >= thread["first_seen"].as_f64(),
        "{thread}"
    );
}

#[test]
fn the_arguments_of_a_hung_call_survive_a_kill() {
    for mpi in Mpi::ALL {
        if !mpi.is_here() {
            continue;
        }
        let _turn = a_turn();
        let scratch = Scratch::new("hung");
        let program = mpi.recipe("stuck.c").flag("-O1").build();
        let mut words = mpi.launch(2);
        words.push(program.display().to_string());
        let run = Recording::until_open(&scratch, &[], &words, "MPI_Recv");
        let stack = run.text(&["stack", "-t", "1.0"]);
        let expected =
            "MPI_Recv(buf=.., count=5, datatype=MPI_LONG, source=0, tag=42, comm=MPI_COMM_WORLD)";
        assert!(stack.contains(expected), "{mpi:?}: {stack}");
    }
}

#[test]
fn the_last_arguments_are_kept() {
    // Ranks of MPICH poll without a pause: so many rounds take them minutes on few processors.
    let mpi = Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let program = mpi.recipe("rounds.c").flag("-O1").build();
    let scratch = Scratch::new("all-rounds");
    let whole = record_ranks(&scratch, mpi, &[], &program);
    let scratch = Scratch::new("last-rounds");
    let options = ["--max-size", "2M", "--keep", "last"];
    let last = record_ranks(&scratch, mpi, &options, &program);
    let info = last.json(&["info"]);
    for rank in 0..RANKS {
        let thread = &info["processes"][rank]["threads"][0];
        assert!(thread["dropped"].as_u64() > Some(0), "{mpi:?}: {thread}");
        assert_eq!(thread["arguments_lost"], 0, "{mpi:?}: {thread}");
        let events = ["events", "-t", &format!("{rank}.0"), "--arguments"];
        let (all, kept) = (whole.text(&events), last.text(&events));
        // The calls that were open have no arguments any more.
        let start = kept.find("return").unwrap_or(0);
        let kept = kept[start..].split_once('\n').map_or("", |it| it.1);
        assert!(kept.lines().count() > 1000, "{mpi:?}: {thread}");
        assert!(kept.contains("MPI_Sendrecv(sendbuf"), "{mpi:?}: {kept}");
        assert!(all.ends_with(kept), "{mpi:?}: rank {rank}: {thread}");
    }
}
