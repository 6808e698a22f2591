#![allow(clippy::unwrap_used)]
//! Who is wrong where a message is not the one that is waited for.

use super::*;
use crate::message::{Mode, State};
use crate::message_tests::{Job, receive, send};

/// Two steps of messages from each of three to the next, `tag` apart each step.
fn ring(job: &mut Job, steps: i64, apart: i64) {
    for step in 0..steps {
        for task in 0..3 {
            one(job, task, (task + 1) % 3, 5 + apart * step, true);
        }
    }
}

fn one(job: &mut Job, from: u32, to: u32, tag: i64, is_taken: bool) {
    job.call(from, "MPI_Send", vec![send(to, tag, Mode::Standard)], true);
    if is_taken {
        let wanted = receive(Peer::Task(from), Some(tag));
        job.call(to, "MPI_Recv", vec![wanted], true);
    }
}

fn waits(job: &mut Job, task: u32, from: u32, tag: i64) {
    let wanted = receive(Peer::Task(from), Some(tag));
    job.call(task, "MPI_Recv", vec![wanted], false);
}

fn found(job: &Job) -> Vec<(u32, Envelope, bool)> {
    let all = astray(&job.0, &Matching::new(&job.0), &job.waiting());
    all.into_iter()
        .map(|it| (it.task(), it.sent, it.by_sender))
        .collect()
}

#[test]
fn a_tag_that_was_never_sent() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 1, 77, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), [(0, Envelope { to: 1, tag: 77 }, true)]);
}

#[test]
fn a_message_to_itself() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 0, 5, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), [(0, Envelope { to: 0, tag: 5 }, true)]);
}

#[test]
fn a_receive_that_nobody_ever_served() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 1, 5, false);
    waits(&mut job, 1, 0, 77);
    assert_eq!(found(&job), [(1, Envelope { to: 1, tag: 5 }, false)]);
}

#[test]
fn messages_that_are_numbered_by_their_steps() {
    let mut job = Job::default();
    ring(&mut job, 3, 1);
    for task in 1..3 {
        one(&mut job, task, (task + 1) % 3, 8, true);
    }
    one(&mut job, 0, 1, 77, false);
    waits(&mut job, 1, 0, 8);
    assert_eq!(found(&job), [(0, Envelope { to: 1, tag: 77 }, true)]);
}

#[test]
fn where_nothing_tells_them_apart_nobody_is_named() {
    let mut job = Job::default();
    one(&mut job, 0, 1, 6, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), []);
    let mut job = Job::default();
    ring(&mut job, 2, 1);
    one(&mut job, 0, 1, 5, false);
    waits(&mut job, 1, 0, 6);
    assert_eq!(found(&job), []);
}

#[test]
fn what_was_sent_behind_it_and_what_nobody_ever_takes_are_not_it() {
    let mut job = Job::default();
    for _ in 0..2 {
        ring(&mut job, 2, 1);
        one(&mut job, 0, 1, 99, false);
    }
    one(&mut job, 0, 0, 5, false);
    one(&mut job, 0, 1, 6, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), [(0, Envelope { to: 0, tag: 5 }, true)]);
}

#[test]
fn of_those_whom_a_wildcard_receive_would_take_the_one_who_sent_elsewhere() {
    let asked = |strays: &[(u32, u32, i64)]| {
        let mut job = Job::default();
        for _ in 0..2 {
            for worker in 1..4 {
                job.call(worker, "MPI_Send", vec![send(0, 5, Mode::Standard)], true);
                let taken = receive(Peer::Task(worker), Some(5));
                job.call(0, "MPI_Recv", vec![taken], true);
            }
        }
        for &(from, to, tag) in strays {
            one(&mut job, from, to, tag, false);
        }
        job.call(0, "MPI_Recv", vec![receive(Peer::Any, Some(5))], false);
        for worker in 1..4 {
            waits(&mut job, worker, 0, 1);
        }
        found(&job)
    };
    let wrong_tag = asked(&[(2, 0, 77)]);
    assert_eq!(wrong_tag, [(2, Envelope { to: 0, tag: 77 }, true)]);
    let to_itself = asked(&[(2, 2, 5)]);
    assert_eq!(to_itself, [(2, Envelope { to: 2, tag: 5 }, true)]);
    // Of two it may be either.
    assert_eq!(asked(&[(2, 0, 77), (3, 0, 78)]), []);
}

/// Tasks 1 and 2 send task 0 results of tag 2, which it takes from anybody.
fn workers(job: &mut Job) {
    for task in [1, 2, 1, 2] {
        one(job, task, 0, 2, true);
    }
}

#[test]
fn another_tag_than_the_one_that_anybody_may_send() {
    let mut job = Job::default();
    workers(&mut job);
    one(&mut job, 2, 0, 1, false);
    job.call(0, "MPI_Recv", vec![receive(Peer::Any, Some(2))], false);
    waits(&mut job, 2, 0, 7);
    job.0.entry(1).or_default().state = State::Finished;
    assert_eq!(found(&job), [(2, Envelope { to: 0, tag: 1 }, true)]);
    // It sent what is waited for behind it.
    let mut job = Job::default();
    workers(&mut job);
    one(&mut job, 2, 0, 1, false);
    one(&mut job, 2, 0, 2, true);
    job.call(0, "MPI_Recv", vec![receive(Peer::Any, Some(2))], false);
    waits(&mut job, 2, 0, 7);
    job.0.entry(1).or_default().state = State::Finished;
    assert_eq!(found(&job), []);
}

#[test]
fn a_tag_that_others_send_as_well() {
    let mut job = Job::default();
    workers(&mut job);
    one(&mut job, 1, 0, 1, true);
    one(&mut job, 2, 0, 1, false);
    job.call(0, "MPI_Recv", vec![receive(Peer::Any, Some(2))], false);
    waits(&mut job, 2, 0, 7);
    job.0.entry(1).or_default().state = State::Finished;
    assert_eq!(found(&job), []);
}

/// Task 0 gives work to 1 and 2, who take what comes from it; then it gives some to itself.
#[test]
fn work_that_went_to_nobody() {
    let give = |rounds: usize| {
        let mut job = Job::default();
        for to in [1, 2].repeat(rounds) {
            job.call(0, "MPI_Send", vec![send(to, 1, Mode::Standard)], true);
            job.call(to, "MPI_Recv", vec![receive(Peer::Task(0), None)], true);
        }
        job.call(0, "MPI_Send", vec![send(0, 1, Mode::Standard)], true);
        waits(&mut job, 0, 1, 2);
        job
    };
    let any = |job: &mut Job, task| {
        job.call(task, "MPI_Recv", vec![receive(Peer::Task(0), None)], false);
    };
    let sentence = |job: &Job| {
        let all = astray(&job.0, &Matching::new(&job.0), &job.waiting());
        let all: Vec<String> = all.iter().map(|it| it.sentence("")).collect();
        all.join("; ")
    };
    let mut one = give(1);
    any(&mut one, 1);
    assert_eq!(
        sentence(&one),
        "sent a message with tag 1 to itself instead of to rank 1 in MPI_Send"
    );
    let mut both = give(1);
    any(&mut both, 1);
    any(&mut both, 2);
    assert_eq!(
        sentence(&both),
        "sent a message with tag 1 to itself that nobody received in MPI_Send"
    );
    // Nobody ever got such a message.
    let mut none = give(0);
    any(&mut none, 1);
    assert_eq!(sentence(&none), "");
}
