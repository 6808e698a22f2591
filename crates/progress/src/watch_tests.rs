//! Looks at made-up runs, at made-up times.

use super::{Standing, Watch};
use crate::clause::{Clause, What};
use crate::progress::Progress;
use crate::task::{Activity, Group, Kind, Place, Polling, Task};
use lockstep_trace::{End, EndKind, ProcessName, ThreadName, TraceName};
use std::collections::BTreeMap;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

fn place(function: &str) -> Place {
    Place {
        function: function.to_owned(),
        imported: function.starts_with("MPI_"),
        called_at: None,
    }
}

/// Rank 1 computes in iteration `inner` of a loop within iteration 21 of another, and rank 0 waits.
fn held_up(inner: u64, events: u64) -> Progress {
    let stack = |innermost: &str| [place("main"), place(innermost)].into();
    let group = |task: u32, innermost: &str, loops: &[(&str, u64)], activity| Group {
        tasks: vec![task],
        stack: stack(innermost),
        leaf: None,
        loops: Vec::new(),
        turns: loops.iter().map(|(it, at)| (it.to_string(), *at)).collect(),
        activity,
    };
    let groups = vec![
        group(0, "MPI_Recv", &[("main/a", 21)], Activity::Communication),
        group(
            1,
            "compute",
            &[("main/a", 21), ("compute/tick", inner)],
            Activity::Computation,
        ),
    ];
    let task = |number: u32, events: u64| Task {
        number,
        trace: TraceName {
            process: ProcessName {
                job: 0,
                rank: number,
                sibling: 0,
            },
            thread: ThreadName::Main(0),
        },
        end: End {
            kind: EndKind::Running,
            code: None,
            certain: true,
        },
        stack: groups[number as usize].stack.clone(),
        activity: groups[number as usize].activity,
        leaf: None,
        polls: None,
        crashed: false,
        events,
        is_launcher: false,
    };
    let tasks = BTreeMap::from([(0, task(0, 50)), (1, task(1, events))]);
    Progress {
        hang: true,
        kind: Kind::Slow,
        groups,
        least: vec![1],
        ..Progress::of(true, tasks, Vec::new())
    }
}

/// The same, and rank 0 waits for ever.
fn stuck(events: u64) -> Progress {
    let mut found = held_up(1, 70);
    found.kind = Kind::Deadlock;
    found.waiting.stuck = [0].into();
    if let Some(task) = found.tasks.get_mut(&0) {
        task.events = events;
    }
    found
}

fn quiet(events: u64) -> Progress {
    let mut found = held_up(1, events);
    (found.hang, found.kind) = (false, Kind::None);
    found
}

/// What the last of these looks, at these seconds, says.
fn last(looks: Vec<(u64, Progress)>) -> Standing {
    let mut watch = Watch::new(PATIENCE);
    let mut said = Standing::No;
    for (second, found) in looks {
        said = watch.look(&found, Duration::from_secs(second));
    }
    said
}

#[test]
fn a_deadlock_takes_two_looks_at_the_same_events() {
    assert_eq!(last(vec![(1, stuck(50))]), Standing::No);
    let twice = vec![(1, stuck(50)), (2, stuck(50))];
    assert_eq!(last(twice), Standing::Hangs(Kind::Deadlock));
    // Whoever was stuck went on in between: it was not.
    let moved = vec![(1, stuck(50)), (2, stuck(51))];
    assert_eq!(last(moved), Standing::No);
    let later = vec![(1, stuck(50)), (99, stuck(51))];
    assert_eq!(last(later), Standing::No);
}

#[test]
fn who_stands_still_through_the_patience_is_slow() {
    let still = |seconds: &[u64]| seconds.iter().map(|it| (*it, held_up(3, 70))).collect();
    assert_eq!(last(still(&[1])), Standing::No);
    assert_eq!(last(still(&[1, 10])), Standing::No);
    assert_eq!(last(still(&[1, 11])), Standing::Hangs(Kind::Slow));
}

/// Rank 1 came, and went on before rank 0 did, which got no processor yet.
#[test]
fn who_waited_with_the_others_does_not_hold_them_up_at_once() {
    let came = || {
        let mut found = held_up(3, 71);
        found.groups[1].activity = Activity::Communication;
        found.groups[1].stack = [place("main"), place("MPI_Finalize")].into();
        found.least = vec![0];
        found
    };
    let looks = |seconds: &[u64]| {
        let before = [1, 9].map(|it| (it, held_up(3, 70)));
        let after = seconds.iter().map(|it| (*it, came()));
        last(before.into_iter().chain(after).collect())
    };
    assert_eq!(looks(&[12]), Standing::No);
    assert_eq!(looks(&[12, 13, 21]), Standing::No);
    assert_eq!(looks(&[12, 13, 22]), Standing::Hangs(Kind::Slow));
}

#[test]
fn who_goes_round_and_round_is_a_livelock() {
    let looks = (1..=11).map(|it| (it, held_up(it * 100, 70 + it * 200)));
    assert_eq!(last(looks.collect()), Standing::Hangs(Kind::Livelock));
}

/// A loop over `sin` is in it at one look, and out of it at the next.
#[test]
fn who_is_in_and_out_of_a_library_stays_where_it_is() {
    let look = |at: u64| {
        let mut found = held_up(1, 70 + at * 200);
        found.groups[1].turns.clear();
        found.groups[1].stack = [place("main")].into();
        if at.is_multiple_of(2) {
            let imported = true;
            let sin = Place {
                imported,
                ..place("sin")
            };
            found.groups[1].stack = [place("main"), sin].into();
        }
        (at, found)
    };
    assert_eq!(
        last((1..=11).map(look).collect()),
        Standing::Hangs(Kind::Livelock)
    );
}

/// Where a look takes longer than the patience, whoever comes to one place again and again is seen there twice.
#[test]
fn two_looks_far_apart_are_no_livelock() {
    let looks = [(1, held_up(3, 70)), (90, held_up(9, 270))];
    assert_eq!(last(looks.to_vec()), Standing::No);
}

#[test]
fn what_it_did_on_its_way_is_no_livelock() {
    let looks = vec![
        (1, held_up(1, 70)),
        (2, held_up(2, 72)),
        (12, held_up(2, 72)),
    ];
    assert_eq!(last(looks), Standing::Hangs(Kind::Slow));
}

#[test]
fn a_new_iteration_of_an_outer_loop_is_progress() {
    let mut next = held_up(1, 90);
    next.groups[1].turns[0].1 = 22;
    assert_eq!(last(vec![(1, held_up(3, 70)), (11, next)]), Standing::No);
}

#[test]
fn who_was_slow_and_comes_on_is_known() {
    let mut watch = Watch::new(PATIENCE);
    let at = Duration::from_secs;
    watch.look(&held_up(3, 70), at(1));
    watch.look(&held_up(3, 70), at(11));
    assert_eq!(watch.since(&[1]), Some(at(1)));
    assert!(!watch.went_on(&[1], at(11)));
    let mut next = held_up(1, 90);
    next.groups[1].turns[0].1 = 22;
    watch.look(&next, at(14));
    assert!(watch.went_on(&[1], at(11)) && watch.went_on(&[], at(11)));
    assert!(!watch.went_on(&[], at(14)));
}

/// Others wait for it, and for nobody else, through ten times the patience.
#[test]
fn outer_iterations_without_an_end_are_a_livelock() {
    let look = |second: u64, waits: u64| {
        let mut found = held_up(second, 70 + second * 200);
        found.groups[1].turns[1] = ("compute/pass".to_owned(), second);
        let tick = ("compute/tick".to_owned(), second % 7);
        found.groups[1].turns.push(tick);
        found.tasks.entry(0).and_modify(|it| it.events = waits);
        (second, found)
    };
    let looks = |until: u64, waits: fn(u64) -> u64| -> Vec<(u64, Progress)> {
        (1..=until).map(|it| look(it, waits(it))).collect()
    };
    assert_eq!(last(looks(100, |_| 50)), Standing::No);
    let livelock = Standing::Hangs(Kind::Livelock);
    assert_eq!(last(looks(101, |_| 50)), livelock);
    // Who waits went on in between, or nobody waits; or it was looked at seldom.
    assert_eq!(last(looks(101, |second| 50 + second / 90)), Standing::No);
    let mut alone = looks(101, |_| 50);
    alone.iter_mut().for_each(|(_, it)| it.least = vec![0, 1]);
    assert_eq!(last(alone), Standing::No);
    let seldom = [1, 60, 120].map(|it| look(it, 50));
    assert_eq!(last(seldom.to_vec()), Standing::No);
}

#[test]
fn who_asks_for_something_new_came_on() {
    let asks = |since: u64, events: u64| {
        let mut found = held_up(1, events);
        found.groups[1].turns.pop();
        let name = "MPI_Iprobe".into();
        let since = Some(since);
        let polls = Some(Polling { name, since });
        found.tasks.entry(1).and_modify(|it| it.polls = polls);
        found
    };
    let on_and_on = (1..=11).map(|it| (it, asks(60, 70 + it * 200)));
    assert_eq!(last(on_and_on.collect()), Standing::Hangs(Kind::Livelock));
    let answered = (1..=11).map(|it| (it, asks(60 + it, 70 + it * 200)));
    assert_eq!(last(answered.collect()), Standing::No);
}

#[test]
fn silence_takes_patience_and_somebody_there() {
    assert_eq!(last(vec![(1, quiet(70)), (10, quiet(70))]), Standing::No);
    assert_eq!(last(vec![(1, quiet(70)), (11, quiet(71))]), Standing::No);
    let silent = Standing::Silent(PATIENCE);
    assert_eq!(last(vec![(1, quiet(70)), (11, quiet(70))]), silent);
    let launcher = || {
        let mut found = quiet(70);
        found.tasks.remove(&0);
        for task in found.tasks.values_mut() {
            let waits = [place("waitpid")];
            task.stack = task.stack.iter().cloned().chain(waits).collect();
        }
        found
    };
    assert_eq!(last(vec![(1, launcher()), (11, launcher())]), Standing::No);
    // `mpirun` that has not come to its children yet.
    let starting = || {
        let mut found = quiet(70);
        found.tasks.remove(&0);
        found
            .tasks
            .values_mut()
            .for_each(|it| it.is_launcher = true);
        found
    };
    assert_eq!(last(vec![(1, starting()), (11, starting())]), Standing::No);
}

#[test]
fn the_answer_follows() {
    let mut found = held_up(3, 70);
    found.settle(Standing::Hangs(Kind::Livelock));
    assert_eq!((found.hang, found.kind), (true, Kind::Livelock));
    let holding = |it: &Clause| match &it.what {
        What::Holding {
            is_livelock,
            holders,
            ..
        } => *is_livelock && holders.first().0[..] == [1],
        _ => false,
    };
    assert!(found.verdict.clauses().iter().any(holding));
    found.settle(Standing::No);
    assert_eq!((found.hang, found.kind), (false, Kind::None));
    let moved = What::NotSeen { moved: true };
    assert_eq!(found.verdict.clauses(), [moved.into()]);
}
