use super::locks::{Edge, circles, excludes};
use super::*;
use crate::execution::ObjectKind;
use crate::paths::{Hazard, Nesting, Taken, Wanted};
use crate::sample::{MAIN, Sample};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn suspicions(sample: &Sample) -> Vec<Suspicion> {
    predict(&sample.execution)
        .iter()
        .map(|it| it.suspicion)
        .collect()
}

/// Locks `first` and `second` one within the other, and gives them back.
fn nested(
    it: &mut Sample,
    by: GoroutineId,
    line: u32,
    first: crate::execution::ObjectId,
    second: crate::execution::ObjectId,
) {
    it.does(by, line, Action::Lock, first);
    it.does(by, line + 1, Action::Lock, second);
    it.does(by, line + 2, Action::Unlock, second);
    it.does(by, line + 3, Action::Unlock, first);
}

#[test]
fn two_orders_are_found_without_a_deadlock() {
    let mut it = Sample::new();
    let (a, b) = (it.mutex(10), it.mutex(20));
    let one = it.go(MAIN, 2);
    let two = it.go(MAIN, 3);
    nested(&mut it, one, 10, a, b);
    nested(&mut it, two, 20, b, a);
    let findings = predict(&it.execution);
    assert_eq!(findings.len(), 1);
    insta::assert_snapshot!(findings[0].sentence, @"locks are taken in a circle of orders: goroutine 18 holds the mutex first used at main.go:10 since main.go:10 and wants the mutex first used at main.go:20 at main.go:11; goroutine 19 holds the mutex first used at main.go:20 since main.go:20 and wants the mutex first used at main.go:10 at main.go:21");
    let steer: Vec<u32> = findings[0].steer.iter().map(|it| it.place.line).collect();
    assert_eq!(steer, [11, 21]);
}

fn main_go(line: u32) -> Place {
    Place {
        file: "/src/main.go".to_owned(),
        line,
    }
}

fn taken(line: u32, class: &str) -> Taken {
    Taken {
        place: main_go(line),
        class: class.to_owned(),
        said: "it.mu".to_owned(),
        reading: false,
    }
}

fn wanted(line: u32, class: &str, via: &[u32]) -> Wanted {
    Wanted {
        place: main_go(line),
        class: class.to_owned(),
        reading: false,
        via: via.iter().map(|it| main_go(*it)).collect(),
    }
}

#[test]
fn ways_of_the_source_are_told_of_those_who_took_their_first_lock() {
    let mut it = Sample::new();
    let mutex = it.mutex(10);
    it.does(MAIN, 10, Action::Lock, mutex);
    it.does(MAIN, 11, Action::Unlock, mutex);
    let mut paths = Paths::default();
    for line in [10, 30] {
        let held = taken(line, "T.mu");
        let out = main_go(line + 5);
        paths.hazards.push(Hazard::Again {
            held: held.clone(),
            wanted: wanted(line + 2, "T.mu", &[line + 1]),
        });
        paths.hazards.push(Hazard::Kept { held, out });
    }
    let findings = predict_with(&it.execution, &paths);
    let told: Vec<&str> = findings.iter().map(|it| &*it.sentence).collect();
    let expected = [
        "main locks it.mu at main.go:10, and a way from there locks it again at main.go:12, through main.go:11, before it is given back",
        "main locks it.mu at main.go:10, and a way from there returns at main.go:15 without giving it back, as others do",
    ];
    assert_eq!(told, expected);
    assert_eq!(findings[0].places[0], main_go(12));
}

#[test]
fn a_circle_is_closed_by_what_another_goroutine_did_beside() {
    let paths = Paths {
        nestings: vec![Nesting {
            held: taken(20, "T.mu"),
            wanted: wanted(25, "U.mu", &[]),
        }],
        classes: [(10, "U.mu"), (11, "T.mu"), (20, "T.mu")]
            .map(|(line, class)| (main_go(line), Some(class.to_owned())))
            .into(),
        hazards: Vec::new(),
    };
    let run = |is_joined: bool, of_other: bool| {
        let mut it = Sample::new();
        let (u, t, other) = (it.mutex(10), it.mutex(11), it.mutex(12));
        let one = it.go(MAIN, 2);
        nested(&mut it, one, 10, u, t);
        if is_joined {
            let group = it.object(ObjectKind::WaitGroup, 4);
            it.does(one, 15, Action::Done, group);
            it.does(MAIN, 5, Action::Wait, group);
        }
        let two = it.go(MAIN, 3);
        let lock = if of_other { other } else { t };
        it.does(two, 20, Action::Lock, lock);
        it.does(two, 21, Action::Unlock, lock);
        predict_with(&it.execution, &paths)
    };
    assert_eq!(run(false, false)[0].suspicion, Suspicion::LockOrder);
    assert!(run(true, false).is_empty());
    assert!(run(false, true).is_empty());
}

#[test]
fn a_lock_over_both_orders_is_a_gate() {
    let mut it = Sample::new();
    let (gate, a, b) = (it.mutex(1), it.mutex(10), it.mutex(20));
    for (line, first, second) in [(10, a, b), (20, b, a)] {
        let one = it.go(MAIN, line + 100);
        it.does(one, line + 50, Action::Lock, gate);
        nested(&mut it, one, line, first, second);
        it.does(one, line + 60, Action::Unlock, gate);
    }
    assert_eq!(suspicions(&it), []);
}

#[test]
fn orders_one_after_the_other_are_no_circle() {
    let mut it = Sample::new();
    let (a, b) = (it.mutex(10), it.mutex(20));
    nested(&mut it, MAIN, 10, a, b);
    let child = it.go(MAIN, 3);
    nested(&mut it, child, 20, b, a);
    assert_eq!(suspicions(&it), []);
    // Joined by a wait group, and begun again by another.
    let group = it.object(ObjectKind::WaitGroup, 4);
    it.does(child, 25, Action::Done, group);
    it.does(MAIN, 5, Action::Wait, group);
    let other = it.go(MAIN, 6);
    nested(&mut it, other, 10, a, b);
    assert_eq!(suspicions(&it), []);
}

#[test]
fn a_second_read_lock_needs_a_writer() {
    let mut it = Sample::new();
    let lock = it.object(ObjectKind::RwMutex, 10);
    let other = it.go(MAIN, 3);
    it.does(MAIN, 10, Action::RLock, lock);
    it.does(MAIN, 11, Action::RLock, lock);
    it.does(MAIN, 12, Action::RUnlock, lock);
    it.does(MAIN, 13, Action::RUnlock, lock);
    assert_eq!(suspicions(&it), []);
    it.does(other, 20, Action::Lock, lock);
    it.does(other, 21, Action::Unlock, lock);
    assert_eq!(suspicions(&it), [Suspicion::ReadTwice]);
}

#[test]
fn readers_in_two_orders_need_a_writer_at_each_lock() {
    let mut it = Sample::new();
    let a = it.object(ObjectKind::RwMutex, 10);
    let b = it.object(ObjectKind::RwMutex, 20);
    let (one, two) = (it.go(MAIN, 2), it.go(MAIN, 3));
    for (who, line, first, second) in [(one, 10, a, b), (two, 20, b, a)] {
        it.does(who, line, Action::RLock, first);
        it.does(who, line + 1, Action::RLock, second);
        it.does(who, line + 2, Action::RUnlock, second);
        it.does(who, line + 3, Action::RUnlock, first);
    }
    for (line, lock) in [(30, a), (31, b)] {
        assert_eq!(suspicions(&it), []);
        let writer = it.go(MAIN, line);
        it.does(writer, line + 10, Action::Lock, lock);
        it.does(writer, line + 20, Action::Unlock, lock);
    }
    assert_eq!(suspicions(&it), [Suspicion::LockOrder]);
}

#[test]
fn a_goroutine_that_ends_with_a_lock() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Lock, lock);
    it.ends(child, 12);
    assert_eq!(suspicions(&it), [Suspicion::MissedUnlock]);
    // Handed over, it is none.
    it.does(MAIN, 5, Action::Unlock, lock);
    assert_eq!(suspicions(&it), []);
}

#[test]
fn a_send_with_the_lock_that_its_receiver_needs() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let channel = it.channel(MAIN, 2, 0);
    let receiver = it.go(MAIN, 3);
    it.does(receiver, 20, Action::Lock, lock);
    it.does(receiver, 21, Action::Unlock, lock);
    it.does(MAIN, 10, Action::Lock, lock);
    it.meets(
        (receiver, 22, Action::Receive),
        (MAIN, 11, Action::Send),
        channel,
    );
    it.does(MAIN, 12, Action::Unlock, lock);
    let findings = predict(&it.execution);
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].suspicion, Suspicion::LockAndWait);
    let lines: Vec<u32> = findings[0].places.iter().map(|it| it.line).collect();
    assert_eq!(lines, [11, 10, 20]);
}

/// A channel of one place that is used as a second lock, below the first one.
#[test]
fn a_channel_that_everybody_leaves_as_he_found_it_is_no_danger() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let channel = it.channel(MAIN, 2, 1);
    let other = it.go(MAIN, 3);
    for (who, line) in [(MAIN, 10), (other, 20)] {
        it.does(who, line, Action::Lock, lock);
        it.does(who, line + 1, Action::Send, channel);
        it.does(who, line + 2, Action::Receive, channel);
        it.does(who, line + 3, Action::Unlock, lock);
    }
    assert_eq!(suspicions(&it), []);
    it.does(other, 30, Action::Lock, lock);
    it.does(other, 31, Action::Send, channel);
    it.does(other, 32, Action::Unlock, lock);
    assert_ne!(suspicions(&it), []);
}

#[test]
fn a_lock_that_was_needed_only_before_is_no_danger() {
    let mut it = Sample::new();
    let lock = it.mutex(10);
    let (channel, started) = (it.channel(MAIN, 2, 0), it.channel(MAIN, 2, 0));
    let receiver = it.go(MAIN, 3);
    it.does(receiver, 20, Action::Lock, lock);
    it.does(receiver, 21, Action::Unlock, lock);
    it.meets(
        (MAIN, 4, Action::Receive),
        (receiver, 22, Action::Send),
        started,
    );
    it.does(MAIN, 10, Action::Lock, lock);
    it.meets(
        (receiver, 23, Action::Receive),
        (MAIN, 11, Action::Send),
        channel,
    );
    it.does(MAIN, 12, Action::Unlock, lock);
    assert_eq!(suspicions(&it), []);
}

#[test]
fn an_answer_that_may_find_nobody() {
    let mut it = Sample::new();
    let (channel, quit) = (it.channel(MAIN, 2, 0), it.channel(MAIN, 2, 0));
    let child = it.go(MAIN, 3);
    it.request(child, 10, Action::Send, Some(channel));
    it.selects(
        MAIN,
        5,
        &[
            (Action::Receive, Some(channel)),
            (Action::Receive, Some(quit)),
        ],
    );
    assert_eq!(suspicions(&it), [Suspicion::NoReceiver]);
}

#[test]
fn a_close_that_may_overtake_a_send() {
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 4);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Send, channel);
    it.does(MAIN, 5, Action::Close, channel);
    assert_eq!(suspicions(&it), [Suspicion::CloseAndSend]);
    // What was received was sent.
    let mut it = Sample::new();
    let channel = it.channel(MAIN, 2, 4);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Send, channel);
    it.does(MAIN, 4, Action::Receive, channel);
    it.does(MAIN, 5, Action::Close, channel);
    assert_eq!(suspicions(&it), []);
    // A flag may be looked at under the lock.
    let mut it = Sample::new();
    let (channel, lock) = (it.channel(MAIN, 2, 4), it.mutex(2));
    let child = it.go(MAIN, 3);
    for (by, line, action) in [(child, 10, Action::Send), (MAIN, 5, Action::Close)] {
        it.does(by, line, Action::Lock, lock);
        it.does(by, line + 1, action, channel);
        it.does(by, line + 2, Action::Unlock, lock);
    }
    assert_eq!(suspicions(&it), []);
}

#[test]
fn an_add_within_the_goroutine_comes_late_and_one_by_a_counted_one_does_not() {
    let mut it = Sample::new();
    let group = it.object(ObjectKind::WaitGroup, 2);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Add, group);
    it.does(child, 11, Action::Done, group);
    it.does(MAIN, 5, Action::Wait, group);
    assert_eq!(suspicions(&it), [Suspicion::LateAdd]);
    let mut it = Sample::new();
    let group = it.object(ObjectKind::WaitGroup, 2);
    it.does(MAIN, 2, Action::Add, group);
    let child = it.go(MAIN, 3);
    it.does(child, 10, Action::Add, group);
    let grandchild = it.go(child, 11);
    it.does(grandchild, 20, Action::Done, group);
    it.does(child, 12, Action::Done, group);
    it.does(MAIN, 5, Action::Wait, group);
    assert_eq!(suspicions(&it), []);
}

/// The lock lines of each circle, whatever its beginning.
fn names(found: &[Vec<&Edge>]) -> BTreeSet<BTreeSet<usize>> {
    found
        .iter()
        .map(|it| it.iter().map(|edge| edge.step.event).collect())
        .collect()
}

/// All circles, by trying every sequence of two to four edges.
fn by_brute_force(edges: &[Edge], writers: &Writers) -> BTreeSet<BTreeSet<usize>> {
    fn circle(path: &[&Edge], writers: &Writers) -> bool {
        let follows = (0..path.len()).all(|at| {
            let (edge, next) = (path[at], path[(at + 1) % path.len()]);
            edge.wanted == next.held && excludes(edge, next, writers)
        });
        let apart = (0..path.len()).all(|one| {
            (0..one).all(|two| {
                let (one, two) = (path[one], path[two]);
                let gate = one.gates.iter().any(|(lock, reading)| {
                    two.gates
                        .get(lock)
                        .is_some_and(|other| !(*reading && *other))
                });
                one.held != two.held && !gate && one.step.beside(&two.step)
            })
        });
        path.len() > 1 && follows && apart
    }
    fn all<'e>(
        path: &mut Vec<&'e Edge>,
        edges: &'e [Edge],
        writers: &Writers,
        found: &mut BTreeSet<BTreeSet<usize>>,
    ) {
        if circle(path, writers) {
            found.insert(path.iter().map(|it| it.step.event).collect());
        }
        if path.len() < 4 {
            for edge in edges {
                path.push(edge);
                all(path, edges, writers, found);
                path.pop();
            }
        }
    }
    let mut found = BTreeSet::new();
    all(&mut Vec::new(), edges, writers, &mut found);
    found
}

type Writers = [(crate::execution::ObjectId, Step)];

proptest! {
    /// Circles are those that trying everything finds.
    #[test]
    fn circles_are_all_circles(
        blocks in prop::collection::vec((0u32..4, 0usize..4, 0usize..4, 0usize..5, any::<bool>(), any::<bool>()), 0..7),
    ) {
        let mut it = Sample::new();
        let locks: Vec<_> = (0..5).map(|at| it.object(ObjectKind::RwMutex, at + 1)).collect();
        for _ in 0..3 {
            it.go(MAIN, 50);
        }
        for (at, (who, first, second, gate, read, reads)) in blocks.into_iter().enumerate() {
            let (who, line) = (GoroutineId(who), 100 + 10 * at as u32);
            if first == second || gate == first || gate == second {
                continue;
            }
            let lock = |read| if read { Action::RLock } else { Action::Lock };
            let unlock = |read| if read { Action::RUnlock } else { Action::Unlock };
            if gate < 4 {
                it.does(who, line, Action::Lock, locks[gate]);
            }
            it.does(who, line + 1, lock(read), locks[first]);
            it.does(who, line + 2, lock(reads), locks[second]);
            it.does(who, line + 3, unlock(reads), locks[second]);
            it.does(who, line + 4, unlock(read), locks[first]);
            if gate < 4 {
                it.does(who, line + 5, Action::Unlock, locks[gate]);
            }
        }
        let record = Record::of(&it.execution);
        let edges = record.locks.edges();
        prop_assume!(edges.len() <= 12);
        let writers = record.locks.writers();
        prop_assert_eq!(names(&circles(edges, writers)), by_brute_force(edges, writers));
    }
}
