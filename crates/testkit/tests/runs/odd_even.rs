//! The main job, end to end: odd/even sort healthy, with the swap and with the deadlock, recorded on
//! real MPI; the thesis' loops and tables; and the sentence that names process 5.

use lockstep_testkit::command::Running;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::{lockstep, record_command};
use lockstep_testkit::{Recording, Scratch, command, record};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Where the recorder stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `lockstep record -- mpirun -n R program`
    Around,
    /// `mpirun -n R lockstep record -- program`
    Inside,
}

fn start(
    place: Place,
    mpi: Mpi,
    ranks: usize,
    directory: &Path,
    program: &Path,
    arguments: &[&str],
) -> Running {
    let mut words = vec![program.display().to_string()];
    words.extend(arguments.iter().map(|&argument| argument.to_owned()));
    let mut command = match place {
        Place::Around => {
            let mut all = mpi.launch(ranks);
            all.extend(words);
            record_command(directory, &[], &all)
        }
        Place::Inside => {
            // The launcher runs what `lockstep` would be, with its environment.
            let inner = record_command(directory, &[], &words);
            command::behind(mpi.launch(ranks), &inner)
        }
    };
    Running::start(&mut command)
}

struct Bench {
    scratch: Scratch,
    mpi: Mpi,
    place: Place,
    ranks: usize,
    number: std::cell::Cell<usize>,
}

impl Bench {
    fn new(mpi: Mpi, place: Place, ranks: usize) -> Self {
        Self {
            scratch: Scratch::new("odd-even"),
            mpi,
            place,
            ranks,
            number: 0.into(),
        }
    }

    fn directory(&self) -> PathBuf {
        self.number.set(self.number.get() + 1);
        self.scratch.join(format!("run-{}", self.number.get()))
    }

    fn program(&self) -> PathBuf {
        self.mpi.recipe("odd_even.c").flags(&["-g", "-O1"]).build()
    }

    fn ends(&self, program: &Path, arguments: &[&str]) -> Recording {
        let directory = self.directory();
        let running = start(
            self.place, self.mpi, self.ranks, &directory, program, arguments,
        );
        let outcome = running.wait(command::LIMIT).success();
        assert!(outcome.stdout.contains(": sorted"), "{outcome:#?}");
        Recording { directory, outcome }
    }

    fn hangs(&self, program: &Path, arguments: &[&str]) -> Recording {
        let directory = self.directory();
        let running = start(
            self.place, self.mpi, self.ranks, &directory, program, arguments,
        );
        Recording::stop_when_open(directory, running, "send_to_nobody")
    }
}

/// The tokens of each trace under the MPI filter, by name; and what each loop stands for.
struct Loops {
    json: Value,
}

impl Loops {
    fn of(recording: &Recording) -> Self {
        Self {
            json: recording.json(&["loops", "--filter", "mpi"]),
        }
    }

    fn tokens(&self, trace: &str) -> Vec<String> {
        let traces = self.json["traces"].as_array().cloned().unwrap_or_default();
        let found = traces.iter().find(|entry| entry["trace"] == trace);
        strings(&found.unwrap_or_else(|| panic!("no {trace} in {}", self.json))["tokens"])
    }

    fn body(&self, name: &str) -> Vec<String> {
        let loops = self.json["loops"].as_array().cloned().unwrap_or_default();
        let found = loops.iter().find(|entry| entry["name"] == name);
        strings(&found.unwrap_or_else(|| panic!("no {name} in {}", self.json))["body"])
    }
}

fn strings(value: &Value) -> Vec<String> {
    let list = value.as_array().cloned().unwrap_or_default();
    list.iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// `MPI_Init MPI_Comm_rank MPI_Comm_size`, these loops, `MPI_Finalize`.
fn whole(loops: &[&str]) -> Vec<String> {
    let mut tokens = vec!["MPI_Init", "MPI_Comm_rank", "MPI_Comm_size"];
    tokens.extend(loops);
    tokens.push("MPI_Finalize");
    tokens.iter().map(|&token| token.to_owned()).collect()
}

fn names_process_five(result: &Value, what: &str) {
    assert_eq!(result["differs"], true, "{what}: {result}");
    assert_eq!(
        result["suspects"][0]["process"]
            .to_string()
            .trim_matches('"'),
        "5",
        "{what}: {result}"
    );
    let verdict = result["verdict"].as_str().unwrap_or_default();
    assert!(verdict.contains('5'), "{what}: {verdict}");
}

fn four_ranks(mpi: Mpi, place: Place) {
    if !mpi.is_here() {
        return;
    }
    let _turn = a_turn();
    let bench = Bench::new(mpi, place, 4);
    let run = bench.ends(&bench.program(), &[]);
    let loops = Loops::of(&run);
    // The thesis' table 3.3.
    assert_eq!(loops.body("L0"), ["MPI_Send", "MPI_Recv"]);
    assert_eq!(loops.body("L1"), ["MPI_Recv", "MPI_Send"]);
    assert_eq!(loops.tokens("0.0"), whole(&["L0^2"]));
    assert_eq!(loops.tokens("1.0"), whole(&["L1^4"]));
    assert_eq!(loops.tokens("2.0"), whole(&["L0^4"]));
    assert_eq!(loops.tokens("3.0"), whole(&["L1^2"]));
    // Its table 3.4 and figures 3.3 and 3.4: four attributes in all traces, then L0 or L1.
    let lattice = run.json(&["lattice", "--filter", "mpi"]);
    assert_eq!(
        lattice["concepts"].as_array().map(Vec::len),
        Some(4),
        "{lattice}"
    );
    assert_eq!(
        lattice["covers"].as_array().map(Vec::len),
        Some(4),
        "{lattice}"
    );
    let similarity = run.json(&["similarity", "--filter", "mpi"]);
    let matrix = &similarity["matrix"];
    for (row, column, expected) in [
        (0, 1, 4.0 / 6.0),
        (0, 2, 1.0),
        (1, 3, 1.0),
        (2, 3, 4.0 / 6.0),
    ] {
        let found = matrix[row][column].as_f64().unwrap_or(f64::NAN);
        assert!(
            (found - expected).abs() < 1e-9,
            "J{row}{column} in {similarity}"
        );
    }
}

#[test]
fn four_ranks_of_open_mpi() {
    four_ranks(Mpi::OpenMpi, Place::Around);
}

#[test]
fn four_ranks_of_open_mpi_inside_the_launcher() {
    four_ranks(Mpi::OpenMpi, Place::Inside);
}

#[test]
fn four_ranks_of_mpich() {
    four_ranks(Mpi::Mpich, Place::Around);
}

#[test]
fn four_ranks_of_mpich_inside_the_launcher() {
    four_ranks(Mpi::Mpich, Place::Inside);
}

/// Healthy, swap and deadlock: what the loops are and what `compare` says. With fewer ranks than 16
/// rank 5 has fewer iterations: as many as there are ranks.
fn both_bugs(mpi: Mpi, place: Place, ranks: usize) {
    if !mpi.is_here() {
        return;
    }
    let _turn = a_turn();
    let bench = Bench::new(mpi, place, ranks);
    let what = format!("{mpi:?}, {place:?}, {ranks} ranks");
    let program = bench.program();
    let healthy = bench.ends(&program, &[]);
    let swap = bench.ends(&program, &["--bug", "swap"]);
    let deadlock = bench.hangs(&program, &["--bug", "deadlock"]);

    let all = format!("L1^{ranks}");
    assert_eq!(Loops::of(&healthy).tokens("5.0"), whole(&[&all]), "{what}");
    let swapped = if ranks > 8 {
        whole(&["L1^7", &format!("L0^{}", ranks - 7)])
    } else {
        whole(&["L1^7", "MPI_Send", "MPI_Recv"])
    };
    assert_eq!(Loops::of(&swap).tokens("5.0"), swapped, "{what}");
    let mut stuck = whole(&["L1^7", "MPI_Send"]);
    stuck.pop();
    assert_eq!(Loops::of(&deadlock).tokens("5.0"), stuck, "{what}");
    let stack = deadlock.text(&["stack", "-t", "5.0"]);
    assert!(
        stack.contains("send_to_nobody") && stack.contains("MPI_Send"),
        "{what}: {stack}"
    );

    let (status, result) = healthy.compare(&swap, &[]);
    assert_eq!(status, 1, "{what}");
    names_process_five(&result, &format!("{what}, swap"));
    let (status, result) = healthy.compare(&deadlock, &[]);
    assert_eq!(status, 1, "{what}");
    names_process_five(&result, &format!("{what}, deadlock"));
    let diff = healthy_diff(&healthy, &swap, "5.0");
    assert_eq!(diff["equal"], false, "{diff}");
    assert_eq!(diff["first_divergence"]["trace"], "5.0", "{diff}");
}

fn healthy_diff(normal: &Recording, faulty: &Recording, trace: &str) -> Value {
    let mut diff = lockstep(&["diff", "--json", "-t", trace, "--filter", "mpi"]);
    diff.arg(&normal.directory).arg(&faulty.directory);
    let outcome = command::run(&mut diff);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:#?}"))
}

#[test]
fn sixteen_ranks_of_open_mpi() {
    both_bugs(Mpi::OpenMpi, Place::Around, 16);
}

#[test]
fn sixteen_ranks_of_open_mpi_inside_the_launcher() {
    both_bugs(Mpi::OpenMpi, Place::Inside, 16);
}

#[test]
fn eight_ranks_of_mpich() {
    both_bugs(Mpi::Mpich, Place::Around, 8);
}

#[test]
fn eight_ranks_of_mpich_inside_the_launcher() {
    both_bugs(Mpi::Mpich, Place::Inside, 8);
}

#[test]
fn two_healthy_runs_are_equal() {
    let mpi = Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let _turn = a_turn();
    let around = Bench::new(mpi, Place::Around, 16);
    let inside = Bench::new(mpi, Place::Inside, 16);
    let first = around.ends(&around.program(), &[]);
    let second = around.ends(&around.program(), &[]);
    let third = inside.ends(&inside.program(), &[]);
    for other in [&second, &third] {
        let (status, result) = first.compare(other, &[]);
        assert_eq!(
            (status, &result["differs"]),
            (0, &Value::Bool(false)),
            "{result}"
        );
    }
    assert_eq!(
        first.traces(),
        third.traces(),
        "one run, with the same names"
    );
}

#[test]
fn healthy_and_faulty_are_two_builds() {
    let mpi = Mpi::OpenMpi;
    if !mpi.is_here() {
        return;
    }
    let _turn = a_turn();
    let bench = Bench::new(mpi, Place::Around, 16);
    let healthy = bench.ends(&bench.program(), &[]);
    let build = |flag: &str| {
        let recipe = mpi.recipe("odd_even.c").flags(&["-g", "-O2", flag]);
        recipe.build()
    };
    let (_, result) = healthy.compare(&bench.ends(&build("-DBUG_SWAP"), &[]), &["--filter", "mpi"]);
    names_process_five(&result, "two builds, swap");
    let (_, result) = healthy.compare(
        &bench.hangs(&build("-DBUG_DEADLOCK"), &[]),
        &["--filter", "mpi"],
    );
    names_process_five(&result, "two builds, deadlock");
}

#[test]
fn the_same_bug_on_threads() {
    let program = lockstep_testkit::Recipe::new("threads/odd_even.c")
        .flags(&["-g", "-O1"])
        .build();
    let scratch = Scratch::new("odd-even-threads");
    let run = |arguments: &[&str]| {
        let mut words = vec![program.display().to_string()];
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        words
    };
    let healthy = record(&scratch, &[], &run(&[]));
    let again = record(&scratch, &[], &run(&[]));
    let swap = record(&scratch, &[], &run(&["--bug", "swap"]));
    let deadlock =
        Recording::until_open(&scratch, &[], &run(&["--bug", "deadlock"]), "send_and_wait");
    assert_eq!(healthy.compare(&again, &[]).0, 0);
    for faulty in [&swap, &deadlock] {
        let (status, result) = healthy.compare(faulty, &[]);
        assert_eq!(status, 1);
        // Thread 0 is main; the sorting thread 5 is the sixth that it started.
        assert_eq!(result["suspects"][0]["trace"], "0.6", "{result}");
    }
}
