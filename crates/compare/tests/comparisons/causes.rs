//! What a trace does because of another one comes after that one: who waits at a barrier, who started the process, who is waited for.
#![allow(clippy::unwrap_used)]

use crate::made::Made;
use crate::odd_even;
use lockstep_compare::{CausalOrder, Comparison, Culprit, Options, compare, compare_in_order};
use lockstep_trace::{End, EndKind, Event, FunctionId, ProcessName, Run, Thread, TraceName};
use std::collections::BTreeMap;

const NAMES: [&str; 14] = [
    "main",
    "step",
    "GOMP_barrier",
    "GOMP_parallel",
    "kick._omp_fn.0",
    "drift._omp_fn.0",
    "sum._omp_fn.0",
    "GOMP_critical_start",
    "GOMP_critical_end",
    "fork",
    "sigsuspend",
    "kill",
    "abort",
    "MPI_Recv",
];

/// One process of another kind than a rank, with these threads.
fn process(threads: Vec<Vec<Event>>) -> Run {
    let mut run = odd_even::run(&NAMES, vec![Vec::new()]);
    let threads = threads.into_iter().zip(0..);
    run.processes[0].threads = threads
        .map(|(events, number)| Thread::from_events(TraceName::new(0, number), events))
        .collect();
    run.is_mpi = false;
    run
}

fn sweep(normal: &Run, faulty: &Run) -> Comparison {
    compare(&[normal], faulty, &Options::default(), &|_, _| {}).unwrap()
}

/// So many steps, each with a barrier behind it; perhaps broken off in the last one.
fn steps(count: usize, is_open: bool) -> Vec<Event> {
    let mut trace = Made::new(&NAMES);
    trace.call("main", |trace| {
        for _ in 0..count {
            trace.leaf("step");
            trace.leaf("GOMP_barrier");
        }
    });
    let end = trace.events.len() - if is_open { 2 } else { 0 };
    trace.events.truncate(end);
    trace.events
}

fn killed(mut run: Run) -> Run {
    run.processes[0].end.kind = EndKind::Killed;
    run
}

#[test]
fn who_does_not_come_to_the_barrier_comes_before_those_who_wait_there() {
    let normal = process((0..4).map(|_| steps(20, false)).collect());
    let faulty = (0..4).map(|thread| match thread {
        2 => steps(9, false),
        _ => steps(10, true),
    });
    let found = sweep(&normal, &killed(process(faulty.collect())));
    assert_eq!(found.suspects[0].trace, TraceName::new(0, 2));
    assert!(
        (found.verdict)
            .starts_with("thread 2 does not come to GOMP_barrier, where 3 of its process wait"),
        "{}",
        found.verdict
    );
    // One of them waits elsewhere: nobody says for whom.
    let faulty = (0..4).map(|thread| match thread {
        2 => steps(9, false),
        _ => {
            let mut events = steps(10, true);
            events.truncate(events.len() - if thread == 0 { 2 } else { 0 });
            events
        }
    });
    let found = sweep(&normal, &killed(process(faulty.collect())));
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(0, 0),
        "{}",
        found.verdict
    );
}

#[test]
fn who_is_still_at_work_comes_before_those_who_wait() {
    let normal = process((0..4).map(|_| steps(20, false)).collect());
    let faulty = (0..4).map(|thread| {
        let mut events = steps(10, true);
        // Within `step`, of a later iteration.
        if thread == 3 {
            events = steps(12, true);
            events.truncate(events.len() - 2);
        }
        events
    });
    let found = sweep(&normal, &killed(process(faulty.collect())));
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(0, 3),
        "{}",
        found.verdict
    );
}

#[test]
fn which_region_is_run_is_no_timing_where_a_region_takes_a_lock() {
    let run = |names: [&str; 3]| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            for name in names {
                trace.call("GOMP_parallel", |trace| {
                    trace.call(name, |trace| {
                        if name.starts_with("sum") {
                            trace.leaf("GOMP_critical_start");
                            trace.leaf("GOMP_critical_end");
                        }
                    });
                });
            }
        });
        process(vec![trace.events])
    };
    let normal = run(["kick._omp_fn.0", "drift._omp_fn.0", "sum._omp_fn.0"]);
    let faulty = run(["drift._omp_fn.0", "kick._omp_fn.0", "sum._omp_fn.0"]);
    let found = sweep(&normal, &faulty);
    assert!(
        found.differs && found.verdict.contains("calls drift._omp_fn.0"),
        "{}",
        found.verdict
    );
}

/// What started a program and tells how that went, and the program.
fn started(kills: bool, program: Vec<Event>) -> Run {
    let mut wrapper = Made::new(&NAMES);
    wrapper.call("main", |trace| {
        trace.leaf("fork");
        trace.leaf("sigsuspend");
        if kills {
            trace.leaf("kill");
        }
    });
    let mut run = odd_even::run(&NAMES, vec![wrapper.events, program]);
    run.is_mpi = false;
    for process in &mut run.processes {
        (process.is_mpi, process.rank) = (false, None);
    }
    run.processes[0].program = "/usr/bin/timeout".into();
    run
}

#[test]
fn who_started_a_process_answers_to_how_that_went() {
    let normal = started(false, steps(20, false));
    let found = sweep(&normal, &started(true, steps(10, true)));
    let suspects: Vec<u32> = (found.suspects.iter())
        .map(|it| it.trace.process.rank)
        .collect();
    assert_eq!(suspects, [1, 0], "{}", found.verdict);
    // Alone it is told.
    let found = sweep(&normal, &started(true, steps(20, false)));
    assert_eq!(found.suspects[0].trace, TraceName::new(0, 0));
}

/// Rank 2 is known to have done something.
struct Deed;

impl CausalOrder for Deed {
    fn time(&self, _: TraceName, event: u64) -> u64 {
        event
    }

    fn heard_of(&self, _: TraceName, _: u64) -> BTreeMap<TraceName, u64> {
        BTreeMap::new()
    }

    fn culprits(&self) -> Vec<Culprit> {
        vec![Culprit {
            process: ProcessName::rank(2),
            deed: Some("sent rank 3 a message that nobody received".to_owned()),
        }]
    }
}

#[test]
fn what_somebody_did_that_others_wait_for_is_told() {
    let normal = odd_even::run(&NAMES, (0..4).map(|_| steps(20, false)).collect());
    let faulty = odd_even::run(&NAMES, (0..4).map(|_| steps(10, true)).collect());
    let options = Options::default();
    let found = compare_in_order(&[&normal], &faulty, &options, Some(&Deed), &|_, _| {}).unwrap();
    assert!(
        (found.verdict).starts_with("rank 2 sent rank 3 a message that nobody received; "),
        "{}",
        found.verdict
    );
}

/// Four ranks, of which rank 2 goes on to this call in its third step and ends in it.
fn ended(call: &str, kind: EndKind, code: i32) -> Run {
    let trace = |rank| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            trace.leaf("step");
            trace.leaf("step");
            trace.leaf(if rank == 2 { call } else { "kick._omp_fn.0" });
        });
        if rank == 2 {
            trace.events.truncate(trace.events.len() - 2);
        }
        trace.events
    };
    let mut run = odd_even::run(&NAMES, (0..4).map(trace).collect());
    run.processes[2].end = End {
        kind,
        code: Some(code),
        certain: true,
    };
    run
}

#[test]
fn who_ended_by_a_call_is_not_stuck_in_it() {
    let events = |rank: usize| {
        let threads = &ended("kick._omp_fn.0", EndKind::Exited, 0).processes[rank].threads;
        threads[0].events().collect::<Vec<Event>>()
    };
    let normal = odd_even::run(&NAMES, [0, 1, 0, 3].map(events).to_vec());
    let found = sweep(&normal, &ended("abort", EndKind::Signalled, 6));
    let said = "rank 2 calls abort where the normal run calls kick._omp_fn.0, in main()";
    assert!(found.verdict.starts_with(said), "{}", found.verdict);
    assert!(
        found.verdict.contains(", and ended (signal 6); "),
        "{}",
        found.verdict
    );
    // Where the call and the return of a function were recorded together, it may have ended in that.
    let mut crashed = ended("abort", EndKind::Signalled, 11);
    let step = NAMES.iter().position(|name| *name == "step");
    let step = FunctionId(u32::try_from(step.expect("a function")).expect("few names"));
    crashed.processes[2].threads[0].open_leaf = Some(step);
    let found = sweep(&normal, &crashed);
    let said = "and ended (signal 11, perhaps in its last call of step); ";
    assert!(found.verdict.contains(said), "{}", found.verdict);
    // In a call that waits it was stuck before, and its launcher's end is not its own.
    let mut waits = ended("MPI_Recv", EndKind::Exited, 195);
    let mut launcher = ended("kill", EndKind::Exited, 0).processes.remove(0);
    (launcher.name, launcher.rank) = (ProcessName::rank(4), None);
    (launcher.program, launcher.is_mpi) = ("/usr/bin/orterun".into(), false);
    launcher.threads.clear();
    (launcher.end.kind, launcher.end.code) = (EndKind::Killed, None);
    waits.processes.push(launcher);
    let found = sweep(&normal, &waits);
    let said = "rank 2 is stuck in MPI_Recv, in main()";
    assert!(found.verdict.starts_with(said), "{}", found.verdict);
    assert!(!found.verdict.contains("195"), "{}", found.verdict);
}
