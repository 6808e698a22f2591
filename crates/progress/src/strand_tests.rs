#![allow(clippy::unwrap_used)]
//! Threads within tasks: who waits for whom, and for ever.

use crate::inside::Inside;
use crate::waits::Waiting;
use lockstep_comm::CommunicatorId;
use lockstep_comm::{
    Conversation, Doing, Lock, Matching, Membership, PartKind, Peer, Size, Strand,
};
use lockstep_trace::{Hold, HoldState, ProcessName, ThreadName, TraceName};
use std::collections::BTreeMap;

fn thread(task: u32, number: u32) -> TraceName {
    TraceName {
        process: ProcessName::rank(task),
        thread: ThreadName::Main(number),
    }
}

/// Addresses of locks.
const A: u64 = 0x1000;
const B: u64 = 0x1028;
const LOCK: Doing = Doing::Lock(Lock::Mutex);

fn strand(number: u32, doing: Doing) -> Strand {
    Strand::new(thread(0, number), doing)
}

/// Rank 0 with these threads; what it waits for is a message from rank 1, which waits for one from it.
fn waiting(strands: Vec<Strand>) -> Waiting {
    let receive = |from| {
        let kind = PartKind::Receive {
            from: Peer::Task(from),
            tag: Some(3),
            communicator: CommunicatorId(0),
            size: Size::default(),
            wildcard: None,
        };
        Conversation::waiting_in("MPI_Recv", kind)
    };
    let mut first = receive(1);
    first.strands = strands;
    let tasks = BTreeMap::from([(0, first), (1, receive(0))]);
    let members = Membership {
        members: vec![Some([0, 1].into())],
        ..Membership::default()
    };
    Waiting::new(&tasks, &members, &Matching::new(&tasks), &[])
}

#[test]
fn a_lock_that_a_receiver_holds() {
    let waiting = waiting(vec![
        strand(0, LOCK).wanting(A),
        strand(1, Doing::Operation(0)).holding(A),
    ]);
    assert_eq!(waiting.stuck, [0, 1].into());
    assert_eq!(waiting.cores, [[0, 1]]);
    assert_eq!(waiting.inside.len(), 1);
    assert_eq!(waiting.inside[0].to, [thread(0, 1)]);
    assert_eq!(waiting.inside[0].why, Inside::Lock(Lock::Mutex));
    assert_eq!(waiting.inside[0].object, Some(A));
}

#[test]
fn a_thread_that_runs_may_send() {
    let waiting = waiting(vec![
        strand(0, Doing::Operation(0)),
        strand(1, Doing::Runs),
        strand(2, Doing::Idle),
    ]);
    assert!(waiting.stuck.is_empty());
    assert_eq!(waiting.partly, [0].into());
}

#[test]
fn who_holds_that_very_lock_is_waited_for() {
    let found = waiting(vec![
        strand(0, LOCK).wanting(A),
        strand(1, Doing::Runs).holding(A),
        strand(2, LOCK).wanting(A).holding(B),
    ]);
    assert!(found.stuck.is_empty());
    assert_eq!(found.inside[0].to, [thread(0, 1)]);
    // Two that hold one each and want the other's.
    let found = waiting(vec![
        strand(0, LOCK).wanting(A).holding(B),
        strand(1, LOCK).wanting(B).holding(A),
    ]);
    assert_eq!(found.stuck, [0, 1].into());
    assert_eq!(found.cores, [[0]]);
    // Another lock, and one that nobody is known to hold.
    let found = waiting(vec![
        strand(0, LOCK).wanting(A),
        strand(1, Doing::Idle).holding(B),
    ]);
    assert!(found.stuck.is_empty() && found.inside.is_empty());
    // Who waits for a condition holds no lock.
    let aside = Hold::new(A, HoldState::Aside);
    let found = waiting(vec![
        strand(0, LOCK).wanting(A),
        strand(1, Doing::Signal).with(aside),
    ]);
    assert!(found.stuck.is_empty());
}

#[test]
fn who_writes_waits_for_all_who_read() {
    let read = |state| {
        let mut hold = Hold::new(A, state);
        hold.shared = true;
        hold
    };
    let reader = |number, doing| strand(number, doing).with(read(HoldState::Held));
    let found = waiting(vec![
        strand(0, LOCK).wanting(A),
        reader(1, Doing::Idle),
        reader(2, Doing::Runs),
    ]);
    assert_eq!(found.inside[0].to, [thread(0, 1), thread(0, 2)]);
    assert_eq!(found.cores, [[0]]);
    // Who would read waits behind who wants to write; who reads once more, for itself.
    let found = waiting(vec![
        reader(0, LOCK).with(read(HoldState::Wanted)),
        strand(1, LOCK).wanting(A),
        strand(2, LOCK).with(read(HoldState::Wanted)),
    ]);
    assert_eq!(found.inside[0].why, Inside::Lock(Lock::Mutex));
    assert_eq!(found.inside[0].to, [thread(0, 0)]);
    assert_eq!(found.inside[1].to, [thread(0, 0)]);
    assert_eq!(found.inside[2].why, Inside::Behind(Lock::Mutex));
    assert_eq!(found.inside[2].to, [thread(0, 1)]);
    assert_eq!(found.cores, [[0]]);
}

#[test]
fn who_ended_gives_nothing_back() {
    let found = waiting(vec![
        strand(0, LOCK).wanting(A),
        strand(1, Doing::Idle).holding(A),
    ]);
    assert_eq!(found.cores, [[0]]);
    let found = waiting(vec![strand(0, LOCK).wanting(A).holding(A)]);
    assert_eq!(found.inside[0].to, [thread(0, 0)]);
    assert_eq!(found.cores, [[0]]);
}

#[test]
fn a_semaphore_is_a_lock_where_another_took_it() {
    let wants = |number| strand(number, Doing::Semaphore).wanting(A);
    let found = waiting(vec![wants(0), strand(1, Doing::Idle).holding(A)]);
    assert!(found.stuck.is_empty());
    let found = waiting(vec![
        wants(0),
        strand(1, Doing::Idle).holding(A),
        strand(2, Doing::Join),
    ]);
    assert_eq!(found.stuck, [0, 1].into());
    // Another may give; or nobody took it, and a signal's handler may.
    let found = waiting(vec![
        wants(0),
        strand(1, Doing::Idle).holding(A),
        strand(2, Doing::Runs),
    ]);
    assert!(found.stuck.is_empty());
    let found = waiting(vec![wants(0), strand(2, Doing::Join)]);
    assert!(found.stuck.is_empty());
}

#[test]
fn who_waits_for_itself() {
    let found = waiting(vec![strand(0, Doing::Again), strand(1, Doing::Idle)]);
    assert_eq!(found.inside[0].why, Inside::Again);
    assert_eq!(found.cores, [[0]]);
}

#[test]
fn what_fork_did_not_copy_never_comes() {
    let child = |doing| {
        let mut strand = strand(0, doing);
        strand.forked_from = Some(ProcessName::rank(7));
        strand.in_full = true;
        strand
    };
    for (strand, why) in [
        (child(Doing::Team), Inside::Team),
        (child(Doing::Join), Inside::End),
        (child(LOCK).wanting(A), Inside::Lock(Lock::Mutex)),
    ] {
        let found = waiting(vec![strand.clone()]);
        assert_eq!(found.inside[0].why, why);
        assert!(found.inside[0].to.is_empty());
        assert_eq!(found.cores, [[0]]);
        // With another thread it may be otherwise; and where nothing was forked.
        let found = waiting(vec![strand.clone(), self::strand(1, Doing::Runs)]);
        assert!(found.stuck.is_empty(), "{why:?}");
        let mut own = strand;
        own.forked_from = None;
        assert!(waiting(vec![own]).stuck.is_empty(), "{why:?}");
    }
}

#[test]
fn without_addresses_any_of_the_kind_may_be_it() {
    let kinds = |mut strand: Strand| {
        strand.holds.as_mut().unwrap().are_kinds = true;
        strand
    };
    let holder = |number, doing| kinds(strand(number, doing).holding(1));
    let waiter = kinds(strand(0, LOCK).wanting(1));
    let found = waiting(vec![
        waiter.clone(),
        holder(1, Doing::Runs),
        holder(2, Doing::Idle),
    ]);
    assert!(found.stuck.is_empty());
    assert_eq!(found.inside[0].to, [thread(0, 1), thread(0, 2)]);
    assert_eq!(waiting(vec![waiter, holder(2, Doing::Idle)]).cores, [[0]]);
}

#[test]
fn a_team_waits_for_all_that_are_in_it() {
    let member = |number, doing| strand(number, doing).in_team();
    let found = waiting(vec![
        member(0, Doing::Team),
        member(1, Doing::Operation(0)),
        member(2, Doing::Team),
        strand(3, Doing::Runs),
    ]);
    let to = |from| {
        found
            .inside
            .iter()
            .find(|it| it.from == from)
            .unwrap()
            .to
            .clone()
    };
    assert_eq!(to(thread(0, 0)), [thread(0, 1)]);
    // Thread 3 runs, and is not of the team.
    assert!(found.stuck.is_empty());
    let found = waiting(vec![member(0, Doing::Team), member(1, Doing::Operation(0))]);
    assert_eq!(found.stuck, [0, 1].into());
    // Who left the region without coming to the barrier cannot come any more; who came has gone on, or was in no such region.
    let after = |doing, regions, meetings| Strand {
        regions,
        meetings,
        ..strand(0, doing)
    };
    let waiter = after(Doing::Team, 1, 2).in_team();
    let stuck = |doing, regions, meetings| {
        let mut other = after(doing, regions, meetings);
        other.trace = thread(0, 1);
        waiting(vec![waiter.clone(), other]).stuck
    };
    assert_eq!(stuck(Doing::Idle, 1, 1), [0, 1].into());
    let left = |number| Strand {
        trace: thread(0, number),
        ..after(Doing::Idle, 1, 1)
    };
    // One of two stands for itself; of more who left, who waits is the one that did otherwise.
    let cores = |left: Vec<Strand>| waiting([vec![waiter.clone()], left].concat()).cores;
    assert_eq!(cores(vec![left(1)]), [[0]]);
    assert_eq!(cores(vec![left(1), left(2)]), [[0]]);
    assert!(stuck(Doing::Idle, 1, 2).is_empty());
    assert!(stuck(Doing::Idle, 0, 0).is_empty());
    // A thread of a region within this one comes to none of its barriers.
    let inner = Strand {
        trace: thread(0, 2),
        ..after(Doing::Runs, 2, 1).in_team()
    };
    assert!(
        waiting(vec![waiter.clone(), left(1), inner])
            .stuck
            .is_empty()
    );
    // All have come: it is over in a moment.
    let found = waiting(vec![member(0, Doing::Team), member(1, Doing::Team)]);
    assert!(found.stuck.is_empty());
}
