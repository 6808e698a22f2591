#![allow(clippy::unwrap_used)]
//! Who is wrong where a message is not the one that is waited for.

use super::*;
use crate::message_tests::{Asked as _, Job, receive, send};
use lockstep_comm::{CommunicatorId, Mode, Operation, State, Waits};

/// A message in the communicator in which these all are.
fn to(to: u32, tag: i64) -> Envelope {
    Envelope {
        to,
        tag,
        communicator: CommunicatorId(0),
    }
}

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
    let all = astray(&job.0, None, &Matching::new(&job.0), &job.waiting());
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
    assert_eq!(found(&job), [(0, to(1, 77), true)]);
}

/// Whoever waits for any of its requests waits for the only one that is open.
#[test]
fn a_tag_of_a_message_that_any_of_one_waits_for() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 1, 77, false);
    let wanted = receive(Peer::Task(0), Some(5));
    let there = receive(Peer::Nobody, Some(5));
    job.call(1, "MPI_Waitany", vec![there, wanted], false);
    let conversation = job.0.get_mut(&1).unwrap();
    let last = conversation.parts.len() - 1;
    conversation.parts[last - 1].complete = true;
    let operation = conversation.operations.last_mut().unwrap();
    operation.waits = Waits::Any(vec![last - 1, last]);
    // Another was sent behind it, to one of the two.
    one(&mut job, 0, 1, 6, false);
    assert_eq!(found(&job), [(0, to(1, 77), true)]);
}

#[test]
fn a_message_to_itself() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 0, 5, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), [(0, to(0, 5), true)]);
}

#[test]
fn the_first_message_to_itself() {
    let mut job = Job::default();
    one(&mut job, 0, 0, 5, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), [(0, to(0, 5), true)]);
    // It is for another receive; others do so, and take it.
    let mut job = Job::default();
    one(&mut job, 0, 0, 6, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), []);
    let mut job = Job::default();
    one(&mut job, 2, 2, 5, true);
    one(&mut job, 0, 0, 5, false);
    waits(&mut job, 1, 0, 5);
    assert_eq!(found(&job), []);
}

/// Every message has its own tag: the one that is waited for went elsewhere, and others were sent behind it.
#[test]
fn a_tag_of_its_own() {
    let mut job = Job::default();
    for (task, tag) in (0..3).flat_map(|task| [5, 19, 11, 42].map(|tag| (task, tag))) {
        one(&mut job, task, (task + 1) % 3, tag, true);
    }
    one(&mut job, 0, 2, 45, false);
    one(&mut job, 0, 1, 55, false);
    one(&mut job, 1, 2, 55, true);
    waits(&mut job, 1, 0, 45);
    assert_eq!(found(&job), [(0, to(2, 45), true)]);
    // It had the tag of all.
    let mut job = Job::default();
    ring(&mut job, 4, 0);
    one(&mut job, 1, 0, 6, false);
    waits(&mut job, 2, 1, 6);
    assert_eq!(found(&job), []);
}

#[test]
fn a_receive_that_nobody_ever_served() {
    let mut job = Job::default();
    ring(&mut job, 2, 0);
    one(&mut job, 0, 1, 5, false);
    waits(&mut job, 1, 0, 77);
    assert_eq!(found(&job), [(1, to(1, 5), false)]);
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
    assert_eq!(found(&job), [(0, to(1, 77), true)]);
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
    assert_eq!(found(&job), [(0, to(0, 5), true)]);
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
    assert_eq!(wrong_tag, [(2, to(0, 77), true)]);
    let to_itself = asked(&[(2, 2, 5)]);
    assert_eq!(to_itself, [(2, to(2, 5), true)]);
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
    assert_eq!(found(&job), [(2, to(0, 1), true)]);
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
    // Who sent, to whom, and whether it is not known who was meant.
    let told = |job: &Job| -> Vec<(u32, u32, bool)> {
        let all = astray(&job.0, None, &Matching::new(&job.0), &job.waiting());
        assert!(all.iter().all(|it| it.by_sender));
        all.iter()
            .map(|it| (it.from, it.sent.to, it.others))
            .collect()
    };
    let mut one = give(1);
    any(&mut one, 1);
    assert_eq!(told(&one), [(0, 0, false)]);
    let mut both = give(1);
    any(&mut both, 1);
    any(&mut both, 2);
    assert_eq!(told(&both), [(0, 0, true)]);
    // Nobody ever got such a message.
    let mut none = give(0);
    any(&mut none, 1);
    assert_eq!(told(&none), []);
}

/// Messages of each of four to the next, numbered, up to where `wrong` is.
fn numbered(rounds: i64, wrong: impl Fn(i64, u32) -> Option<(PartKind, PartKind)>) -> Job {
    let mut job = Job::default();
    let mut is_stuck = [false; 4];
    for tag in 1..=rounds {
        for task in (0..4).filter(|it| !is_stuck[*it as usize]) {
            let usual = (
                send((task + 1) % 4, tag, Mode::Standard),
                receive(Peer::Task((task + 3) % 4), Some(tag)),
            );
            let (sent, asked) = wrong(tag, task).unwrap_or(usual);
            job.call(task, "MPI_Isend", vec![sent], true);
            job.call(task, "MPI_Irecv", vec![asked], true);
        }
        // Who asked for what nobody sent so far comes no further.
        for task in 0..4u32 {
            let conversation = job.0.get_mut(&task).unwrap();
            let last = conversation.parts.len() - 1;
            let matching = Matching::new(&job.0);
            if matching.partner(PartId { task, part: last }).is_none() && !is_stuck[task as usize] {
                is_stuck[task as usize] = true;
                let conversation = job.0.get_mut(&task).unwrap();
                conversation.parts[last].complete = false;
                let operation = conversation.operations.len();
                conversation.operations.push(Operation {
                    name: "MPI_Wait".into(),
                    event: operation as u64,
                    returned: false,
                    waits: Waits::All(vec![last]),
                });
                conversation.pending.push(operation);
                conversation.state = State::Waiting;
            }
        }
    }
    job
}

/// Who is wrong; whom it asked; by whom, to whom and with which tag a message was sent; and to whom and with which tag one is wanted.
type Told = (u32, Option<u32>, (u32, u32, i64), (u32, i64));

fn told(job: &Job, normal: Option<&Job>) -> Vec<Told> {
    let is_normal = normal.is_some();
    let normal = normal.map(|it| &it.0);
    let all = astray(&job.0, normal, &Matching::new(&job.0), &job.waiting());
    assert!(all.iter().all(|it| it.by_normal == is_normal));
    let of = |it: &Misdirection| {
        let (sent, wanted) = (&it.sent, &it.wanted);
        let sent = (it.from, sent.to, sent.tag);
        (it.task(), it.asked, sent, (wanted.to, wanted.tag))
    };
    all.iter().map(of).collect()
}

#[test]
fn of_numbered_messages_the_side_that_left_its_series() {
    // Of rank 3, in the fourth round.
    let of = |tag, sent, asked: (u32, i64)| {
        move |at, task| {
            let is_it = (at, task) == (tag, 3);
            is_it.then(|| {
                let (to, of): (u32, i64) = sent;
                let asked = receive(Peer::Task(asked.0), Some(asked.1));
                (send(to, of, Mode::Standard), asked)
            })
        }
    };
    let told = |rounds, wrong| told(&numbered(rounds, wrong), None);
    assert_eq!(
        told(8, of(4, (0, 4), (2, 54))),
        [(3, Some(2), (2, 3, 4), (3, 54))]
    );
    assert_eq!(
        told(8, of(4, (0, 4), (1, 4))),
        [(3, Some(1), (2, 3, 4), (3, 4))]
    );
    assert_eq!(
        told(8, of(4, (0, 5), (2, 4))),
        [(3, None, (3, 0, 5), (0, 4))]
    );
    assert_eq!(
        told(8, of(4, (1, 4), (2, 4))),
        [(3, None, (3, 1, 4), (0, 4))]
    );
    // In the first round others tell it, in which all do otherwise nobody.
    assert_eq!(
        told(1, of(1, (0, 1), (2, 2))),
        [(3, Some(2), (2, 3, 1), (3, 2))]
    );
}

#[test]
fn a_receive_that_took_what_was_meant_for_a_later_one() {
    let mut job = Job::default();
    for tag in 1..=5 {
        job.call(2, "MPI_Send", vec![send(3, tag, Mode::Standard)], true);
        let asked = receive(Peer::Task(2), Some(tag.max(tag / 4 * 5).min(5)));
        job.call(3, "MPI_Irecv", vec![asked], tag < 5);
    }
    assert_eq!(told(&job, None), [(3, Some(2), (2, 3, 4), (3, 5))]);
}

#[test]
fn a_normal_run_tells_of_a_single_message() {
    let job = |asked: i64| {
        let mut job = Job::default();
        job.call(0, "MPI_Send", vec![send(1, 12, Mode::Standard)], true);
        let asked = receive(Peer::Task(0), Some(asked));
        job.call(
            1,
            "MPI_Recv",
            vec![asked.clone()],
            asked == receive(Peer::Task(0), Some(12)),
        );
        job
    };
    assert_eq!(told(&job(21), None), []);
    assert_eq!(
        told(&job(21), Some(&job(12))),
        [(1, Some(0), (0, 1, 12), (1, 21))]
    );
}

#[test]
fn what_was_settled_and_left_out_is_of_the_series() {
    let mut job = numbered(8, |round, task| {
        let wrong = (send(0, 4, Mode::Standard), receive(Peer::Task(2), Some(54)));
        ((round, task) == (4, 3)).then_some(wrong)
    });
    // Three rounds of two calls each.
    for conversation in job.0.values_mut() {
        conversation.leave_out(6);
    }
    assert_eq!(told(&job, None), [(3, Some(2), (2, 3, 4), (3, 54))]);
}

/// In a line of tasks, each sends both ways, and the last one takes the first for its neighbour.
#[test]
fn a_task_at_the_boundary_goes_its_own_way() {
    let mut job = Job::default();
    let last: u32 = 4;
    for task in 0..=last {
        let mut sides = Vec::new();
        sides.extend((task > 0).then(|| (task.wrapping_sub(1), 1, 2)));
        sides.push(((task + 1) % (last + 1), 2, 1));
        for (peer, asked, sent) in sides {
            let is_open = task == last && peer == 0;
            let asked = receive(Peer::Task(peer), Some(asked));
            job.call(task, "MPI_Irecv", vec![asked], !is_open);
            job.call(
                task,
                "MPI_Isend",
                vec![send(peer, sent, Mode::Standard)],
                true,
            );
        }
    }
    let asked = receive(Peer::Task(1), Some(2));
    job.call(0, "MPI_Irecv", vec![asked], false);
    let told = told(&job, None);
    let asked = |it: &Told| it.0 == 0 && it.1.is_some();
    assert!(!told.iter().any(asked), "{told:?}");
}

/// What waits in one communicator was not meant for who waits in another, whatever its tag and receiver.
#[test]
fn what_was_sent_in_another_communicator() {
    for (receiver, tag) in [(1, 77), (2, 5)] {
        for copy in [0, 1] {
            let mut job = Job::default();
            ring(&mut job, 2, 0);
            let mut sent = send(receiver, tag, Mode::Standard);
            if let PartKind::Send { communicator, .. } = &mut sent {
                *communicator = CommunicatorId(copy);
            }
            job.call(0, "MPI_Send", vec![sent], true);
            waits(&mut job, 1, 0, 5);
            let expected = [(0, to(receiver, tag), true)];
            let expected = if copy == 0 { &expected[..] } else { &[] };
            assert_eq!(found(&job), expected, "{receiver} {tag} {copy}");
        }
    }
}
