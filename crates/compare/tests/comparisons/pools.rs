//! Threads that share work by a queue of their own: healthy runs are alike whoever does what, and what no normal run does is found
//! beside one normal run and beside several. And processes that do not come to their end.
#![allow(clippy::unwrap_used)]

use crate::made::{Made, Random};
use crate::odd_even;
use lockstep_compare::{Comparison, Options, Reason, compare};
use lockstep_trace::{End, EndKind, Event, Function, FunctionId, Run, Thread, TraceName};

const NAMES: [&str; 17] = [
    "main",
    "pthread_create",
    "put",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_signal",
    "pthread_join",
    "worker",
    "take",
    "pthread_cond_wait",
    "run",
    "square",
    "tree",
    "report",
    "free",
    "MPI_Send",
    "MPI_Recv",
];

const WORKERS: usize = 4;
const JOBS: usize = 60;

/// What goes wrong with one job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// It is not reported.
    NoReport,
    /// It is reported without the lock.
    NoLock,
    /// Its parts are done in the wrong order.
    Order,
    /// Its worker ends after it.
    Leaves,
    /// Nobody puts it into the queue.
    Lost,
}

fn locked(trace: &mut Made, within: impl FnOnce(&mut Made)) {
    trace.leaf("pthread_mutex_lock");
    within(trace);
    trace.leaf("pthread_mutex_unlock");
}

fn take(trace: &mut Made, random: &mut Random) {
    trace.call("take", |trace| {
        locked(trace, |trace| {
            (0..random.below(3)).for_each(|_| trace.leaf("pthread_cond_wait"));
        });
    });
}

fn job(trace: &mut Made, job: usize, bug: Bug) {
    trace.call("run", |trace| {
        match (job % 3, bug) {
            (0, _) => trace.leaf("square"),
            (1, _) => trace.leaf("tree"),
            (_, Bug::Order) => ["tree", "square"].into_iter().for_each(|it| trace.leaf(it)),
            _ => ["square", "tree"].into_iter().for_each(|it| trace.leaf(it)),
        }
        match bug {
            Bug::NoReport => {}
            Bug::NoLock => trace.leaf("report"),
            _ => trace.call("report", |trace| locked(trace, |_| {})),
        }
        trace.leaf("free");
    });
}

/// Four workers that take jobs as chance has it.
fn pool(seed: u64, bug: Bug) -> Run {
    const BAD: usize = 32;
    let mut random = Random::new(seed);
    let mut run = odd_even::run(&["main"], vec![Vec::new()]);
    let functions = NAMES.iter().map(|name| Function {
        name: (*name).into(),
        linkage: (*name).into(),
        image: "pool".into(),
        imported: false,
        source: None,
        calls: Vec::new(),
        code: lockstep_trace::Code::default(),
    });
    run.functions = functions.collect();
    let mut main = Made::new(&NAMES);
    main.call("main", |trace| {
        (0..WORKERS).for_each(|_| trace.leaf("pthread_create"));
        for job in 0..JOBS {
            if (bug, job) != (Bug::Lost, BAD) {
                trace.call("put", |trace| {
                    locked(trace, |trace| trace.leaf("pthread_cond_signal"));
                });
            }
        }
        (0..WORKERS).for_each(|_| trace.leaf("pthread_join"));
    });
    let mut gone = None;
    let mut shares = vec![Vec::new(); WORKERS];
    for job in 0..JOBS {
        let mut worker = random.below(WORKERS as u64) as usize;
        while gone == Some(worker) {
            worker = random.below(WORKERS as u64) as usize;
        }
        if (bug, job) == (Bug::Leaves, BAD) {
            gone = Some(worker);
        }
        if (bug, job) != (Bug::Lost, BAD) {
            shares[worker].push(job);
        }
    }
    let mut threads = vec![Thread::from_events(TraceName::new(0, 0), main.events)];
    for (number, share) in shares.into_iter().enumerate() {
        let mut trace = Made::new(&NAMES);
        trace.call("worker", |trace| {
            for each in share {
                take(trace, &mut random);
                let is_bad = each == BAD;
                job(trace, each, if is_bad { bug } else { Bug::None });
            }
            if gone != Some(number) {
                take(trace, &mut random);
            }
        });
        let name = TraceName::new(0, number as u32 + 1);
        threads.push(Thread::from_events(name, trace.events));
    }
    run.processes[0].threads = threads;
    run
}

fn against(normals: u64, first: u64, faulty: &Run) -> Comparison {
    let normals: Vec<Run> = (first..first + normals)
        .map(|it| pool(it, Bug::None))
        .collect();
    let normals: Vec<&Run> = normals.iter().collect();
    let mut options = Options {
        sweep: false,
        ..Options::default()
    };
    options.set_filter("everything").unwrap();
    compare(&normals, faulty, &options, &|_, _| {}).unwrap()
}

#[test]
fn who_does_what_is_no_difference() {
    for normals in [1, 2, 4] {
        for seed in 0..8 {
            let found = against(normals, 10 * seed, &pool(10 * seed + 9, Bug::None));
            assert!(!found.differs, "{normals}, {seed}: {}", found.verdict);
        }
    }
}

#[test]
fn what_nobody_did_is_found_whoever_does_it() {
    let bugs = [
        (
            Bug::NoReport,
            "calls free where the normal run calls report",
        ),
        (
            Bug::NoLock,
            "returns from report where the normal run calls pthread_mutex_lock",
        ),
        (Bug::Order, "calls square where the normal run calls report"),
        (
            Bug::Leaves,
            "returns from worker where the normal run calls take",
        ),
        (Bug::Lost, ""),
    ];
    let mut told_by_steps = 0;
    for (bug, told) in bugs {
        for normals in [1, 4] {
            if (bug, normals) == (Bug::Lost, 1) {
                continue; // One call less of hundreds is a trip count.
            }
            for seed in 0..3 {
                let found = against(normals, 10 * seed, &pool(10 * seed + 9, bug));
                assert!(
                    found.differs,
                    "{bug:?}, {normals}, {seed}: {}",
                    found.verdict
                );
                let by_steps = |it: &String| it.contains("go the same way");
                let p_decides = found.p.is_none_or(|p| p < 0.05);
                assert_eq!(found.notes.iter().any(by_steps), !p_decides);
                if !p_decides {
                    assert!(found.verdict.contains(told), "{bug:?}: {}", found.verdict);
                    told_by_steps += 1;
                }
            }
        }
    }
    assert!(told_by_steps > 3, "{told_by_steps}");
}

/// A master and its workers, each a process; of one worker the trace lacks what it does with its last piece of work.
fn ranks(seed: u64, idle: Option<usize>) -> Run {
    let mut random = Random::new(seed);
    let mut shares = [1; WORKERS];
    (WORKERS..JOBS / 2).for_each(|_| shares[random.below(WORKERS as u64) as usize] += 1);
    let mut master = Made::new(&NAMES);
    master.call("main", |trace| {
        trace.call("put", |trace| {
            (0..JOBS / 2).for_each(|_| {
                ["MPI_Recv", "MPI_Send"]
                    .into_iter()
                    .for_each(|it| trace.leaf(it))
            });
        });
    });
    let worker = |(number, share): (usize, usize)| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            trace.call("worker", |trace| {
                for piece in 0..share {
                    trace.leaf("MPI_Recv");
                    if idle != Some(number) || piece > 0 {
                        trace.leaf("run");
                    }
                    trace.leaf("MPI_Send");
                }
                trace.leaf("MPI_Recv");
            });
        });
        trace.events
    };
    let workers = shares.into_iter().enumerate().map(worker);
    odd_even::run(
        &NAMES,
        std::iter::once(master.events).chain(workers).collect(),
    )
}

#[test]
fn which_worker_of_a_master_has_how_much_is_no_difference() {
    for seed in 0..8 {
        let normals: Vec<Run> = (0..4).map(|it| ranks(10 * seed + it, None)).collect();
        let normals: Vec<&Run> = normals.iter().collect();
        let of = |faulty: &Run| compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap();
        let found = of(&ranks(10 * seed + 9, None));
        assert!(!found.differs, "{seed}: {} {:?}", found.verdict, found.p);
        let found = of(&ranks(10 * seed + 9, Some(2)));
        assert!(found.differs, "{seed}: {} {:?}", found.verdict, found.p);
        assert_eq!(
            found.suspects[0].trace,
            TraceName::new(3, 0),
            "{}",
            found.verdict
        );
    }
}

/// The run, of which traces end within their last call of a function, with this end.
fn broken_off(mut run: Run, within: &[(u32, &str)], kind: EndKind) -> Run {
    for (number, function) in within {
        let name = TraceName::new(0, *number);
        let mut events: Vec<Event> = run.trace(name).unwrap().events().collect();
        let place = NAMES.iter().position(|it| it == function).unwrap();
        let call = Event::Call(FunctionId(place as u32));
        let last = events.iter().rposition(|it| *it == call).unwrap();
        events.truncate(last + 1);
        run.processes[0].threads[*number as usize] = Thread::from_events(name, events);
    }
    run.processes[0].end = End {
        kind,
        code: (kind == EndKind::Signalled).then_some(11),
        certain: true,
    };
    run
}

#[test]
fn a_process_that_hangs_or_crashes_is_told_however_much_normal_runs_differ() {
    // Each of these takes a step that no other does.
    let normals = [Bug::NoReport, Bug::NoLock, Bug::Order, Bug::Leaves];
    let normals: Vec<Run> = (0..)
        .zip(normals)
        .map(|(seed, bug)| pool(seed, bug))
        .collect();
    let normals: Vec<&Run> = normals.iter().collect();
    let of = |faulty: &Run| compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap();
    assert!(!of(&pool(9, Bug::None)).differs);
    // Thread 2 never gets the lock of its last call of `take`; the main thread waits for it.
    let faulty = broken_off(
        pool(9, Bug::None),
        &[(0, "pthread_join"), (2, "pthread_mutex_lock")],
        EndKind::Killed,
    );
    let found = of(&faulty);
    assert!(found.differs);
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(0, 2),
        "{}",
        found.verdict
    );
    assert_eq!(found.suspects[0].reason, Reason::EndsEarly);
    assert!(
        found.verdict.contains("pthread_mutex_lock"),
        "{}",
        found.verdict
    );
    // It crashes in the last call of `free`, while another takes its lock.
    let faulty = broken_off(
        pool(9, Bug::None),
        &[(0, "pthread_join"), (1, "pthread_mutex_lock"), (3, "free")],
        EndKind::Signalled,
    );
    let found = of(&faulty);
    assert!(found.differs);
    assert_eq!(
        found.suspects[0].trace,
        TraceName::new(0, 3),
        "{}",
        found.verdict
    );
    assert!(found.verdict.contains("signal 11"), "{}", found.verdict);
}
