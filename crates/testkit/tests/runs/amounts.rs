//! Who says in a collective operation how much it has for each other, and who expects something else: `progress` tells of both.

use lockstep_testkit::Scratch;
use lockstep_testkit::mpi::{Mpi, a_turn};

/// What is wrong, and the parts of the sentence.
const CASES: [(&str, [&str; 2]); 8] = [
    (
        "alltoallv",
        [
            "rank 1 calls MPI_Alltoallv at amounts.c:",
            " with 1 MPI_INT for rank 2 where rank 2 calls MPI_Alltoallv at amounts.c:",
        ],
    ),
    (
        "alltoallv_kinds",
        [
            "rank 1 calls MPI_Alltoallv at amounts.c:",
            " with 2 MPI_FLOAT from rank 0 where rank 0 calls MPI_Alltoallv at amounts.c:",
        ],
    ),
    (
        "gatherv",
        ["rank 2 calls MPI_Gatherv", " with 2 MPI_INT from rank 2"],
    ),
    (
        "scatterv",
        ["rank 0 calls MPI_Scatterv", " with 2 MPI_INT from rank 0"],
    ),
    (
        "allgatherv",
        ["rank 1 calls MPI_Allgatherv", " with 2 MPI_INT from rank 1"],
    ),
    (
        "reduce_scatter",
        [" calls MPI_Reduce_scatter", " with 1 MPI_INT from rank "],
    ),
    (
        "alltoall",
        [
            "rank 1 called MPI_Alltoall at amounts.c:",
            "with 2 MPI_FLOAT to send and 2 MPI_INT to receive",
        ],
    ),
    (
        "allgather",
        [
            "rank 1 called MPI_Allgather",
            "with 1 MPI_INT to send and 2 MPI_INT to receive",
        ],
    ),
];

#[test]
fn who_expects_something_else() {
    let _turn = a_turn();
    let scratch = Scratch::new("amounts");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        for (lapse, says) in CASES {
            let progress = mpi
                .record(&scratch, "amounts.c", 3, lapse)
                .json(&["progress"]);
            let verdict = progress["verdict"].as_str().expect("a sentence");
            for says in says {
                assert!(
                    verdict.contains(says),
                    "{mpi:?} {lapse}: {says}\n{progress:#}"
                );
            }
        }
    }
}

/// Nor is an array read where it means nothing.
#[test]
fn who_agree_are_not_told() {
    let _turn = a_turn();
    let scratch = Scratch::new("amounts-fine");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let recording = mpi.record(&scratch, "amounts.c", 3, "fine");
        assert_eq!(recording.outcome.status, 0, "{:#?}", recording.outcome);
        let fine = recording.json(&["progress"]);
        let verdict = "no task hangs: all 3 ranks came to their end";
        assert_eq!(fine["verdict"], verdict, "{mpi:?}: {fine:#}");
        assert_eq!(fine["loose_ends"], serde_json::json!([]));
        assert_eq!(fine["mismatches"], serde_json::json!([]));
    }
}
