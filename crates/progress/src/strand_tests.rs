#![allow(clippy::unwrap_used)]
//! Threads within tasks: who waits for whom, and for ever.

use crate::inside::Inside;
use crate::waits::Waiting;
use lockstep_comm::{
    Conversation, Doing, Lock, Matching, Membership, PartKind, Peer, Size, Strand,
};
use lockstep_trace::{CommunicatorId, ProcessName, ThreadName, TraceName};
use std::collections::BTreeMap;

fn thread(task: u32, number: u32) -> TraceName {
    TraceName {
        process: ProcessName::rank(task),
        thread: ThreadName::Main(number),
    }
}

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
        strand(0, Doing::Lock(Lock::Mutex)),
        strand(1, Doing::Operation(0)).holding(Lock::Mutex),
    ]);
    assert_eq!(waiting.stuck, [0, 1].into());
    assert_eq!(waiting.cores, [[0, 1]]);
    assert_eq!(waiting.inside.len(), 1);
    assert_eq!(waiting.inside[0].to, [thread(0, 1)]);
    assert_eq!(waiting.inside[0].why, Inside::Lock(Lock::Mutex));
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
fn one_of_two_holders_may_let_go() {
    let lock = Doing::Lock(Lock::Mutex);
    let holder = |number, doing| strand(number, doing).holding(Lock::Mutex);
    let found = waiting(vec![
        strand(0, lock),
        holder(1, Doing::Runs),
        holder(2, lock),
    ]);
    assert!(found.stuck.is_empty());
    // Two that took one each and want another.
    let found = waiting(vec![holder(0, lock), holder(1, lock)]);
    assert_eq!(found.stuck, [0, 1].into());
    assert_eq!(found.cores, [[0]]);
    // A lock of another kind is another lock.
    let found = waiting(vec![
        strand(0, lock),
        strand(1, Doing::Idle).holding(Lock::Spin),
    ]);
    assert!(found.stuck.is_empty());
}

#[test]
fn who_ended_gives_nothing_back() {
    let lock = Doing::Lock(Lock::Mutex);
    let found = waiting(vec![
        strand(0, lock),
        strand(1, Doing::Idle).holding(Lock::Mutex),
    ]);
    assert_eq!(found.cores, [[0]]);
    let found = waiting(vec![strand(0, lock).holding(Lock::Mutex)]);
    assert_eq!(found.inside[0].to, [thread(0, 0)]);
    assert_eq!(found.cores, [[0]]);
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
    // All have come: it is over in a moment.
    let found = waiting(vec![member(0, Doing::Team), member(1, Doing::Team)]);
    assert!(found.stuck.is_empty());
}
