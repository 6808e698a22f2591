//! Mistakes in the use of MPI and of threads beside it: `record --hang` says who waits for what, while the
//! job hangs, and `progress` says the same of what it left.

use lockstep_testkit::command::few_at_once;
use lockstep_testkit::mpi::{Mpi, a_turn};
use lockstep_testkit::{Recording, Scratch, record, record_ended};
use std::path::Path;

/// A mistake, how it hangs, and parts of the sentence.
type Case = (&'static str, &'static str, &'static [&'static str]);

const MESSAGES: &[Case] = &[
    (
        "cycle3",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv",
            "for a message from rank 2 with tag 4",
            "rank 3 waits in MPI_Finalize",
        ],
    ),
    (
        "tag_order",
        "deadlock",
        &[
            "rank 0 waits in MPI_Ssend",
            "from rank 0 with tag 2, which sent tag 1",
        ],
    ),
    (
        "wrong_source",
        "deadlock",
        &[
            "for a message from rank 2 with tag 3; rank 0 sent rank 1 a message with tag 3 that nobody received",
        ],
    ),
    (
        "other_communicator",
        "deadlock",
        &[
            "rank 0 sent rank 1 a message with tag 3 of #1 {0-3} that nobody received (MPI_Send at bugs.c:",
            "): rank 1 waits for one of MPI_COMM_WORLD",
        ],
    ),
    (
        "wildcard_steals",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv",
            // The second of two receives, in no loop.
            "in wildcard_steals(), for a message from rank 1",
            "; a message of rank 1 was taken before by MPI_Recv at bugs.c:",
        ],
    ),
    (
        "waitany_never",
        "deadlock",
        &[
            "rank 0 waits in MPI_Waitany",
            "for a message from anybody with tag 3",
        ],
    ),
    (
        "persistent_alone",
        "deadlock",
        &["rank 0 waits in MPI_Wait", "from rank 1 with tag 3"],
    ),
    (
        "persistent_unstarted",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv",
            "; rank 1 did not start its persistent send to rank 0 with tag 3",
        ],
    ),
    (
        "persistent_once",
        "deadlock",
        &["; rank 1 did not start its persistent send to rank 0 with tag 3 again"],
    ),
    (
        "startall_short",
        "deadlock",
        &[
            "rank 2 waits in MPI_Waitall at bugs.c:",
            "; rank 1 waited in MPI_Waitall at bugs.c:",
            " for its persistent send to rank 2 with tag 5, which it had not started again",
        ],
    ),
    (
        "probed_only",
        "deadlock",
        &[
            "rank 2 waits in MPI_Ssend at bugs.c:",
            " for rank 0 to receive a message with tag 3; rank 0 did not receive the message that it took in MPI_Mprobe at bugs.c:",
            "; rank 0 left out MPI_Mrecv at bugs.c:",
        ],
    ),
    (
        "intercomm_receive",
        "deadlock",
        &["rank 1 waits in MPI_Recv", "from rank 2 with tag 3"],
    ),
    (
        "one_sends_twice",
        "deadlock",
        &[
            "from anybody with tag 3; rank ",
            " sent rank 0 a message with tag 2",
            "that nobody received",
        ],
    ),
    (
        "stop_twice",
        "deadlock",
        &[
            "rank 2 waits in MPI_Recv at bugs.c:",
            ", for a message from rank 0; rank 0 sent rank 3 a message with tag 2 that nobody received (MPI_Send at bugs.c:",
        ],
    ),
    (
        "worker_tag",
        "deadlock",
        &[
            "rank 2 waits in MPI_Recv",
            "; rank 2 sent rank 0 a message with tag 1 instead of 2 in MPI_Send at bugs.c:",
        ],
    ),
    (
        "numbered_receive",
        "deadlock",
        &["; rank 3 asked rank 2 for a message with tag 5 instead of 4 in MPI_Irecv at bugs.c:"],
    ),
    (
        "numbered_send",
        "deadlock",
        &["; rank 2 sent rank 3 a message with tag 5 instead of 4 in MPI_Send at bugs.c:"],
    ),
    (
        "numbered_source",
        "deadlock",
        &[
            "; rank 3 asked rank 1 for a message with tag 4 instead of rank 2 in MPI_Irecv at bugs.c:",
        ],
    ),
    (
        "fewer_rounds",
        "deadlock",
        &[
            "rank 2 waits in MPI_Barrier",
            "rank 3 waits in MPI_Sendrecv",
            "iteration 10",
        ],
    ),
    (
        "one_of_two",
        "deadlock",
        &[
            "rank 3 waits in MPI_Recv",
            "rank 2 left out MPI_Send at bugs.c:",
            " for rank 3 with tag 4, unlike 6 times before between the same calls",
        ],
    ),
    (
        "halo_first",
        "deadlock",
        &[
            "rank 3 waits in MPI_Waitall",
            "rank 2 left out MPI_Send at bugs.c:",
            " for rank 3 with tag 4, unlike for the other with which it exchanges messages",
        ],
    ),
    (
        "min_for_sum",
        "deadlock",
        &[
            "rank 2 waits in MPI_Recv",
            "; rank 1 calls MPI_Allreduce at bugs.c:",
            " with MPI_MIN where ranks 0,2-3 call MPI_Allreduce at bugs.c:",
            ": operation 6 of MPI_COMM_WORLD",
        ],
    ),
    (
        "prints_first",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv",
            "; ranks 1-3 wait in MPI_Allreduce",
            "rank 3 left out MPI_Send at bugs.c:",
        ],
    ),
];

const COLLECTIVES: &[Case] = &[
    (
        "split_missing",
        "deadlock",
        &[
            "rank 2 waits in MPI_Allreduce",
            "for rank 3 to call MPI_Allreduce of #",
        ],
    ),
    (
        "grid_row",
        "deadlock",
        // That is known where it is known who is in a row: rank 2 waits there for rank 3, and the others made the call.
        &[
            "rank 2 waits in MPI_Allreduce",
            "for rank 3 to call MPI_Allreduce of #3 {2,3}",
            "; rank 3 went on without calling MPI_Allreduce",
        ],
    ),
    (
        "rows_and_columns",
        "deadlock",
        // Two calls a round: in which it is, the calls do not tell.
        &[" in sum(), for rank 2 to call MPI_Allreduce of #"],
    ),
    (
        "two_orders",
        "deadlock",
        &[
            "ranks 0-1,3 wait in MPI_Barrier",
            "for rank 2 to call MPI_Barrier of #1",
            "for ranks 0-1,3 to call MPI_Barrier of #2",
        ],
    ),
    (
        "mixed_barrier",
        "deadlock",
        &[
            "rank 1 calls MPI_Barrier",
            "where ranks 0,2-3 call MPI_Ibarrier",
        ],
    ),
    (
        "iallreduce_missing",
        "deadlock",
        &[
            "rank 1 calls MPI_Finalize",
            "where ranks 0,2-3 call MPI_Iallreduce",
        ],
    ),
    (
        "gather_missing",
        "deadlock",
        &[
            "rank 2 calls MPI_Finalize",
            "where ranks 0-1,3 call MPI_Gather",
        ],
    ),
    (
        "intercomm_barrier",
        "deadlock",
        &[
            "ranks 0-1 wait in MPI_Barrier",
            "for rank 3 to call MPI_Barrier of #",
        ],
    ),
    (
        "intercomm_tags",
        "deadlock",
        &[
            "rank 0 waits in MPI_Intercomm_create",
            "for a message from rank 2 with tag 5, which sent tag 6",
        ],
    ),
    (
        "intercomm_nobody",
        "deadlock",
        &[
            "rank 1 calls MPI_Bcast",
            " with root MPI_PROC_NULL instead of MPI_ROOT where ranks 2-3 call MPI_Bcast",
        ],
    ),
    (
        "intercomm_leaders",
        "deadlock",
        &[
            "rank 0 waits in MPI_Intercomm_create",
            "for a message from rank 3 with tag 9; rank 2 waits in MPI_Intercomm_create",
        ],
    ),
    (
        "file_left",
        "deadlock",
        &[
            "rank 2 calls MPI_File_close",
            "where ranks 0-1,3 call MPI_File_set_view",
            "operation 1 of a file",
        ],
    ),
    (
        "neighbours_missing",
        "deadlock",
        &["for rank 2 to call MPI_Neighbor_allgather of #1"],
    ),
    (
        "start_without_post",
        "deadlock",
        &[
            "rank 0 waits in MPI_Win_start",
            "for rank 1 to call MPI_Win_post",
        ],
    ),
    (
        "start_for_range",
        "deadlock",
        &[
            "rank 0 waits in MPI_Win_start",
            "for rank 2 to call MPI_Win_post; rank 2 waits in MPI_Win_free",
        ],
    ),
    (
        "post_without_complete",
        "deadlock",
        &["rank 1 waits in MPI_Win_wait", "to call MPI_Win_complete"],
    ),
    (
        "windows_crossed",
        "deadlock",
        &[
            "ranks 0-1,3 wait in MPI_Win_free at bugs.c:",
            "for rank 2 to call MPI_Win_free of window 1; rank 2 waits in MPI_Win_free",
            "for ranks 0-1,3 to call MPI_Win_free of window 2",
        ],
    ),
    (
        "lock_held",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv",
            "rank 2 waits in MPI_Win_lock",
            "for rank 0 to unlock the window of rank 1",
        ],
    ),
];

const THREADS: &[Case] = &[
    (
        "omp_barrier",
        "slow",
        &[
            "rank 1 is still in GOMP_barrier",
            "for thread 1.2 to come; thread 1.2 is in pause",
            "look there",
        ],
    ),
    (
        "omp_barrier_left",
        "deadlock",
        &[
            "rank 1 waits in GOMP_barrier at bugs.c:",
            ", for thread 1.2 to come; thread 1.2 is over; ",
            " thread 1.2 left out GOMP_barrier at bugs.c:",
            " in omp_step() (call 5), unlike those that wait there",
        ],
    ),
    (
        "omp_critical_first",
        "deadlock",
        &[
            "rank 1 waits in MPI_Recv",
            "for a message from rank 0 with tag 3; thread 1.1 waits in GOMP_critical_start",
            "for a lock that thread 1.0 holds",
        ],
    ),
    (
        "omp_critical_receive",
        "deadlock",
        &[
            "thread 1.1 waits in MPI_Recv",
            "for a message from rank 0 with tag 3",
            "GOMP_critical_name_start",
        ],
    ),
    (
        "ab_ba",
        "deadlock",
        &[
            "rank 1 waits in pthread_mutex_lock",
            "in ab_ba(), for a lock that thread 1.1 holds",
            "in b_then_a(), for a lock that thread 1.0 holds",
        ],
    ),
    (
        "never_unlocked",
        "deadlock",
        &["for a lock that thread 1.1 holds; thread 1.1 is over"],
    ),
    (
        "never_signalled",
        "deadlock",
        &["for thread 1.1 to end; thread 1.1 waits in pthread_cond_wait"],
    ),
    (
        "join_receiver",
        "deadlock",
        &[
            "for thread 1.1 to end; thread 1.1 waits in MPI_Recv",
            "for a message from rank 0 with tag 3",
        ],
    ),
    (
        "barrier_left",
        "deadlock",
        &[
            "rank 1 waits in pthread_barrier_wait at bugs.c:",
            ", for another thread to come; thread 1.2 is over",
        ],
    ),
    (
        "lock_across_receive",
        "deadlock",
        &["for a lock that thread 1.1 holds; thread 1.1 waits in MPI_Recv"],
    ),
];

const POLLS: &[Case] = &[
    (
        "test_loop",
        "livelock",
        &[
            "rank 0 waits calling MPI_Test on and on",
            "for a message from rank 1 with tag 3",
        ],
    ),
    (
        "window_poll",
        "slow",
        &[
            "ranks 0,2-3 wait in MPI_Win_free at bugs.c:",
            "; rank 1 is ",
            ": look there",
        ],
    ),
    (
        "test_loop_copy",
        "livelock",
        &[
            "rank 1 sent rank 0 a message with tag 3 of MPI_COMM_WORLD that nobody received (MPI_Send at bugs.c:",
            "): rank 0 waits for one of #1 {0-3}",
        ],
    ),
    (
        "wildcard_untold",
        "slow",
        &[
            "rank 0 is still in MPI_Recv at bugs.c:",
            "for a message from rank 2 with tag 3, which MPI_Recv at bugs.c:",
            " from anybody may have taken: look there",
        ],
    ),
    (
        "iprobe_loop",
        "livelock",
        &[
            "rank 0 waits calling MPI_Iprobe on and on",
            "for a message from rank 1 with tag 3",
        ],
    ),
    (
        "consensus",
        "livelock",
        &[
            "rank 1 waits calling MPI_",
            ", for rank 2 to receive a message with tag 3, or for a message; ",
            "rank 2 waits for one with tag 4",
        ],
    ),
];

const FORTRAN: &[Case] = &[
    (
        "heads",
        "deadlock",
        &[
            "rank 0 waits in MPI_Recv at bugs.f90:",
            "for a message from rank 1 with tag 3",
        ],
    ),
    (
        "tag",
        "deadlock",
        &[
            "rank 1 waits in MPI_Recv",
            "from rank 0 with tag 8, which sent tag 7",
        ],
    ),
    (
        "order",
        "deadlock",
        &[
            "rank 2 calls MPI_Barrier",
            "where ranks 0-1,3 call MPI_Allreduce",
        ],
    ),
];

fn check(source: &str, flags: &[&str], patience: &str, cases: &[Case]) {
    if let Some(mpi) = Mpi::ALL.into_iter().find(|mpi| mpi.is_here()) {
        check_with(mpi, source, flags, patience, cases);
    }
}

fn check_with(mpi: Mpi, source: &str, flags: &[&str], patience: &str, cases: &[Case]) {
    let _turn = a_turn();
    let program = mpi.recipe(source).flags(flags).build();
    few_at_once(cases, |case| check_case(mpi, &program, patience, case));
}

fn check_case(mpi: Mpi, program: &Path, patience: &str, case: &Case) {
    let (bug, kind, says) = case;
    let scratch = Scratch::new("bugs");
    let recording = run(mpi, &scratch, (program, bug), 4, Some(patience));
    let live = &recording.outcome.stderr;
    assert_eq!(
        recording.outcome.status, 1,
        "{bug}: {:#?}",
        recording.outcome
    );
    let progress = recording.json(&["progress"]);
    let told = format!("{bug}: {live}\n{progress:#}");
    assert_eq!(progress["kind"], *kind, "{told}");
    let verdict = progress["verdict"].as_str().expect("a sentence");
    for part in *says {
        assert!(
            verdict.contains(part) && live.contains(part),
            "{part}: {told}"
        );
    }
}

/// A run with so many ranks, which is watched where there is patience.
fn run(
    mpi: Mpi,
    scratch: &Scratch,
    (program, bug): (&Path, &str),
    ranks: usize,
    patience: Option<&str>,
) -> Recording {
    let mut words = mpi.launch(ranks);
    words.extend([program.display().to_string(), bug.to_owned()]);
    let watched = patience.map(|it| ["--hang", it, "--on-hang", "stop"]);
    record(scratch, watched.as_ref().map_or(&[], |it| it), &words)
}

/// The same of a bug of `bugs.c`, alone; none where there is no MPI.
fn run_alone(
    scratch: &Scratch,
    bug: &str,
    ranks: usize,
    patience: Option<&str>,
) -> Option<Recording> {
    let mpi = Mpi::ALL.into_iter().find(|mpi| mpi.is_here())?;
    let _turn = a_turn();
    let program = mpi.recipe("bugs.c").flags(C).build();
    Some(run(mpi, scratch, (&program, bug), ranks, patience))
}

const C: &[&str] = &["-g", "-O1", "-fopenmp"];

/// Where patience has to run out: longer than ranks are silent in `MPI_Init` on a busy machine.
const PATIENCE: &str = "12";

#[test]
fn messages() {
    check("bugs.c", C, "60", MESSAGES);
}

#[test]
fn waits_for_no_request() {
    let waits: &[_] = &[
        "ranks 1-3 wait in MPI_Barrier at bugs.c:",
        "; rank 0 is ",
        "look there; rank 0 called MPI_Waitany at bugs.c:",
        " again and again with null requests only",
    ];
    let asks: &[_] = &[
        "ranks 1-3 wait in MPI_Barrier at bugs.c:",
        "; rank 0 is ",
        "look there; rank 0 called MPI_Testsome at bugs.c:",
        " again and again with null requests only",
    ];
    let cases = [
        ("waitany_null", "slow", waits),
        ("testsome_null", "slow", asks),
    ];
    check("bugs.c", C, PATIENCE, &cases);
}

/// Told of what is left, when no thread goes on.
#[test]
fn two_threads_in_mpi_at_once() {
    let scratch = Scratch::new("bugs-serialized");
    let Some(recording) = run_alone(&scratch, "serialized", 2, Some("60")) else {
        return;
    };
    let progress = recording.json(&["progress"]);
    let verdict = progress["verdict"].as_str().expect("a sentence");
    assert_eq!(progress["kind"], "deadlock", "{progress:#}");
    for part in [
        "; rank 1 was in MPI_Recv at bugs.c:",
        " and in MPI_Recv in thread 1.",
        "at once, which two threads may not be at MPI_THREAD_SERIALIZED",
    ] {
        assert!(verdict.contains(part), "{progress:#}");
    }
}

#[test]
fn who_was_to_make_it_end_by_itself() {
    let edges: &[Case] = &[(
        "edges_differ",
        "slow",
        &[
            "; rank 2 calls MPI_Dist_graph_create_adjacent at bugs.c:",
            " with no edge from rank 1 where rank 1 calls MPI_Dist_graph_create_adjacent at bugs.c:",
            " with an edge to rank 2: operation 1 of MPI_COMM_WORLD",
        ],
    )];
    check("bugs.c", C, PATIENCE, edges);
    // Of these, only MPICH knows partitioned messages and persistent collective operations yet.
    let partition: &[Case] = &[(
        "partition_left",
        "slow",
        &[
            "; rank 0 waited in MPI_Wait at bugs.c:",
            " for a send of which it had not marked partition 2 of 4 ready (MPI_Pready)",
        ],
    )];
    let starts: &[Case] = &[(
        "starts_crossed",
        "deadlock",
        &[
            "rank 2 calls MPI_Start of MPI_Bcast_init at bugs.c:",
            " where ranks 0-1,3 call MPI_Start of MPI_Allreduce_init at bugs.c:",
        ],
    )];
    if Mpi::Mpich.is_here() {
        check_with(Mpi::Mpich, "bugs.c", C, PATIENCE, partition);
        check_with(Mpi::Mpich, "bugs.c", C, PATIENCE, starts);
    }
}

/// In which order the threads of a rank came to them is not recorded.
#[test]
fn collectives_of_several_threads() {
    let missing: &[Case] = &[(
        "singles_missing",
        "deadlock",
        &[
            "rank 2 calls MPI_Bcast at bugs.c:",
            " where ranks 0-1,3 call MPI_Allreduce at bugs.c:",
            ": operation 15 of MPI_COMM_WORLD",
        ],
    )];
    check("bugs.c", C, PATIENCE, missing);
    let scratch = Scratch::new("bugs-singles");
    let Some(recording) = run_alone(&scratch, "singles", 4, None) else {
        return;
    };
    let progress = recording.json(&["progress"]);
    let verdict = "no task hangs: all 4 ranks came to their end";
    assert_eq!(progress["verdict"], verdict, "{progress:#}");
    assert_eq!(
        progress["mismatches"],
        serde_json::json!([]),
        "{progress:#}"
    );
}

#[test]
fn collectives_and_windows() {
    check("bugs.c", C, "60", COLLECTIVES);
}

#[test]
fn with_mpich() {
    if Mpi::Mpich.is_here() {
        check_with(Mpi::Mpich, "bugs.c", C, "60", MESSAGES);
        check_with(Mpi::Mpich, "bugs.c", C, "60", &COLLECTIVES[..5]);
        check_with(Mpi::Mpich, "bugs.c", C, PATIENCE, &THREADS[..4]);
    }
}

#[test]
fn threads_within_a_rank() {
    check("bugs.c", C, PATIENCE, THREADS);
}

#[test]
fn polling() {
    check("bugs.c", C, PATIENCE, POLLS);
}

#[test]
fn in_fortran() {
    check("bugs.f90", &["-g", "-O1", "-cpp"], "60", FORTRAN);
    check("bugs.f90", &["-g", "-O1", "-cpp", "-DOLD"], "60", FORTRAN);
}

/// The tags are the same; what rank 1 sends in the one has nothing to do with what rank 0 waits for in the other.
#[test]
fn a_message_of_another_communicator_explains_nothing() {
    let _turn = a_turn();
    let scratch = Scratch::new("bugs-copy");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("bugs.c").flags(C).build();
        let mut words = mpi.launch(4);
        words.extend([program.display().to_string(), "ring_and_copy".to_owned()]);
        let options = ["--hang", "60", "--on-hang", "stop"];
        let recording = record(&scratch, &options, &words);
        let progress = recording.json(&["progress"]);
        let told = format!("{mpi:?}: {progress:#}");
        assert_eq!(progress["kind"], "deadlock", "{told}");
        let causes = progress["causes"].as_array().expect("a list");
        assert!(causes.iter().all(|it| it["task"] == 2), "{told}");
        assert!(!causes.is_empty(), "{told}");
        let verdict = progress["verdict"].as_str().expect("a sentence");
        assert!(!verdict.contains("rank 1 sen"), "{told}");
    }
}

/// Whatever ends a process by a signal is a crash, wherever it was; a status is none, and is told.
#[test]
fn what_ends_a_rank_behind_finalize() {
    let _turn = a_turn();
    let scratch = Scratch::new("bugs-exit");
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        for (word, says) in [
            (
                "handler",
                "rank 1 ended (signal 11) in handler(), perhaps in its last call of touch() after MPI_Finalize at at_exit.c:",
            ),
            (
                "destructor",
                "rank 1 ended (signal 11) in destructor(), perhaps in its last call of touch() after MPI_Finalize at at_exit.c:",
            ),
            (
                "thread",
                "rank 1 ended (signal 11) in thread 1.1, in outlive()",
            ),
            ("abort", "rank 1 ended (signal 6) in abort at at_exit.c:"),
            (
                "status",
                "no task hangs: ranks 0,2 came to their end, rank 1 came to its end (exit 3)",
            ),
            ("well", "no task hangs: all 3 ranks came to their end"),
        ] {
            let recording = mpi.record_ended(&scratch, "at_exit.c", 3, word);
            let progress = recording.json(&["progress"]);
            let verdict = progress["verdict"].as_str().expect("a sentence");
            assert!(verdict.starts_with(says), "{mpi:?} {word}: {progress:#}");
            assert_eq!(progress["hang"], false, "{mpi:?} {word}: {progress:#}");
        }
    }
}

/// Launchers end the others for it, at once or a second later.
#[test]
fn who_dies_or_is_killed_first_is_named() {
    let scratch = Scratch::new("bugs-dies");
    let _turn = a_turn();
    for mpi in Mpi::ALL.into_iter().filter(|mpi| mpi.is_here()) {
        let program = mpi.recipe("bugs.c").flags(C).build();
        for (bug, says) in [
            ("dies", "rank 2 ended (signal 11) in raise at bugs.c:"),
            ("killed", "rank 2 ended (killed) in kill at bugs.c:"),
        ] {
            let mut words = mpi.launch(4);
            words.extend([program.display().to_string(), bug.to_owned()]);
            let recording = record_ended(&scratch, &words);
            let progress = recording.json(&["progress"]);
            let verdict = progress["verdict"].as_str().expect("a sentence");
            assert!(verdict.starts_with(says), "{mpi:?} {bug}: {progress:#}");
            assert!(verdict.contains("wait in MPI_Barrier"), "{verdict}");
        }
    }
}

#[test]
fn a_rank_that_was_stopped_is_told() {
    let scratch = Scratch::new("bugs-stopped");
    let Some(recording) = run_alone(&scratch, "stopped", 4, Some(PATIENCE)) else {
        return;
    };
    let outcome = recording.outcome;
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    let told = &outcome.stderr;
    assert!(told.contains("rank 2 is still in raise"), "{told}");
    assert!(told.contains("; rank 2 is stopped by a signal"), "{told}");
}
