//! Programs whose threads wait for each other now and then: what depends on timing is no difference, and hides none.
#![allow(clippy::unwrap_used)]

use crate::made::{Made, Random};
use crate::odd_even;
use lockstep_compare::{Comparison, DivergenceKind, Options, Reason, compare};
use lockstep_trace::{Event, FunctionId, Run, Thread, TraceName};

const NAMES: [&str; 9] = [
    "main",
    "kick",
    "drift",
    "hand_over",
    "pthread_mutex_lock",
    "pthread_cond_wait",
    "pthread_mutex_unlock",
    "force",
    "inner",
];

#[derive(Clone, Copy, PartialEq)]
enum Bug {
    None,
    /// Rank 3 drifts before it kicks, from step 20 on.
    Swapped,
    /// It hands over without the lock, from step 20 on.
    Unlocked,
    /// It computes no force in step 20 and after it.
    Skipped,
}

/// Six ranks of 30 steps, each of which waits in some of them.
fn beads(seed: u64, bug: Bug) -> Run {
    let mut random = Random::new(seed);
    let traces = (0..6).map(|rank| {
        let mut trace = Made::new(&NAMES);
        trace.call("main", |trace| {
            for step in 0..30 {
                let bug = if rank == 3 && step >= 20 {
                    bug
                } else {
                    Bug::None
                };
                let order = match bug {
                    Bug::Swapped => ["drift", "kick"],
                    _ => ["kick", "drift"],
                };
                for name in order {
                    trace.leaf(name);
                }
                trace.call("hand_over", |trace| {
                    if bug == Bug::Unlocked {
                        return;
                    }
                    trace.leaf("pthread_mutex_lock");
                    for _ in 0..random.below(3) {
                        trace.leaf("pthread_cond_wait");
                    }
                    trace.leaf("pthread_mutex_unlock");
                });
                if bug != Bug::Skipped {
                    trace.call("force", |trace| trace.leaf("inner"));
                }
            }
        });
        trace.events
    });
    odd_even::run(&NAMES, traces.collect())
}

fn against(normals: u64, faulty: &Run) -> Comparison {
    let normals: Vec<Run> = (1..=normals).map(|seed| beads(seed, Bug::None)).collect();
    let normals: Vec<&Run> = normals.iter().collect();
    compare(&normals, faulty, &Options::default(), &|_, _| {}).unwrap()
}

#[test]
fn who_waits_is_no_difference() {
    for seed in 100..104 {
        let found = against(1, &beads(seed, Bug::None));
        assert!(!found.differs, "{}", found.verdict);
        assert!(
            found.verdict.contains("depends on timing"),
            "{}",
            found.verdict
        );
        assert!(found.suspects.iter().all(|it| it.reason == Reason::Timing));
        let found = against(5, &beads(seed, Bug::None));
        assert!(!found.differs, "{} {:?}", found.verdict, found.p);
    }
}

#[test]
fn who_waits_hides_nothing() {
    let told = [
        (
            Bug::Swapped,
            "rank 3 calls drift where the normal run calls kick, in main()",
        ),
        (
            Bug::Unlocked,
            "rank 3 returns from hand_over where the normal run calls pthread_mutex_lock, in hand_over()",
        ),
        (
            Bug::Skipped,
            "rank 3 calls kick where the normal run calls force, in main()",
        ),
    ];
    for (bug, told) in told {
        for normals in [1, 5] {
            let found = against(normals, &beads(200, bug));
            assert!(found.differs, "{normals}: {} {:?}", found.verdict, found.p);
            assert!(
                found.verdict.starts_with(told),
                "{normals}: {}",
                found.verdict
            );
            let first = &found.suspects[0];
            assert_eq!(first.trace, TraceName::new(3, 0), "{}", found.verdict);
            let kind = first.divergence.as_ref().map(|it| it.kind);
            assert_eq!(kind, Some(DivergenceKind::OtherCall));
            // Loops that waiting has cut do not tell the step; what recurs does.
            let step = "in iteration 21 of main() (from one kick() to the next)";
            let is_told = found.verdict.contains(step);
            assert!(
                is_told || bug != Bug::Unlocked,
                "{normals}: {}",
                found.verdict
            );
        }
    }
}

#[test]
fn few_normal_runs_say_how_little_they_know() {
    let found = against(5, &beads(200, Bug::Swapped));
    assert!(found.p.unwrap() < 0.05);
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.starts_with("p is an estimate") && note.contains("0.17")),
        "{:?}",
        found.notes
    );
    // What one healthy run in six may do once is not called different.
    let mut rare = beads(300, Bug::None);
    let events: Vec<Event> = rare.processes[2].threads[0].events().collect();
    let lock = Event::Call(FunctionId(4));
    let unlock = Event::Call(FunctionId(6));
    let at = (0..events.len()).rfind(|at| events[*at] == lock).unwrap();
    let end = (at..events.len()).find(|at| events[*at] == unlock).unwrap();
    // It takes the lock anew when it has waited.
    let wait = Event::Call(FunctionId(5));
    let mut events = events;
    events.splice(end..end, [wait, Event::Return, lock, Event::Return]);
    rare.processes[2].threads[0] =
        lockstep_trace::Thread::from_events(TraceName::new(2, 0), events);
    let found = against(5, &rare);
    assert!(!found.differs, "{} {:?}", found.verdict, found.p);
}

const TASKS: [&str; 8] = [
    "main",
    "get",
    "worker",
    "run",
    "std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release()",
    "std::_Sp_counted_ptr_inplace<Task, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>::_M_dispose()",
    "std::__shared_ptr<State, (__gnu_cxx::_Lock_policy)2>::unique() const",
    "~Task",
];

/// Tasks of a worker, of which the main thread drops the last reference of so many.
fn tasks(last: usize) -> Run {
    let drop = |trace: &mut Made, is_last: bool| {
        trace.call(TASKS[4], |trace| {
            if is_last {
                trace.call(TASKS[5], |trace| {
                    trace.call("~Task", |trace| trace.leaf(TASKS[6]));
                });
            }
        });
    };
    let mut main = Made::new(&TASKS);
    main.call("main", |trace| {
        for task in 0..30 {
            trace.leaf("get");
            drop(trace, task < last);
        }
    });
    let mut worker = Made::new(&TASKS);
    worker.call("worker", |trace| {
        for task in 0..30 {
            trace.leaf("run");
            drop(trace, task >= last);
        }
    });
    let mut run = odd_even::run(&TASKS, vec![main.events]);
    let worker = Thread::from_events(TraceName::new(0, 1), worker.events);
    run.processes[0].threads.push(worker);
    run
}

#[test]
fn who_drops_the_last_reference_is_no_difference() {
    let normal = tasks(12);
    let against =
        |faulty: &Run| compare(&[&normal], faulty, &Options::default(), &|_, _| {}).unwrap();
    for last in [1, 11, 13, 29] {
        let found = against(&tasks(last));
        assert!(!found.differs, "{last}: {}", found.verdict);
    }
}
