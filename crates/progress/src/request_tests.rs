#![allow(clippy::unwrap_used)]
//! Requests that are given up, or that no call made; and threads that are in MPI at once.

use crate::message_tests::resolved;
use lockstep_api::mpi::Kind;
use lockstep_check::{LooseEnd, RuleChecker, Usage, at_once, loose_ends};
use lockstep_comm::communicators::{Meaning, Peer, Resolved};
use lockstep_comm::{
    CommunicatorId, Conversation, Matching, Membership, Observer, Operation, Routine, Said, State,
    Waits, Windows,
};
use lockstep_trace::{Argument, Handle, TraceName, Value};
use std::collections::BTreeMap;

fn argument(name: &'static str, kind: Kind, value: Value) -> Argument {
    Argument { name, kind, value }
}

fn request(kind: Kind, raw: i64) -> Argument {
    let value = Value::Handle(Handle { raw, name: None });
    argument("request", kind, value)
}

/// `MPI_Irecv` from rank 0 of the world.
fn receive() -> Resolved {
    let rank = Value::Rank {
        rank: 0,
        name: None,
    };
    let world = Value::Handle(Handle {
        raw: 1,
        name: Some("MPI_COMM_WORLD".to_owned()),
    });
    let mut call = resolved(vec![
        argument("source", Kind::Peer, rank),
        argument("tag", Kind::Tag, Value::Tag(Some(3))),
        argument("comm", Kind::Comm, world),
    ]);
    let id = Some(CommunicatorId(0));
    call.meanings = vec![
        Meaning::Peer(Peer {
            communicator: id,
            world: Some(0),
            size: Some(2),
        }),
        Meaning::Plain,
        Meaning::Communicator { id, size: Some(2) },
    ];
    call
}

/// What rank 1 is told of, whose calls these are: `None` is one that did not come back.
fn told(calls: &[(&str, Resolved, Option<Resolved>)], state: State) -> Vec<LooseEnd> {
    let trace = TraceName::new(1, 0);
    let mut said: Said<RuleChecker> = Said::new(trace, Windows::default(), Some(CommunicatorId(0)));
    let nothing = resolved(Vec::new());
    said.exchange(&Routine::of("MPI_Init"), &nothing, Some(&nothing));
    for (name, call, given) in calls {
        said.exchange(&Routine::of(name), call, given.as_ref());
    }
    let (mut conversation, _, rules) = said.into_told();
    // How it ended is known when all of it was read.
    conversation.shrink();
    conversation.state = state;
    let tasks = BTreeMap::from([(1, conversation)]);
    let matching = Matching::new(&tasks);
    let members = Membership::default();
    let usages = BTreeMap::from([(1, Usage::from(rules))]);
    let found = loose_ends(&tasks, &usages, &members, &matching);
    assert!(found.iter().all(|it| it.tasks == [1]));
    found.into_iter().map(|it| it.end).collect()
}

#[test]
fn a_receive_that_is_given_up() {
    let begun = || Some(resolved(vec![request(Kind::NewRequest, 7)]));
    let names = || resolved(vec![request(Kind::RequestAt, 7)]);
    let over = || Some(resolved(Vec::new()));
    let found = told(
        &[
            ("MPI_Irecv", receive(), begun()),
            ("MPI_Request_free", names(), over()),
        ],
        State::Finished,
    );
    let name = || "MPI_Irecv".to_owned();
    let given_up = LooseEnd::GivenUp { name: name() };
    let never = LooseEnd::NeverCompleted { name: name() };
    assert_eq!(found, [given_up, never]);
}

#[test]
fn a_receive_that_is_cancelled_and_then_freed() {
    let begun = || Some(resolved(vec![request(Kind::NewRequest, 7)]));
    let names = || resolved(vec![request(Kind::RequestAt, 7)]);
    let over = || Some(resolved(Vec::new()));
    let found = told(
        &[
            ("MPI_Irecv", receive(), begun()),
            ("MPI_Cancel", names(), over()),
            ("MPI_Request_free", names(), over()),
        ],
        State::Finished,
    );
    assert!(found.is_empty(), "{found:?}");
}

/// `MPI_Iprobe` or `MPI_Improbe` for what [`receive`] receives, and what it gives.
fn probe(name: &'static str, flag: i64) -> (&'static str, Resolved, Option<Resolved>) {
    let flag = argument("flag", Kind::Result, Value::Number(flag));
    (name, receive(), Some(resolved(vec![flag])))
}

/// What rank 1 waits for in the last of these calls, and whether it received by it.
fn waits(calls: Vec<(&str, Resolved, Option<Resolved>)>) -> Option<(Waits, bool)> {
    let trace = TraceName::new(1, 0);
    let mut said: Said<RuleChecker> = Said::new(trace, Windows::default(), Some(CommunicatorId(0)));
    for (name, call, given) in &calls {
        said.exchange(&Routine::of(name), call, given.as_ref());
    }
    let (conversation, ..) = said.into_told();
    let last = conversation.operations.len().checked_sub(1)?;
    let part = conversation.parts.last()?;
    let waits = conversation.operations[last].waits.clone();
    Some((waits, part.operation == last && part.complete))
}

#[test]
fn a_message_that_a_probe_found() {
    let received = || ("MPI_Recv", receive(), Some(resolved(Vec::new())));
    let waited = Some((Waits::All(vec![0]), true));
    let found = Some((Waits::Found(vec![0]), true));
    assert_eq!(waits(vec![received()]), waited);
    assert_eq!(waits(vec![probe("MPI_Iprobe", 0), received()]), waited);
    assert_eq!(waits(vec![probe("MPI_Iprobe", 1), received()]), found);
    // Only the next one was there.
    let both = vec![probe("MPI_Iprobe", 1), received(), received()];
    assert_eq!(waits(both), Some((Waits::All(vec![1]), true)));
    // A matched probe receives by itself.
    assert_eq!(waits(vec![probe("MPI_Improbe", 0)]), None);
    assert_eq!(waits(vec![probe("MPI_Improbe", 1)]), found);
}

/// What a rank is told of that names these requests again and again; `None` is a call of which nothing is known.
fn asks(name: &str, calls: &[Option<&str>]) -> Vec<LooseEnd> {
    let names = |request: &Option<&str>| {
        let handle = |it: &&str| Handle {
            raw: 7,
            name: Some((*it).to_owned()),
        };
        let handles: Vec<Handle> = request.iter().map(handle).collect();
        let value = Value::Handles(handles.len() as i64, handles);
        let mut call = resolved(vec![argument("array_of_requests", Kind::Requests, value)]);
        if request.is_none() {
            call.annotated.arguments = None;
        }
        call
    };
    let none = || {
        let count = argument("outcount", Kind::Result, Value::Number(-32766));
        Some(resolved(vec![count]))
    };
    let calls: Vec<_> = calls.iter().map(|it| (name, names(it), none())).collect();
    told(&calls, State::Running)
}

#[test]
fn a_rank_asks_for_none_of_its_requests() {
    let null = Some("MPI_REQUEST_NULL");
    for name in ["MPI_Waitsome", "MPI_Testsome"] {
        let idle = [LooseEnd::Idle {
            name: name.to_owned(),
        }];
        assert_eq!(asks(name, &[null; 3]), idle);
        // The last call of a rank that was killed need not have arguments.
        assert_eq!(asks(name, &[null, null, null, None]), idle);
        assert!(asks(name, &[null, null, None]).is_empty());
        assert!(asks(name, &[null, null, null, Some("other")]).is_empty());
    }
    // That is over at once.
    assert!(asks("MPI_Testall", &[null; 3]).is_empty());
}

#[test]
fn a_request_that_no_call_made() {
    let names = |raw| resolved(vec![request(Kind::RequestAt, raw)]);
    let begun = || Some(resolved(vec![request(Kind::NewRequest, 7)]));
    let found = |raw, state| {
        let calls = [
            ("MPI_Irecv", receive(), begun()),
            ("MPI_Wait", names(raw), None),
        ];
        told(&calls, state)
    };
    let name = "MPI_Wait".to_owned();
    let unmade = LooseEnd::Unmade { name };
    assert_eq!(found(0x1111, State::Ended), [unmade]);
    // Whoever waits may have it from a library; and one that was made.
    assert!(found(0x1111, State::Waiting).is_empty());
    assert!(found(7, State::Ended).is_empty());
}

/// A rank of which two threads wait, and this level of thread support was given.
fn two_threads(level: i64) -> Vec<LooseEnd> {
    let mut rules = RuleChecker::default();
    let threads = [TraceName::new(1, 0), TraceName::new(1, 1)];
    let provided = argument("provided", Kind::Result, Value::Number(level));
    let given = resolved(vec![provided]);
    rules.returned(&Routine::of("MPI_Init_thread"), &given, threads[0]);
    let operation = |name: &str| Operation {
        name: name.into(),
        event: 4,
        returned: false,
        waits: Waits::Unknown,
    };
    let conversation = Conversation {
        operations: vec![operation("MPI_Recv"), operation("MPI_Send")],
        pending: vec![0, 1],
        threads: vec![(0, threads[0]), (1, threads[1])],
        ..Conversation::default()
    };
    let found = at_once(
        &BTreeMap::from([(1, conversation)]),
        &BTreeMap::from([(1, rules.into())]),
    );
    found.into_iter().map(|it| it.end).collect()
}

#[test]
fn two_threads_are_in_mpi_at_once() {
    let at_once = LooseEnd::AtOnce {
        name: "MPI_Recv".to_owned(),
        thread: TraceName::new(1, 0).to_string(),
        others: "MPI_Send in thread 1.1".to_owned(),
    };
    assert_eq!(two_threads(2), [at_once]);
    assert!(two_threads(3).is_empty());
}
