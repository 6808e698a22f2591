//! Memory that MPI uses while others use it, and buffers that it cannot have: `progress` tells of them, with both lines.

use lockstep_testkit::Scratch;
use lockstep_testkit::mpi::{Mpi, a_turn, with_lines};

/// What is wrong, and what the sentence says, where `@text@` is the line of the source with that text.
const CASES: [(&str, &str); 12] = [
    (
        "receives",
        "rank 0 called MPI_Irecv at overlaps.c:@a + second, 4, MPI_INT, 1, 2@, which writes into the buffer of MPI_Irecv at \
         overlaps.c:@Irecv(a, 4, MPI_INT, 1, 1@ while that runs",
    ),
    (
        "written",
        "ranks 0-1 called MPI_Recv at overlaps.c:@Recv(a + first@, which writes into the buffer of MPI_Isend at \
         overlaps.c:@// sent@ while that runs",
    ),
    (
        "early",
        "ranks 0-1 called MPI_Send at overlaps.c:@Send(a + first@, which reads from the buffer of MPI_Irecv at \
         overlaps.c:@Irecv(a, 4, MPI_INT, other@ while that runs",
    ),
    (
        "persistent",
        "ranks 0-1 called MPI_Start at overlaps.c:@Start(&send)@, which reads from the buffer of MPI_Recv_init at \
         overlaps.c:@Recv_init(a@ while that runs (2 times each)",
    ),
    (
        "columns",
        "ranks 0-1 called MPI_Irecv at overlaps.c:@Irecv(a + second, 1, column@, which writes into the buffer of MPI_Irecv",
    ),
    (
        "structures",
        "rank 0 called MPI_Irecv at overlaps.c:@Irecv(places + second@, which writes into the buffer of MPI_Irecv",
    ),
    (
        "indexed",
        "rank 0 called MPI_Irecv at overlaps.c:@Irecv(a + second, 3@, which writes into the buffer of MPI_Irecv",
    ),
    (
        "broadcast",
        "rank 1 called MPI_Bcast at overlaps.c:@Bcast(a + first@, which writes into the buffer of MPI_Isend",
    ),
    (
        "gotten",
        "rank 0 called MPI_Get at overlaps.c:@Get(a + second@, which writes into the buffer of MPI_Get at \
         overlaps.c:@Get(a, 4@ while that runs",
    ),
    (
        "aliased",
        "called MPI_Allreduce at overlaps.c:@// both@, whose send and receive buffers overlap",
    ),
    (
        "place",
        "called MPI_Allgather at overlaps.c:@Allgather(@ with recvbuf MPI_IN_PLACE",
    ),
    (
        "null",
        "rank 0 called MPI_Send at overlaps.c:@Send(NULL@ with buf NULL for 4 MPI_INT",
    ),
];

#[test]
fn memory_that_two_use() {
    let _turn = a_turn();
    let scratch = Scratch::new("overlaps");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        for (lapse, says) in CASES {
            // A library that refuses the call may end the job.
            let progress = mpi
                .record(&scratch, "overlaps.c", 2, lapse)
                .json(&["progress"]);
            let verdict = progress["verdict"].as_str().expect("a sentence");
            let says = with_lines("overlaps.c", says);
            assert!(
                verdict.contains(&says),
                "{mpi:?} {lapse}: {says}\n{progress:#}"
            );
        }
    }
}

#[test]
fn memory_that_is_used_in_turn() {
    let _turn = a_turn();
    let scratch = Scratch::new("overlaps-fine");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let fine = mpi
            .record(&scratch, "overlaps.c", 2, "fine")
            .json(&["progress"]);
        let verdict = "no task hangs: all 2 ranks came to their end";
        assert_eq!(fine["verdict"], verdict, "{mpi:?}: {fine:#}");
        assert_eq!(fine["loose_ends"], serde_json::json!([]));
    }
}
