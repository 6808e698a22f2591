//! Mistakes with windows, and with what MPI gave a name to: `progress` tells of them, with the line, whether the library noticed
//! or not.

use lockstep_testkit::Scratch;
use lockstep_testkit::mpi::{Mpi, a_turn, with_lines};

/// A mistake, and what is told, where `@text@` is the line of the source with that text.
type Case = (&'static str, &'static str);

const WINDOWS: &[Case] = &[
    (
        "outside",
        "rank 0 called MPI_Put at windows.c:@rank == 0) MPI_Put(value, 1@ on bytes 64 to 68 of the window of rank 1, which \
         has 64",
    ),
    (
        "columns",
        "rank 0 called MPI_Put at windows.c:@// a column@ on a part of the window of rank 2 to which rank 1 called MPI_Get \
         in the same epoch",
    ),
    (
        "reductions",
        "rank 0 called MPI_Accumulate(MPI_SUM) at windows.c:@MPI_Accumulate(@ on a part of the window of rank 2 to which \
         rank 1 called MPI_Accumulate(MPI_PROD) in the same epoch",
    ),
    (
        "flushed",
        "rank 0 called MPI_Win_flush at windows.c:@MPI_Win_flush(@ without MPI_Win_lock",
    ),
    (
        "unfenced",
        "rank 0 called MPI_Win_lock at windows.c:@MPI_LOCK_EXCLUSIVE@ without a fence that ends the epoch before it",
    ),
    (
        "own",
        "rank 0 called MPI_Get at windows.c:@// before the put@ on a part of the window of rank 1 to which rank 0 called \
         MPI_Put in the same epoch",
    ),
    (
        "counted",
        "rank 0 called MPI_Get at windows.c:@// reads@ on a part of the window of rank 1 to which rank 2 called MPI_Put in \
         the same epoch",
    ),
    (
        "attached",
        "rank 0 called MPI_Put at windows.c:@// attached@ on a part of the window of rank 1 to which rank 2 called MPI_Put \
         in the same epoch",
    ),
    (
        "unended",
        "rank 0 called MPI_Win_free at windows.c:@MPI_Win_free(&window@ without a fence that ends the epoch before it",
    ),
    (
        "outsider",
        "rank 0 called MPI_Put at windows.c:@rank == 0) MPI_Put(value, 1@ on the window of rank 2, which is not in the group \
         of MPI_Win_start",
    ),
    (
        "reposted",
        "rank 1 called MPI_Win_post at windows.c:@// lets rank 0 in@ without MPI_Win_wait for the epoch before it",
    ),
];

const HANDLES: &[Case] = &[
    (
        "unreceived",
        "rank 1 never received the message of MPI_Mprobe at handles.c:@MPI_Mprobe(@",
    ),
    (
        "uncompleted",
        "rank 1 never completed MPI_Imrecv at handles.c:@MPI_Imrecv(@",
    ),
    (
        "restarted",
        "rank 0 called MPI_Start at handles.c:@MPI_Start(@ with a request that is not persistent",
    ),
    (
        "datatype",
        "rank 0 called MPI_Send at handles.c:@value, 1, old@ with a datatype that it had freed",
    ),
    (
        "reduction",
        "called MPI_Allreduce at handles.c:@MPI_Allreduce(@ with a reduction that they had freed",
    ),
    (
        "communicator",
        "called MPI_Comm_size at handles.c:@MPI_Comm_size(old@ with a communicator that they had freed",
    ),
];

/// Whether it is told after a run with each library.
fn are_told(source: &str, ranks: usize, cases: &[Case]) {
    let _turn = a_turn();
    let scratch = Scratch::new(source);
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        for (word, says) in cases {
            let recording = mpi.record(&scratch, source, ranks, word);
            // MPICH's launcher ends all ranks where MPI ends one, whatever they had recorded by then.
            if mpi == Mpi::Mpich && recording.outcome.status != 0 {
                continue;
            }
            let progress = recording.json(&["progress"]);
            let verdict = progress["verdict"].as_str().expect("a sentence");
            let says = with_lines(source, says);
            assert!(
                verdict.contains(&says),
                "{mpi:?} {word}: {says}\n{progress:#}"
            );
        }
    }
}

/// Whether nothing is.
fn are_fine(source: &str, ranks: usize, words: &[&str]) {
    let _turn = a_turn();
    let scratch = Scratch::new(&format!("{source}-fine"));
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        for word in words {
            let progress = mpi
                .record(&scratch, source, ranks, word)
                .json(&["progress"]);
            let verdict = format!("no task hangs: all {ranks} ranks came to their end");
            assert_eq!(progress["verdict"], verdict, "{mpi:?} {word}: {progress:#}");
            assert_eq!(
                progress["loose_ends"],
                serde_json::json!([]),
                "{mpi:?} {word}"
            );
        }
    }
}

#[test]
fn of_windows() {
    are_told("windows.c", 4, WINDOWS);
    are_fine("windows.c", 4, &["fine"]);
}

#[test]
fn of_handles() {
    are_told("handles.c", 2, HANDLES);
    are_fine("handles.c", 2, &["fine", "threads"]);
}
