//! The papers' main example: iterative local champion search with injected bugs, recorded on real MPI
//! and OpenMP. The papers name nearly every process for some of these; here it is the one.

use lockstep_testkit::command::{self, Running};
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::{lockstep, record_command};
use lockstep_testkit::{Recording, Scratch, record};
use serde_json::Value;
use std::path::PathBuf;

struct Search {
    scratch: Scratch,
    program: PathBuf,
}

const MPI: Mpi = Mpi::OpenMpi;

impl Search {
    fn new() -> Self {
        Self {
            scratch: Scratch::new("ilcs"),
            program: MPI.recipe("ilcs.c").flags(&["-g", "-O1"]).build(),
        }
    }

    fn words(&self, arguments: &[&str]) -> Vec<String> {
        let mut words = MPI.launch(8);
        words.push(self.program.display().to_string());
        words.extend(["--seeds", "30", "--rounds", "8"].map(str::to_owned));
        words.extend(arguments.iter().map(|&argument| argument.to_owned()));
        words
    }

    /// A run that may fail in its own way.
    fn run(&self, arguments: &[&str]) -> Recording {
        record(&self.scratch, &[], &self.words(arguments))
    }

    fn healthy(&self, count: usize) -> Vec<Recording> {
        (0..count).map(|_| self.run(&[])).collect()
    }
}

/// Status and JSON of a comparison with several normal runs.
fn compare(normals: &[Recording], faulty: &Recording) -> (i32, Value) {
    let mut command = lockstep(&["compare", "--json"]);
    command.arg(&normals[0].directory).arg(&faulty.directory);
    for normal in &normals[1..] {
        command.arg("--normal").arg(&normal.directory);
    }
    let outcome = command::run(&mut command);
    let json = serde_json::from_str(&outcome.stdout);
    (
        outcome.status,
        json.unwrap_or_else(|error| panic!("{error}: {outcome:#?}")),
    )
}

fn first(found: &Value) -> &str {
    found["suspects"][0]["trace"].as_str().unwrap_or_default()
}

#[test]
fn the_thread_without_its_critical_section() {
    if !MPI.is_here() {
        return;
    }
    let _turn = a_turn();
    let search = Search::new();
    let normals = search.healthy(5);
    let faulty = search.run(&["--bug", "misCrit-1-1-x", "--at", "6.4.0"]);
    let (status, found) = compare(&normals, &faulty);
    assert_eq!((status, first(&found)), (1, "6.4"), "{}", found["verdict"]);
    assert!(
        found["p"].as_f64().is_some_and(|p| p < 0.05),
        "{}",
        found["p"]
    );
    let reasons = found["suspects"][0]["reasons"].to_string();
    assert!(reasons.contains("GOMP_critical"), "{reasons}");
    let roles: Vec<&str> = found["roles"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|it| it["name"].as_str())
        .collect();
    assert!(
        roles.contains(&"worker") && roles.contains(&"master"),
        "{roles:?}"
    );

    let (status, found) = compare(&normals, &search.run(&[]));
    assert_eq!(status, 0, "{} p = {}", found["verdict"], found["p"]);
}

#[test]
fn arguments_that_disagree() {
    if !MPI.is_here() {
        return;
    }
    let _turn = a_turn();
    let search = Search::new();
    let normal = search.healthy(1);
    let operation = search.run(&["--bug", "allRed1wrgOp-1-all-x", "--at", "0.0.0"]);
    let (status, found) = compare(&normal, &operation);
    let verdict = found["verdict"].as_str().unwrap_or_default();
    assert_eq!((status, first(&found)), (1, "0.0"), "{verdict}");
    assert!(
        verdict.contains("op=MPI_MAX") && verdict.contains("MPI_MIN"),
        "{verdict}"
    );
    assert!(verdict.contains("at ilcs.c:"), "{verdict}");

    // Open MPI ends the job, perhaps before all have come to that call; the count is told anyway.
    let size = search.run(&["--bug", "allRed1wrgSize-1-all-x", "--at", "2.0.0"]);
    let (status, found) = compare(&normal, &size);
    let verdict = found["verdict"].as_str().unwrap_or_default();
    assert_eq!((status, first(&found)), (1, "2.0"), "{verdict}");
    assert!(
        verdict.contains("calls MPI_Allreduce with count=32 where ")
            && verdict.contains(" of that call say"),
        "{verdict}"
    );
}

#[test]
fn the_thread_that_never_comes_back() {
    if !MPI.is_here() {
        return;
    }
    let _turn = a_turn();
    let search = Search::new();
    let normals = search.healthy(4);
    let directory = search.scratch.join("hung");
    let words = search.words(&["--bug", "infLoop-1-1-1", "--at", "3.2.5"]);
    let running = Running::start(&mut record_command(&directory, &[], &words));
    // The masters go on to the end of the parallel region; nothing is left to come then.
    std::thread::sleep(std::time::Duration::from_secs(6));
    let outcome = running.stop();
    let (status, found) = compare(&normals, &Recording { directory, outcome });
    let named: Vec<&str> = (found["suspects"].as_array().into_iter().flatten())
        .take(2)
        .filter_map(|it| it["trace"].as_str())
        .collect();
    assert_eq!(status, 1, "{}", found["verdict"]);
    assert!(named.contains(&"3.2"), "{named:?}: {}", found["verdict"]);
}
