//! An argument that says something else than at the same call of a normal run: `compare` tells who says so, and nothing of what varies
//! with data, or in all ranks.

use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::recording::lockstep;
use lockstep_testkit::{Recording, Scratch, command, record};
use serde_json::Value;

const MPI: Mpi = Mpi::OpenMpi;

/// What is wrong, and how the verdict begins; all other ranks behave as before.
const CASES: [(&str, &str); 6] = [
    (
        "place",
        "rank 1 calls MPI_Put with target_disp=12 where the normal run says 9, in put() at series.c:",
    ),
    (
        "tag",
        "rank 3 calls MPI_Irecv with tag=5 where the normal run says 4, in talk() at series.c:",
    ),
    (
        "copy",
        "rank 2 calls MPI_Irecv with comm=1st copy of MPI_COMM_WORLD where the normal run says MPI_COMM_WORLD, in talk() at series.c:",
    ),
    (
        "columns",
        "rank 0 calls MPI_Allreduce with comm=2nd split of MPI_COMM_WORLD (1 rank) where the normal run says 1st split of MPI_COMM_WORLD \
         (1 rank), in add() at series.c:",
    ),
    (
        "any",
        "rank 0 calls MPI_Irecv with source=MPI_ANY_SOURCE where the normal run says 0, in talk() at series.c:",
    ),
    (
        "base 100",
        "the runs behave alike: all 4 traces are as before",
    ),
];

fn run(scratch: &Scratch, words: &str) -> Recording {
    // Functions that are inlined would be no places.
    let flags = ["-g", "-O1", "-fno-inline"];
    let program = MPI.recipe("series.c").flags(&flags).build();
    let mut all = MPI.launch(4);
    all.push(program.display().to_string());
    all.extend(words.split_whitespace().map(str::to_owned));
    let recording = record(scratch, &[], &all);
    assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
    recording
}

fn compare(normals: &[&Recording], faulty: &Recording) -> (i32, Value) {
    let mut command = lockstep(&["compare", "--fresh", "--json"]);
    command.arg(&normals[0].directory).arg(&faulty.directory);
    for normal in &normals[1..] {
        command.arg("--normal").arg(&normal.directory);
    }
    let outcome = command::run(&mut command);
    let json = serde_json::from_str(&outcome.stdout);
    let json = json.unwrap_or_else(|error| panic!("{error}: {outcome:#?}"));
    (outcome.status, json)
}

#[test]
fn who_leaves_a_rule_is_told_and_what_varies_is_not() {
    if !MPI.is_here() {
        return;
    }
    let _turn = a_turn();
    let scratch = Scratch::new("series");
    let normals = [run(&scratch, "fine 0"), run(&scratch, "fine 0")];
    let both: Vec<&Recording> = normals.iter().collect();
    for (words, says) in CASES {
        let words = match words.contains(' ') {
            true => words.to_owned(),
            false => format!("{words} 0"),
        };
        let faulty = run(&scratch, &words);
        let differs = !says.starts_with("the runs behave alike");
        // What no normal run ever said is unusual beside several of them.
        let several = if differs { &both[..] } else { &both[..1] };
        for normals in [&both[..1], several] {
            let (status, found) = compare(normals, &faulty);
            let verdict = found["verdict"].as_str().unwrap_or_default();
            assert!(verdict.starts_with(says), "{words}: {says}\nis {verdict}");
            assert_eq!(status, i32::from(differs), "{words}: {verdict}");
        }
    }
    // How much is sent, another in each run.
    let data = ["data 1", "data 2"].map(|words| run(&scratch, words));
    let (status, found) = compare(&[&data[0]], &data[1]);
    assert_eq!(status, 0, "{}", found["verdict"]);
}
