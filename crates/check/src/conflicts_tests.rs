//! Calls on windows as they are recorded, and which of them nothing orders.
#![allow(clippy::unwrap_used)]

use super::*;
use lockstep_api::mpi::Kind;
use lockstep_comm::accesses::MOST;
use lockstep_comm::communicators::{Meaning, Peer, Resolved};
use lockstep_comm::job::resolved;
use lockstep_comm::{Layouts, Routine};
use lockstep_trace::{Argument, Handle, Value};

const WINDOW: CommunicatorId = CommunicatorId(7);
const SHARED: i64 = 2;
/// Bytes of a part of it.
const SIZE: i64 = 64;

/// A call with these numbers; `rank` and `target_rank` are ranks of the world.
fn event(arguments: &[(&'static str, i64)]) -> Resolved {
    let datatype = Argument {
        name: "target_datatype",
        kind: Kind::Datatype,
        value: Value::Handle(Handle {
            raw: 1,
            name: Some("MPI_INT".to_owned()),
        }),
    };
    let numbers = arguments.iter().map(|(name, number)| Argument {
        name,
        kind: Kind::Int,
        value: Value::Number(*number),
    });
    let mut call = resolved(numbers.chain([datatype]).collect());
    for ((name, number), meaning) in arguments.iter().zip(&mut call.meanings) {
        if matches!(*name, "rank" | "target_rank") {
            *meaning = Meaning::Peer(Peer {
                communicator: None,
                world: u32::try_from(*number).ok(),
                size: None,
            });
        }
    }
    call
}

/// Calls on the window of these tests.
trait Calls {
    fn of_unit(unit: i64) -> Self;
    fn calls(&mut self, name: &str, arguments: &[(&'static str, i64)]) -> &mut Self;
    fn accesses(&mut self, name: &str, at: i64, count: i64) -> &mut Self;
    fn fences(&mut self) -> &mut Self;
    fn locks(&mut self, rank: i64, kind: i64) -> &mut Self;
    fn unlocks(&mut self, rank: i64) -> &mut Self;
    fn puts(&mut self) -> &mut Self;
}

impl Calls for Accesses {
    /// A task whose own part of the window has displacements in units of so many bytes.
    fn of_unit(unit: i64) -> Self {
        let mut it = Self::default();
        it.made(WINDOW, (Some(unit), Some(SIZE)), false);
        it
    }

    fn calls(&mut self, name: &str, arguments: &[(&'static str, i64)]) -> &mut Self {
        let trace = TraceName::new(0, 0);
        let layouts = Layouts::default();
        self.call(
            (&Routine::of(name), trace),
            &event(arguments),
            (WINDOW, &layouts),
        );
        self
    }

    /// `count` of `MPI_INT` from `at` on in the part of rank 1.
    fn accesses(&mut self, name: &str, at: i64, count: i64) -> &mut Self {
        let place = [
            ("target_rank", 1),
            ("target_disp", at),
            ("target_count", count),
        ];
        self.calls(name, &place)
    }

    fn fences(&mut self) -> &mut Self {
        self.calls("MPI_Win_fence", &[])
    }

    fn locks(&mut self, rank: i64, kind: i64) -> &mut Self {
        self.calls("MPI_Win_lock", &[("lock_type", kind), ("rank", rank)])
    }

    fn unlocks(&mut self, rank: i64) -> &mut Self {
        self.calls("MPI_Win_unlock", &[("rank", rank)])
    }

    /// Puts an `MPI_INT` under a shared lock.
    fn puts(&mut self) -> &mut Self {
        self.locks(1, SHARED).accesses("MPI_Put", 0, 1).unlocks(1)
    }
}

fn count(tasks: &[&Accesses]) -> usize {
    conflicts((0..).zip(tasks.iter().copied())).len()
}

#[test]
fn what_overlaps_between_two_fences() {
    let one = |name: &str, at, fences| {
        let mut it = Accesses::of_unit(4);
        (0..fences).for_each(|_| {
            it.fences();
        });
        it.accesses(name, at, 2);
        it
    };
    let both = |a: Accesses, b: Accesses| count(&[&a, &b]);
    let (put, get, add) = ("MPI_Put", "MPI_Get", "MPI_Accumulate");
    assert_eq!(both(one(put, 0, 1), one(put, 1, 1)), 1);
    assert_eq!(both(one(get, 0, 1), one(put, 1, 1)), 1);
    assert_eq!(both(one(add, 0, 1), one(put, 1, 1)), 1);
    assert_eq!(both(one(get, 0, 1), one(add, 1, 1)), 1);
    assert_eq!(both(one(put, 0, 1), one(put, 2, 1)), 0);
    assert_eq!(both(one(put, 0, 1), one(put, 0, 2)), 0);
    assert_eq!(both(one(get, 0, 1), one(get, 0, 1)), 0);
    assert_eq!(both(one(add, 0, 1), one(add, 0, 1)), 0);
}

#[test]
fn displacements_are_in_units_of_the_target() {
    let task = |unit, at| {
        let mut it = Accesses::of_unit(unit);
        it.fences().accesses("MPI_Put", at, 1);
        it
    };
    let mut target = Accesses::of_unit(4);
    target.fences();
    assert_eq!(count(&[&task(1, 0), &target, &task(1, 1)]), 0);
    assert_eq!(count(&[&task(8, 1), &target, &task(1, 1)]), 1);
    let mut target = Accesses::of_unit(1);
    target.fences();
    assert_eq!(count(&[&task(4, 0), &target, &task(4, 1)]), 1);
    // What is not known is no place.
    assert_eq!(count(&[&task(4, 0), &Accesses::default(), &task(4, 0)]), 0);
}

#[test]
fn no_memory_is_as_large_as_a_number() {
    let mut target = Accesses::of_unit(i64::MAX);
    target.fences();
    let mut task = Accesses::of_unit(1);
    task.fences().accesses("MPI_Put", i64::MAX, 1);
    task.accesses("MPI_Put", 3, i64::MAX)
        .accesses("MPI_Put", 1, 1);
    assert_eq!(count(&[&task, &target, &task.clone()]), 0);
}

#[test]
fn locks_that_are_shared_order_nothing_and_phases_do() {
    let mut target = Accesses::of_unit(4);
    target.meet(1);
    let mut early = Accesses::of_unit(4);
    early.puts().meet(1);
    let mut late = Accesses::of_unit(4);
    late.meet(1);
    late.puts();
    assert_eq!(count(&[&early, &target, &early.clone()]), 1);
    assert_eq!(count(&[&early, &target, &late]), 0);
    // Without an end it goes on.
    let mut open = Accesses::of_unit(4);
    open.locks(1, SHARED).accesses("MPI_Put", 0, 1).meet(1);
    assert_eq!(count(&[&open, &target, &late]), 1);
}

#[test]
fn who_heard_of_others_may_come_behind_them() {
    let target = Accesses::of_unit(4);
    let mut first = Accesses::of_unit(4);
    first.puts().hear();
    let mut second = Accesses::of_unit(4);
    second.hear();
    second.puts();
    assert_eq!(count(&[&first, &target, &second]), 0);
    // What it heard before all met is old.
    let mut third = Accesses::of_unit(4);
    third.hear();
    third.meet(1);
    third.puts();
    let mut fourth = Accesses::of_unit(4);
    fourth.meet(1);
    fourth.puts();
    assert_eq!(count(&[&third, &target, &fourth]), 1);
    // A number that was fetched, and memory of its own.
    let mut asks = Accesses::of_unit(4);
    asks.locks(3, SHARED);
    asks.calls(
        "MPI_Fetch_and_op",
        &[("target_rank", 3), ("target_disp", 0)],
    );
    asks.unlocks(3).puts();
    assert_eq!(count(&[&first, &target, &asks]), 0);
    // What it got tells what the owner stored there, and nothing where others put at the same time.
    let gets = |at| {
        let mut it = Accesses::of_unit(4);
        it.locks(1, SHARED).accesses("MPI_Get", at, 1);
        it.calls("MPI_Win_flush", &[("rank", 1)]);
        it.accesses("MPI_Put", 0, 1).unlocks(1);
        it
    };
    let (counts, polls) = (gets(0), gets(1));
    assert_eq!(count(&[&counts, &target, &counts]), 1);
    assert_eq!(count(&[&first, &target, &polls]), 0);
    assert_eq!(count(&[&counts, &counts, &target]), 0);
    // Others put there before all met.
    let (mut clears, mut polls) = (Accesses::of_unit(4), Accesses::of_unit(4));
    clears.locks(1, SHARED).accesses("MPI_Put", 1, 1).unlocks(1);
    clears.meet(1);
    clears.puts();
    polls.meet(1);
    polls.locks(1, SHARED).accesses("MPI_Get", 1, 1);
    polls.calls("MPI_Win_flush", &[("rank", 1)]);
    polls.accesses("MPI_Put", 0, 1).unlocks(1);
    assert_eq!(count(&[&clears, &target, &polls]), 0);
    let mut looks = Accesses::of_unit(4);
    looks.locks(2, SHARED).unlocks(2).puts();
    assert_eq!(count(&[&first, &target, &looks]), 0);
    let mut locks_another = Accesses::of_unit(4);
    locks_another.locks(3, SHARED).unlocks(3).puts();
    assert_eq!(count(&[&first, &target, &locks_another]), 1);
}

#[test]
fn what_one_task_does_is_in_order_once_it_is_over() {
    let target = Accesses::of_unit(4);
    let task = |first: &str, between: &str| {
        let mut it = Accesses::of_unit(4);
        it.locks(1, SHARED).accesses(first, 0, 1);
        it.calls(between, &[("rank", 1)]).accesses("MPI_Put", 0, 1);
        count(&[&it.unlocks(1).clone(), &target])
    };
    assert_eq!(task("MPI_Put", "MPI_Win_sync"), 1);
    assert_eq!(task("MPI_Put", "MPI_Win_flush"), 0);
    assert_eq!(task("MPI_Put", "MPI_Win_flush_all"), 0);
    // What it got is over where it was, too; what it put is not.
    assert_eq!(task("MPI_Get", "MPI_Win_sync"), 1);
    assert_eq!(task("MPI_Get", "MPI_Win_flush_local"), 0);
    assert_eq!(task("MPI_Get", "MPI_Win_flush_local_all"), 0);
    assert_eq!(task("MPI_Put", "MPI_Win_flush_local"), 1);
    assert_eq!(task("MPI_Rget", "MPI_Wait"), 0);
}

#[test]
fn a_flush_looks_only_at_what_is_not_over() {
    let mut task = Accesses::of_unit(4);
    task.calls("MPI_Win_lock_all", &[]);
    for _ in 0..100 {
        task.accesses("MPI_Put", 0, 1)
            .calls("MPI_Win_flush_all", &[]);
    }
    // None is open.
    assert_eq!(task.kept(), (100, 0));
}

#[test]
fn puts_that_wait_for_nothing_are_not_looked_at_again() {
    let mut it = Accesses::of_unit(4);
    it.calls("MPI_Win_lock_all", &[]);
    for at in 0..MOST as i64 {
        it.accesses("MPI_Put", 2 * at, 1);
    }
    // Each of these would look at all of them.
    for _ in 0..200_000 {
        it.calls("MPI_Win_flush_local", &[("rank", 1)]);
    }
    it.accesses("MPI_Put", 0, 1);
    assert_eq!((it.all.len(), it.all[0].over), (MOST, usize::MAX));
    it.calls("MPI_Win_flush", &[("rank", 1)]);
    assert!(it.all.iter().all(|it| it.over == MOST));
}

#[test]
fn threads_of_a_task_are_not_in_order() {
    let target = Accesses::of_unit(4);
    let mut one = Accesses::of_unit(4);
    one.puts();
    let whole = one.clone();
    let mut other = Accesses::default();
    other.hear();
    let mut both = one.clone();
    both.append(other.clone());
    assert_eq!(count(&[&both, &target, &whole]), 0);
    other.append(one.clone());
    assert_eq!(count(&[&other, &target, &whole]), 0);
    one.append(Accesses::default());
    assert_eq!(count(&[&one, &target, &whole]), 1);
    let mut none = Accesses::default();
    none.append(one);
    assert_eq!(count(&[&none, &target, &whole]), 1);
}

/// An epoch of `MPI_Win_start`, with what was done in it to rank 1.
fn started(it: &mut Accesses, accesses: &[(&str, i64, i64)]) {
    it.calls("MPI_Win_start", &[]);
    for (name, at, count) in accesses {
        it.accesses(name, *at, *count);
    }
    it.calls("MPI_Win_complete", &[]);
}

#[test]
fn what_overlaps_in_one_epoch_of_a_start() {
    let mut target = Accesses::of_unit(4);
    target.calls("MPI_Win_post", &[]);
    let put = |at| ("MPI_Put", at, 2);
    let twice = |second| {
        let mut it = Accesses::of_unit(4);
        started(&mut it, &[put(0), put(second)]);
        it
    };
    assert_eq!(count(&[&twice(1), &target]), 1);
    assert_eq!(count(&[&twice(2), &target]), 0);
    // It is over at its end.
    let mut apart = Accesses::of_unit(4);
    started(&mut apart, &[put(0)]);
    started(&mut apart, &[put(0)]);
    assert_eq!(count(&[&apart, &target]), 0);
}

#[test]
fn what_overlaps_while_one_post_lets_both_in() {
    let (put, elsewhere) = ([("MPI_Put", 0, 2)], [("MPI_Put", 4, 2)]);
    let posted = |times| {
        let mut it = Accesses::of_unit(4);
        (0..times).for_each(|_| {
            it.calls("MPI_Win_post", &[]);
            it.calls("MPI_Win_wait", &[]);
        });
        it
    };
    let of = |epochs: &[&[(&str, i64, i64)]]| {
        let mut it = Accesses::of_unit(4);
        for epoch in epochs {
            started(&mut it, epoch);
        }
        it
    };
    let once = of(&[&put]);
    assert_eq!(count(&[&once, &posted(1), &once]), 1);
    // Each was let in by another post, or nobody knows by which.
    assert_eq!(count(&[&once, &posted(2), &once]), 0);
    let (first, second) = (of(&[&put, &elsewhere]), of(&[&elsewhere, &put]));
    assert_eq!(count(&[&first, &posted(2), &second]), 0);
    assert_eq!(count(&[&first, &posted(2), &first]), 1);
}

#[test]
fn what_a_window_does_not_have() {
    let from = |at, count| {
        let mut it = Accesses::of_unit(4);
        it.fences().accesses("MPI_Put", at, count);
        it
    };
    let bytes = |it: &Accesses| -> Vec<(i64, i64)> {
        let found = outside((0..).zip([it, &Accesses::of_unit(4)]));
        let bytes = found.into_iter().map(|it| it.bytes);
        bytes.map(|it| (it.start, it.end)).collect()
    };
    assert!(bytes(&from(0, 16)).is_empty());
    assert_eq!(bytes(&from(0, 17)), [(0, 68)]);
    assert_eq!(bytes(&from(-1, 1)), [(-4, 0)]);
    // Locked alone, which no other access can meet.
    let mut alone = Accesses::of_unit(4);
    alone.locks(1, 1).accesses("MPI_Put", 16, 1).unlocks(1);
    assert_eq!(bytes(&alone), [(64, 68)]);
    assert_eq!(count(&[&alone, &Accesses::of_unit(4), &alone]), 0);
}
