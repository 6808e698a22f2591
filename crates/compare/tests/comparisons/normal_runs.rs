//! Several normal runs of a program that never does the same twice: who is named, when nobody is, and
//! how often somebody is named for nothing.
#![allow(clippy::unwrap_used)]

use crate::made::{Made, Random};
use crate::odd_even;
use lockstep_compare::{Comparison, Options, compare};
use lockstep_trace::{Function, FunctionId, Run, SourceLine, Thread, TraceName};

const NAMES: [&str; 20] = [
    "main",
    "MPI_Init",
    "worker",
    "exec",
    "GOMP_critical_start",
    "memcpy",
    "GOMP_critical_end",
    "master",
    "MPI_Allreduce",
    "MPI_Bcast",
    "MPI_Finalize",
    "try",
    "swap",
    "GOMP_parallel",
    "main._omp_fn.0",
    "main._omp_fn.1",
    "GOMP_single_start",
    "GOMP_task",
    "solve",
    "give_up",
];

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// Thread 4 of rank 6 copies its champion without a critical section.
    MissingCritical,
    /// It copies before it executes.
    WrongOrder,
    /// It stops after a few seeds.
    StopsEarly,
    /// Nobody enters the critical section.
    MissingEverywhere,
}

/// So many ranks without a trace.
fn model(ranks: usize) -> Run {
    let mut model = odd_even::run(&["main"], vec![Vec::new(); ranks]);
    let functions = NAMES.iter().map(|name| Function {
        name: (*name).into(),
        linkage: (*name).into(),
        image: "search".into(),
        imported: false,
        source: None,
        calls: Vec::new(),
        code: lockstep_trace::Code::default(),
    });
    model.functions = functions.collect();
    model
}

/// A team that runs so many tasks each in three regions; of one thread the last may be another one.
fn team(shares: [usize; 4], gives_up: Option<usize>) -> Run {
    let mut run = model(1);
    let thread = |(thread, share): (usize, usize)| {
        let mut trace = Made::new(&NAMES);
        let tasks = |trace: &mut Made, region: usize| {
            for task in 0..share {
                let is_odd = (gives_up, region, task + 1) == (Some(thread), 2, share);
                let inner = if is_odd { "give_up" } else { "solve" };
                trace.call("main._omp_fn.1", |trace| trace.leaf(inner));
            }
        };
        let region = |trace: &mut Made| {
            trace.call("main._omp_fn.0", |trace| {
                trace.leaf("GOMP_single_start");
                if thread == 1 {
                    (0..12).for_each(|_| trace.leaf("GOMP_task"));
                }
            });
        };
        if thread == 0 {
            trace.call("main", |trace| {
                for number in 0..3 {
                    trace.call("GOMP_parallel", |trace| {
                        region(trace);
                        tasks(trace, number);
                    });
                }
            });
        } else {
            for number in 0..3 {
                region(&mut trace);
                tasks(&mut trace, number);
            }
        }
        Thread::from_events(TraceName::new(0, thread as u32), trace.events)
    };
    run.processes[0].threads = shares.into_iter().enumerate().map(thread).collect();
    run
}

/// One iterative local champion search: 8 ranks of a master and 4 workers.
fn search(seed: u64, bug: Bug) -> Run {
    let mut random = Random::new(seed);
    let mut model = model(8);
    for (rank, process) in model.processes.iter_mut().enumerate() {
        process.threads = (0..5)
            .map(|thread| {
                let mut trace = Made::new(&NAMES);
                let is_bad = (rank, thread) == (6, 4) || bug == Bug::MissingEverywhere;
                if thread == 0 {
                    master(&mut trace, &mut random);
                } else {
                    worker(
                        &mut trace,
                        &mut random,
                        if is_bad { bug } else { Bug::None },
                    );
                }
                Thread::from_events(TraceName::new(rank as u32, thread), trace.events)
            })
            .collect();
    }
    model
}

fn master(trace: &mut Made, random: &mut Random) {
    let rounds = 20 + random.below(10);
    trace.call("main", |trace| {
        trace.leaf("MPI_Init");
        trace.call("GOMP_parallel", |trace| {
            trace.call("master", |trace| {
                for _ in 0..rounds {
                    trace.leaf("MPI_Allreduce");
                    trace.leaf("MPI_Allreduce");
                    if random.below(3) == 0 {
                        trace.leaf("GOMP_critical_start");
                        trace.leaf("memcpy");
                        trace.leaf("GOMP_critical_end");
                    }
                    trace.leaf("MPI_Bcast");
                }
            });
        });
        trace.leaf("MPI_Finalize");
    });
}

fn worker(trace: &mut Made, random: &mut Random, bug: Bug) {
    let seeds = match bug {
        Bug::StopsEarly => 3,
        _ => 40 + random.below(40),
    };
    trace.call("worker", |trace| {
        for seed in 0..seeds {
            if bug == Bug::WrongOrder {
                trace.leaf("memcpy");
            }
            trace.call("exec", |trace| {
                for _ in 0..1 + random.below(4) {
                    trace.leaf("try");
                    if random.below(2) == 0 {
                        trace.leaf("swap");
                    }
                }
            });
            if random.below(1 + seed) == 0 && bug != Bug::WrongOrder {
                let critical = !matches!(bug, Bug::MissingCritical | Bug::MissingEverywhere);
                if critical {
                    trace.leaf("GOMP_critical_start");
                }
                trace.leaf("memcpy");
                if critical {
                    trace.leaf("GOMP_critical_end");
                }
            }
        }
    });
}

fn against(normals: u64, first: u64, faulty: &Run) -> Comparison {
    let normals: Vec<Run> = (first..first + normals)
        .map(|it| search(it, Bug::None))
        .collect();
    // One set of options: the table is not what is tested here.
    let mut options = Options {
        sweep: false,
        ..Options::default()
    };
    options.set_filter("everything").unwrap();
    compare(
        &normals.iter().collect::<Vec<_>>(),
        faulty,
        &options,
        &|_, _| {},
    )
    .unwrap()
}

#[test]
fn the_worker_without_its_lock_is_named_and_why() {
    for normals in [2, 3, 5, 10] {
        let found = against(normals, 100, &search(7, Bug::MissingCritical));
        assert!(found.differs, "{normals}: {:?} {}", found.p, found.verdict);
        let first = &found.suspects[0];
        assert_eq!(
            first.trace,
            TraceName::new(6, 4),
            "{normals}: {}",
            found.verdict
        );
        assert!(
            first
                .reasons
                .iter()
                .any(|it| it.contains("GOMP_critical_start") || it.contains("memcpy from worker")),
            "{:#?}",
            first.reasons
        );
        assert_eq!(first.role.as_deref(), Some("worker"), "{:?}", found.roles);
        assert!(first.stability.unwrap() >= 0.9);
    }
}

#[test]
fn roles_are_found() {
    let found = against(4, 1, &search(9, Bug::None));
    let roles: Vec<(&str, usize)> = found
        .roles
        .iter()
        .map(|role| (role.name.as_str(), role.traces.len()))
        .collect();
    assert_eq!(roles, [("master", 8), ("worker", 32)]);
}

#[test]
fn other_faults_are_found_too() {
    for bug in [Bug::WrongOrder, Bug::StopsEarly] {
        let found = against(5, 200, &search(11, bug));
        assert!(found.differs, "{}", found.verdict);
        assert_eq!(
            found.suspects[0].trace,
            TraceName::new(6, 4),
            "{}",
            found.verdict
        );
    }
    let found = against(5, 200, &search(11, Bug::MissingEverywhere));
    assert!(found.differs);
    let role = found.suspects[0].role.as_deref();
    assert_eq!(role, Some("worker"));
}

#[test]
fn healthy_runs_are_seldom_called_different() {
    let (mut alarms, mut trials) = (0, 0);
    for normals in [3, 6] {
        for trial in 0..6 {
            let first = 1000 + 100 * trial;
            let found = against(normals, first, &search(first + 50, Bug::None));
            let p = found.p.unwrap();
            assert_eq!(found.differs, p < 0.05);
            if !found.differs {
                assert!(
                    found.verdict.starts_with("no thread differs more than"),
                    "{}",
                    found.verdict
                );
            }
            alarms += usize::from(found.differs);
            trials += 1;
        }
    }
    // At the level of 5 % three or more have a chance of 2 %.
    assert!(alarms <= 2, "{alarms} of {trials}");
}

#[test]
fn how_large_a_share_of_the_work_is_says_nothing() {
    let normals: Vec<Run> = (0..5)
        .map(|run| team([2 + run % 2, 4 - run % 2, 3, 3], None))
        .collect();
    let normals: Vec<&Run> = normals.iter().collect();
    let of = |faulty: &Run| compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap();
    for shares in [[12, 0, 0, 0], [0, 0, 12, 0], [0, 4, 4, 4]] {
        let found = of(&team(shares, None));
        assert!(!found.differs, "{shares:?}: {}", found.verdict);
        assert!(found.p.unwrap() >= 1.0 / 6.0, "{:?}", found.p);
        let alone = compare(
            &normals[..1],
            &team(shares, None),
            &Options::default(),
            &|_, _| {},
        );
        assert!(!alone.unwrap().differs);
    }
    let found = of(&team([1, 3, 4, 4], Some(2)));
    assert!(found.differs, "{:?} {}", found.p, found.verdict);
    assert_eq!(found.suspects[0].trace, TraceName::new(0, 2));
    assert!(found.verdict.contains("give_up"), "{}", found.verdict);
}

/// A process of two threads, each of which makes these calls in `worker`; of a call of `swap` there the line is known.
fn calls(each: [&str; 2]) -> Run {
    let mut run = model(1);
    let id = |name| FunctionId(NAMES.iter().position(|it| *it == name).unwrap() as u32);
    let file = "src/queue.cpp".into();
    run.functions[id("worker").0 as usize].calls =
        vec![(id("swap"), SourceLine { file, line: 41 })];
    let thread = |(thread, words): (usize, &str)| {
        let mut trace = Made::new(&NAMES);
        trace.call("worker", |trace| {
            words.split_whitespace().for_each(|it| trace.leaf(it));
        });
        Thread::from_events(TraceName::new(0, thread as u32), trace.events)
    };
    run.processes[0].threads = each.into_iter().enumerate().map(thread).collect();
    run
}

/// What is told of orders of calls of the second thread: in the normal runs these, and last in the faulty one.
fn orders(ways: &[&str]) -> (bool, Vec<String>) {
    let runs: Vec<Run> = ways.iter().map(|it| calls([ways[0], it])).collect();
    let runs: Vec<&Run> = runs.iter().collect();
    let (faulty, normals) = runs.split_last().unwrap();
    let found = compare(normals, faulty, &Options::default(), &|_, _| {}).unwrap();
    let is_order = |it: &String| it.contains("no normal run");
    let told = found.notes.into_iter().filter(is_order).collect();
    (found.differs, told)
}

const PUT: &str = "GOMP_critical_start try GOMP_critical_end";
const GET: &str = "GOMP_critical_start swap GOMP_critical_end";

#[test]
fn an_order_that_no_normal_run_has_is_told_where_they_waver() {
    let put_get = format!("{PUT} {GET} solve");
    let get_put = format!("{GET} solve {PUT}");
    let missed = "GOMP_critical_start try GOMP_critical_end swap GOMP_critical_end solve";
    // What one normal run alone does, the next one may do in another way again.
    let normals = [&put_get, &get_put, &put_get, &put_get].map(String::as_str);
    let (differs, told) = orders(&[&normals[..], &[missed]].concat());
    assert!(!differs);
    assert_eq!(
        told,
        [
            "trace 0.1 calls swap right after GOMP_critical_end in worker() at queue.cpp:41, which no normal run does; normal runs waver in \
             the order of calls there, so that this may be timing"
        ]
    );
    // What one of them does is no such order.
    let (differs, told) = orders(&[&normals[..], &normals[1..2]].concat());
    assert_eq!((differs, told), (false, Vec::new()));
    // Where none leaves the way of the others, one that does is no chance.
    let normals = [&put_get, &get_put, &put_get, &get_put].map(String::as_str);
    let (differs, _) = orders(&[&normals[..], &[missed]].concat());
    assert!(differs);
    let (differs, _) = orders(&[&normals[..], &normals[1..2]].concat());
    assert!(!differs);
}

#[test]
fn where_normal_runs_agree_a_new_order_is_a_difference() {
    let put_get = format!("{PUT} {GET}");
    let missed = "GOMP_critical_start try GOMP_critical_end swap GOMP_critical_end";
    let (differs, told) = orders(&[&put_get, &put_get, &put_get, &put_get, missed]);
    assert!(differs);
    assert_eq!(told, [""; 0]);
    // Nothing there waits for anybody.
    let way = "try swap solve";
    let found = orders(&[way, way, way, way, "try solve swap"]);
    assert_eq!(found, (true, Vec::new()));
}

#[test]
fn where_nothing_waits_and_orders_waver_a_new_one_is_told_once_for_all_that_have_it() {
    let normals = [
        "try swap solve",
        "swap try solve",
        "try swap solve",
        "solve try swap",
    ];
    let runs: Vec<Run> = normals.iter().map(|it| calls([it, it])).collect();
    let faulty = calls(["swap solve try", "swap solve try"]);
    let normals: Vec<&Run> = runs.iter().collect();
    let found = compare(&normals, &faulty, &Options::default(), &|_, _| {}).unwrap();
    assert!(!found.differs);
    assert_eq!(
        found.notes,
        [
            "trace 0.0 (and 1 more) returns right after try in worker(), which no normal run does; normal runs waver in the order of \
             calls there, so that this may be timing"
        ]
    );
}

#[test]
fn the_same_input_gives_the_same_output() {
    let faulty = search(3, Bug::MissingCritical);
    let once = serde_json::to_string(&against(3, 40, &faulty)).unwrap();
    assert_eq!(
        once,
        serde_json::to_string(&against(3, 40, &faulty)).unwrap()
    );
}

#[test]
fn deterministic_programs_need_two_normal_runs_only() {
    let make = |bug| odd_even::odd_even(16, bug);
    let normal = make(odd_even::Bug::None);
    let normals = [&normal, &normal];
    let of = |faulty: &Run| compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap();
    let alike = of(&normal);
    assert_eq!((alike.differs, alike.p), (false, Some(1.0)));
    for bug in [odd_even::Bug::Swap, odd_even::Bug::Deadlock] {
        let found = of(&make(bug));
        assert!(found.differs && found.p.unwrap() < 0.05, "{:?}", found.p);
        assert_eq!(
            found.suspects[0].trace,
            TraceName::new(5, 0),
            "{}",
            found.verdict
        );
    }
}
