#![allow(clippy::unwrap_used)]
//! Small conversations, and who is stuck in them.

use crate::{Circle, Waiting, Why};
use lockstep_api::mpi::Epoch;
use lockstep_check::{Aspect, LooseEnd, loose_ends, mismatches};
pub(crate) use lockstep_comm::job::{Job, collective, receive, resolved, send};
use lockstep_comm::*;
use lockstep_trace::TraceName;
use std::collections::BTreeMap;
use std::sync::Arc;

const WORLD: CommunicatorId = CommunicatorId(0);

/// What is asked of a job.
pub(crate) trait Asked {
    fn potential(&self) -> Option<Circle>;
    fn waiting(&self) -> Waiting;
}

impl Asked for Job {
    fn potential(&self) -> Option<Circle> {
        let matching = Matching::new(&self.0);
        without_buffers(&self.0, &self.members(), &matching)
    }

    fn waiting(&self) -> Waiting {
        let matching = Matching::new(&self.0);
        let mismatches = mismatches(&self.0, &self.members(), &matching);
        Waiting::new(&self.0, &self.members(), &matching, &mismatches)
    }
}

#[test]
fn two_that_receive_first() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![receive(Peer::Task(1), Some(0))], false)
        .call(1, "MPI_Recv", vec![receive(Peer::Task(0), Some(0))], false)
        .call(
            2,
            "MPI_Barrier",
            vec![collective("MPI_Barrier", None)],
            false,
        );
    let waiting = job.waiting();
    assert_eq!(waiting.stuck, [0, 1, 2].into());
    assert_eq!(waiting.cores, [[0, 1]]);
    assert_eq!(waiting.waits.len(), 4);
}

#[test]
fn a_message_under_way_is_no_wait() {
    let mut job = Job::default();
    job.call(0, "MPI_Send", vec![send(1, 7, Mode::Standard)], true)
        .call(1, "MPI_Recv", vec![receive(Peer::Task(0), Some(7))], false);
    assert_eq!(job.waiting(), Waiting::default());
}

#[test]
fn another_tag_is_said() {
    let mut job = Job::default();
    job.call(0, "MPI_Send", vec![send(1, 8, Mode::Standard)], true)
        .call(
            0,
            "MPI_Barrier",
            vec![collective("MPI_Barrier", None)],
            false,
        )
        .call(1, "MPI_Recv", vec![receive(Peer::Task(0), Some(7))], false);
    let waiting = job.waiting();
    assert_eq!(waiting.cores, [[0, 1]]);
    assert_eq!(waiting.waits[1].why, Why::OtherTag(7, vec![8]));
}

#[test]
fn who_runs_may_still_send() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![receive(Peer::Task(1), None)], false)
        .end(1, State::Running);
    let waiting = job.waiting();
    assert!(waiting.stuck.is_empty() && waiting.cores.is_empty());
    assert_eq!(waiting.waits.len(), 1);
}

#[test]
fn anybody_will_do() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![receive(Peer::Any, None)], false)
        .call(1, "MPI_Recv", vec![receive(Peer::Task(0), None)], false)
        .end(2, State::Running);
    assert!(job.waiting().stuck.is_empty());
    job.end(2, State::Finished);
    let waiting = job.waiting();
    assert_eq!(waiting.stuck, [0, 1].into());
}

#[test]
fn who_ended_is_waited_for_in_vain() {
    let mut job = Job::default();
    for task in 0..3 {
        job.call(
            task,
            "MPI_Allreduce",
            vec![collective("MPI_Allreduce", None)],
            false,
        );
    }
    job.end(3, State::Ended);
    let waiting = job.waiting();
    assert_eq!(waiting.stuck, [0, 1, 2].into());
    assert_eq!(waiting.cores, [[3]]);
}

#[test]
fn collectives_in_another_order() {
    let mut job = Job::default();
    job.call(
        0,
        "MPI_Barrier",
        vec![collective("MPI_Barrier", None)],
        false,
    )
    .call(
        1,
        "MPI_Allreduce",
        vec![collective("MPI_Allreduce", None)],
        false,
    );
    let matching = Matching::new(&job.0);
    let found = mismatches(&job.0, &job.members(), &matching);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].aspect, Aspect::Function);
    assert_eq!(job.waiting().stuck, [0, 1].into());
}

/// Two messages, three receives: those from anybody took both, though one could be the last one's.
#[test]
fn a_receive_from_anybody_took_what_the_last_one_waits_for() {
    let mut job = Job::default();
    for from in [1, 2] {
        job.call(from, "MPI_Send", vec![send(0, 0, Mode::Standard)], true);
        job.call(0, "MPI_Recv", vec![receive(Peer::Any, None)], true);
        job.end(from, State::Finished);
    }
    job.call(0, "MPI_Recv", vec![receive(Peer::Task(1), None)], false);
    assert_eq!(job.waiting().stuck, [0].into());
}

/// A size that not all say, of an operation that somebody is still in.
#[test]
fn another_size_may_be_why_it_does_not_complete() {
    let share = |count, complete| {
        let mut job = Job::default();
        for (task, count) in [(0, 4), (1, count), (2, 4)] {
            let PartKind::Collective(mut share) = collective("MPI_Allreduce", None) else {
                unreachable!("a collective operation");
            };
            share.size = Size {
                count: Some(count),
                datatype: Some("MPI_INT".into()),
            };
            let part = vec![PartKind::Collective(share)];
            job.call(task, "MPI_Allreduce", part, complete || task == 1);
        }
        let matching = Matching::new(&job.0);
        let found = mismatches(&job.0, &job.members(), &matching);
        found.first().map(|it| (it.aspect, it.prevents()))
    };
    assert_eq!(share(4, false), None);
    assert_eq!(share(2, false), Some((Aspect::Size, true)));
    assert_eq!(share(2, true), Some((Aspect::Size, false)));
}

/// Of a task two threads of which take part in the collective operations of one communicator.
#[test]
fn the_order_of_several_threads_is_not_known() {
    let part = |name: &str| vec![collective(name, None)];
    let job = |last: &str| {
        let mut job = Job::default();
        for task in 0..2 {
            job.call(task, "MPI_Allreduce", part("MPI_Allreduce"), true);
            job.call(task, "MPI_Barrier", part("MPI_Barrier"), true);
            job.call(task, last, part(last), task == 1);
        }
        // As threads are read one after the other.
        let conversation = job.0.get_mut(&0).expect("a task");
        conversation.operations.swap(0, 1);
        conversation.parts.swap(0, 1);
        conversation.parts[0].operation = 0;
        conversation.parts[1].operation = 1;
        let trace = |thread: u32| TraceName::new(0, thread);
        conversation.threads = vec![(0, trace(0)), (1, trace(1)), (2, trace(0))];
        job
    };
    let wrong = |job: &Job| mismatches(&job.0, &job.members(), &Matching::new(&job.0)).len();
    assert_eq!(wrong(&job("MPI_Barrier")), 0);
    // Who is in its last one waits for those who began fewer.
    let mut behind = job("MPI_Allreduce");
    let conversation = behind.0.get_mut(&1).expect("a task");
    conversation.operations.truncate(2);
    conversation.parts.truncate(2);
    assert_eq!(behind.waiting().waits.len(), 1);
    // Two of its threads are in it at once.
    let mut twice = job("MPI_Allreduce");
    let conversation = twice.0.get_mut(&0).expect("a task");
    conversation.parts[0].complete = false;
    conversation.operations[0].returned = false;
    conversation.pending.push(0);
    let matching = Matching::new(&twice.0);
    let found = mismatches(&twice.0, &twice.members(), &matching);
    let both = |it: &(String, Vec<crate::PartId>)| it.1.iter().any(|it| it.task == 0);
    assert!(
        found.len() == 1 && found[0].sides.iter().all(both),
        "{found:#?}"
    );
    // And for nobody, if another one is in another operation.
    let mut other = job("MPI_Allreduce");
    let conversation = other.0.get_mut(&1).expect("a task");
    conversation.parts[2].kind = collective("MPI_Bcast", None);
    conversation.parts[2].complete = false;
    conversation.operations[2].returned = false;
    conversation.pending = vec![2];
    conversation.state = State::Waiting;
    assert_eq!(wrong(&other), 1);
    assert_eq!(other.waiting().stuck, [0, 1].into());
}

/// Who asks for two messages together has no answer by one of them.
#[test]
fn what_is_asked_for_together_is_needed_together() {
    let job = |together: Vec<Vec<usize>>, sent: &[u32]| {
        let mut job = Job::default();
        let both = vec![send(1, 3, Mode::Synchronous), send(2, 3, Mode::Synchronous)];
        job.call(0, "MPI_Testall", both, false);
        let conversation = job.0.get_mut(&0).expect("a task");
        conversation.operations[0].waits = Waits::Any(vec![0, 1]);
        (conversation.polled, conversation.together) = (Some(0), together);
        for task in [1, 2] {
            let tag = if sent.contains(&task) { 3 } else { 4 };
            let part = vec![receive(Peer::Task(0), Some(tag))];
            job.call(task, "MPI_Recv", part, false);
        }
        job.waiting().stuck
    };
    let group = || vec![vec![0, 1]];
    assert_eq!(job(group(), &[1]), [0, 2].into());
    assert!(job(Vec::new(), &[1]).is_empty());
    assert!(job(group(), &[1, 2]).is_empty());
}

/// Of a ring of which each tells its own edges.
#[test]
fn an_edge_that_only_one_end_tells() {
    let found = |edges: &[(&[i64], &[i64])]| {
        let mut job = Job::default();
        let name = "MPI_Dist_graph_create_adjacent";
        for (task, (from, to)) in (0..).zip(edges) {
            let PartKind::Collective(mut share) = collective(name, None) else {
                unreachable!("a collective operation");
            };
            let edges = |ranks: &[i64]| Some(Amount::Edges(ranks.into()));
            let (sent, expected) = (edges(to), edges(from));
            share.amounts = Some(Amounts { sent, expected }.into());
            job.call(task, name, vec![PartKind::Collective(share)], true);
        }
        let matching = Matching::new(&job.0);
        let found = mismatches(&job.0, &job.members(), &matching);
        let sides = found.into_iter().next()?.sides;
        let side = |at: usize| (sides[at].1[0].task, sides[at].0.clone());
        Some((side(1), side(0)))
    };
    assert_eq!(found(&[(&[2], &[1]), (&[0], &[2]), (&[1], &[0])]), None);
    let told = |task: u32, said: &str| (task, said.to_owned());
    // Task 1 expects of 2 what 0 sends.
    let wrong = found(&[(&[2], &[1]), (&[2], &[2]), (&[1], &[0])]);
    let (fault, other) = (told(1, "no edge from rank 0"), told(0, "an edge to rank 1"));
    assert_eq!(wrong, Some((fault, other)));
    let twice = found(&[(&[2], &[1, 1]), (&[0], &[2]), (&[1], &[0])]);
    let (one, two) = (told(0, "2 edges to rank 1"), told(1, "an edge from rank 0"));
    assert_eq!(twice, Some((one, two)));
}

/// Of an operation with a root between tasks 0, 1 and tasks 2, 3, which take the first of the others for it.
#[test]
fn who_is_the_root_of_an_operation_between_two_groups() {
    let members = Membership {
        members: vec![None],
        sides: [(WORLD, [[0, 1].into(), [2, 3].into()])].into(),
        ..Membership::default()
    };
    let found = |first: (Role, Option<i64>), second: (Role, Option<i64>)| {
        let mut job = Job::default();
        let served = (Role::Member, Some(0));
        for (task, (role, root)) in (0..).zip([first, second, served, served]) {
            let PartKind::Collective(mut share) = collective("MPI_Bcast", root) else {
                unreachable!("a collective operation");
            };
            share.role = role;
            let part = vec![PartKind::Collective(share)];
            job.call(task, "MPI_Bcast", part, task < 2);
        }
        let matching = Matching::new(&job.0);
        let wrong = mismatches(&job.0, &members, &matching);
        let waiting = Waiting::new(&job.0, &members, &matching, &wrong);
        let (said, who) = wrong.first()?.sides.get(1)?.clone();
        let who: Vec<u32> = who.iter().map(|it| it.task).collect();
        Some((said, who, waiting.stuck.len()))
    };
    let (root, bystander) = ((Role::Root, None), (Role::Bystander, None));
    let told = |said: &str, who: u32| Some((said.to_owned(), vec![who], 2));
    assert_eq!(found(root, bystander), None);
    let nobody = found(bystander, bystander);
    assert_eq!(nobody, told("MPI_PROC_NULL instead of MPI_ROOT", 0));
    let all = found((Role::Member, Some(0)), (Role::Member, Some(0)));
    assert_eq!(all.map(|it| it.0), Some("0 instead of MPI_ROOT".to_owned()));
    let both = found(root, root);
    assert_eq!(both, told("MPI_ROOT instead of MPI_PROC_NULL", 1));
    // Who is of the root's group says nothing of who the root is.
    for named in [0, 1] {
        let served = found(root, (Role::Member, Some(named)));
        let said = format!("{named} instead of MPI_PROC_NULL");
        assert_eq!(served, told(&said, 1));
    }
}

/// Between two groups each sends what the other one expects, and who is of the root's group may say anything.
#[test]
fn how_much_two_groups_send_each_other() {
    let members = Membership {
        members: vec![None],
        sides: [(WORLD, [[0, 1].into(), [2, 3].into()])].into(),
        ..Membership::default()
    };
    let found = |name: &str, said: [(Role, i64, &str); 4]| {
        let mut job = Job::default();
        for (task, (role, count, datatype)) in (0..).zip(said) {
            let PartKind::Collective(mut share) = collective(name, None) else {
                unreachable!("a collective operation");
            };
            share.role = role;
            share.size = Size {
                count: Some(count),
                datatype: Some(datatype.into()),
            };
            job.call(task, name, vec![PartKind::Collective(share)], true);
        }
        mismatches(&job.0, &members, &Matching::new(&job.0)).len()
    };
    let each = |counts: [i64; 4]| counts.map(|it| (Role::Member, it, "MPI_INT"));
    assert_eq!(found("MPI_Allgather", each([2, 2, 3, 3])), 0);
    assert_eq!(found("MPI_Iallgather", each([2, 2, 3, 4])), 1);
    assert_eq!(found("MPI_Allreduce", each([2, 2, 3, 3])), 1);
    let root = [
        (Role::Root, 4, "MPI_INT"),
        (Role::Bystander, 0, "MPI_BYTE"),
        (Role::Member, 4, "MPI_INT"),
        (Role::Member, 4, "MPI_INT"),
    ];
    assert_eq!(found("MPI_Bcast", root), 0);
    // Nothing is nothing, of whatever type.
    let nothing = ["MPI_INT", "MPI_DOUBLE", "MPI_INT", "MPI_BYTE"];
    let nothing = nothing.map(|it| (Role::Member, 0, it));
    assert_eq!(found("MPI_Bcast", nothing), 0);
}

#[test]
fn for_whom_some_wait_is_not_known() {
    let mut job = Job::default();
    let among = |communicator| {
        let PartKind::Collective(mut share) = collective("MPI_Allreduce", None) else {
            unreachable!("a collective operation");
        };
        share.communicator = communicator;
        vec![PartKind::Collective(share)]
    };
    let neighbours = || {
        let name = "MPI_Neighbor_alltoall";
        vec![collective(name, None)]
    };
    job.call(0, "MPI_Allreduce", among(None), false).call(
        1,
        "MPI_Allreduce",
        among(Some(CommunicatorId(7))),
        false,
    );
    assert_eq!(job.waiting().blind, [0, 1].into());
    // One that all came to and did not leave, as others did.
    let mut job = Job::default();
    for (task, done) in [(0, true), (1, false), (2, true)] {
        job.call(task, "MPI_Neighbor_alltoall", neighbours(), done);
    }
    assert_eq!(job.waiting().blind, [1].into());
}

#[test]
fn a_leaf_waits_for_its_root_only() {
    let mut job = Job::default();
    let bcast = || vec![collective("MPI_Bcast", Some(0))];
    job.call(1, "MPI_Bcast", bcast(), false)
        .call(2, "MPI_Bcast", bcast(), false)
        .end(0, State::Running);
    let waiting = job.waiting();
    assert!(waiting.stuck.is_empty());
    assert!(waiting.waits.iter().all(|wait| wait.to == 0));
}

#[test]
fn two_that_send_first_and_were_lucky() {
    let mut job = Job::default();
    for (task, other) in [(0, 1), (1, 0)] {
        job.call(task, "MPI_Send", vec![send(other, 0, Mode::Standard)], true)
            .call(
                task,
                "MPI_Recv",
                vec![receive(Peer::Task(other), Some(0))],
                true,
            );
    }
    let found = job.potential().unwrap();
    assert_eq!(found, [(0, 0), (1, 0)]);
}

/// Whose message a receive from anybody took was not kept: then those behind it are not taken for theirs.
#[test]
fn messages_that_anybody_may_have_sent_make_no_circle() {
    let mut job = Job::default();
    let barrier = || vec![collective("MPI_Barrier", None)];
    for task in [1, 2] {
        job.call(task, "MPI_Send", vec![send(0, 0, Mode::Standard)], true)
            .call(task, "MPI_Barrier", barrier(), true)
            .call(task, "MPI_Send", vec![send(0, 0, Mode::Standard)], true);
        job.call(0, "MPI_Recv", vec![receive(Peer::Any, Some(0))], true);
    }
    job.call(0, "MPI_Barrier", barrier(), true);
    for task in [1, 2] {
        let from = receive(Peer::Task(task), Some(0));
        job.call(0, "MPI_Recv", vec![from], true);
    }
    assert_eq!(job.potential(), None);
    // One sender: its messages came in order.
    let mut job = Job::default();
    for from in [Peer::Any, Peer::Task(1)] {
        job.call(1, "MPI_Send", vec![send(0, 0, Mode::Standard)], true)
            .call(0, "MPI_Recv", vec![receive(from, Some(0))], true);
    }
    assert_eq!(job.potential(), None);
    let mut job = Job::default();
    for (task, other) in [(0, 1), (1, 0)] {
        job.call(task, "MPI_Send", vec![send(other, 0, Mode::Standard)], true)
            .call(task, "MPI_Recv", vec![receive(Peer::Any, Some(0))], true);
    }
    assert!(job.potential().is_some());
}

#[test]
fn one_that_receives_first_breaks_the_circle() {
    let mut job = Job::default();
    job.call(0, "MPI_Send", vec![send(1, 0, Mode::Standard)], true)
        .call(0, "MPI_Recv", vec![receive(Peer::Task(1), Some(0))], true)
        .call(1, "MPI_Recv", vec![receive(Peer::Task(0), Some(0))], true)
        .call(1, "MPI_Send", vec![send(0, 0, Mode::Standard)], true);
    assert_eq!(job.potential(), None);
}

#[test]
fn loose_ends_are_told() {
    let mut job = Job::default();
    let sized = |count, datatype: &str| Size {
        count: Some(count),
        datatype: Some(datatype.into()),
    };
    let send_of = |tag, size| PartKind::Send {
        to: Peer::Task(1),
        tag,
        communicator: WORLD,
        mode: Mode::Standard,
        size,
    };
    let receive_of = |tag, size| PartKind::Receive {
        from: Peer::Task(0),
        tag: Some(tag),
        communicator: WORLD,
        size,
        wildcard: None,
    };
    job.call(0, "MPI_Send", vec![send_of(1, sized(4, "MPI_INT"))], true)
        .call(0, "MPI_Send", vec![send_of(2, sized(4, "MPI_INT"))], true)
        .call(0, "MPI_Send", vec![send_of(3, sized(4, "MPI_INT"))], true)
        .call(
            1,
            "MPI_Recv",
            vec![receive_of(1, sized(4, "MPI_FLOAT"))],
            true,
        )
        .call(
            1,
            "MPI_Recv",
            vec![receive_of(2, sized(3, "MPI_INT"))],
            true,
        )
        .end(0, State::Finished)
        .end(1, State::Finished);
    let matching = Matching::new(&job.0);
    let found = loose_ends(&job.0, &BTreeMap::new(), &job.members(), &matching);
    assert!(found.iter().all(|it| it.tasks == [0] && it.times == 1));
    let found: Vec<LooseEnd> = found.into_iter().map(|it| it.end).collect();
    let lost = LooseEnd::NeverReceived {
        name: "MPI_Send".to_owned(),
        to: 1,
        tag: 3,
    };
    let other = LooseEnd::OtherDatatype {
        sent: "MPI_INT".to_owned(),
        received: "MPI_FLOAT".to_owned(),
        to: 1,
    };
    let large = LooseEnd::TooLarge {
        sent: "4 MPI_INT".to_owned(),
        room: "3 MPI_INT".to_owned(),
        to: 1,
    };
    assert_eq!(found, [lost, other, large]);
}

#[test]
fn who_found_a_message_would_have_gone_on_without() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![receive(Peer::Task(1), Some(3))], true)
        .call(0, "MPI_Recv", vec![receive(Peer::Task(1), Some(4))], true)
        .call(1, "MPI_Send", vec![send(0, 4, Mode::Standard)], true)
        .call(1, "MPI_Send", vec![send(0, 3, Mode::Standard)], true);
    assert_eq!(job.potential(), Some(vec![(0, 0), (1, 0)]));
    if let Some(conversation) = job.0.get_mut(&0) {
        conversation.operations[0].waits = Waits::Found(vec![0]);
    }
    assert_eq!(job.potential(), None);
}

/// A long message is moved while both sides are in MPI: who computes since it asked for it holds the sender up.
#[test]
fn a_send_to_who_asked_and_computes() {
    let mut job = Job::default();
    job.call(0, "MPI_Send", vec![send(1, 4, Mode::Standard)], false)
        .call(1, "MPI_Irecv", vec![receive(Peer::Task(0), Some(4))], true);
    let complete = |job: &mut Job, is_complete: bool| {
        let receiver = job.0.get_mut(&1).unwrap();
        receiver.parts[0].complete = is_complete;
    };
    complete(&mut job, false);
    let waits = |job: &Job| -> Vec<(u32, u32, Why)> {
        let waiting = job.waiting();
        assert!(waiting.stuck.is_empty());
        let each = waiting.waits.into_iter();
        each.map(|it| (it.from, it.to, it.why)).collect()
    };
    assert_eq!(waits(&job), [(0, 1, Why::Receiver(4))]);
    // It came; or the receiver is in MPI.
    complete(&mut job, true);
    assert_eq!(waits(&job), []);
    complete(&mut job, false);
    let other = vec![receive(Peer::Task(2), Some(4))];
    job.call(1, "MPI_Recv", other, false);
    job.call(2, "MPI_Comm_rank", Vec::new(), true);
    assert_eq!(waits(&job), [(1, 2, Why::Message(Some(4)))]);
}

/// A step of an epoch on a window, for these.
fn step(step: Step, ranks: Option<&[i64]>) -> Vec<PartKind> {
    vec![PartKind::Epoch {
        window: CommunicatorId(0),
        step,
        group: ranks.map(|ranks| {
            Arc::new(MpiGroup::Include(
                MpiGroup::Of(CommunicatorId(0)).into(),
                ranks.to_vec(),
            ))
        }),
    }]
}

#[test]
fn who_never_posts_is_waited_for() {
    let waits = |posts: &[u32]| {
        let mut job = Job::default();
        job.call(0, "MPI_Win_start", step(Step::Start, Some(&[1, 2])), true)
            .call(0, "MPI_Win_complete", step(Step::Complete, None), false);
        for task in [1, 2] {
            job.call(task, "MPI_Barrier", vec![], true);
        }
        for &task in posts {
            job.call(task, "MPI_Win_post", step(Step::Post, Some(&[0])), true);
        }
        let waits = job.waiting().waits;
        let told = waits.into_iter().map(|it| (it.from, it.to, it.why));
        told.collect::<Vec<_>>()
    };
    let post = |of| (0, of, Why::Epoch(Epoch::Post));
    assert_eq!(waits(&[1]), [post(2)]);
    assert_eq!(waits(&[]), [post(1), post(2)]);
    assert_eq!(waits(&[1, 2]), []);
}

#[test]
fn who_was_let_in_is_waited_for() {
    let mut job = Job::default();
    job.call(0, "MPI_Win_start", step(Step::Start, Some(&[1])), false)
        .call(1, "MPI_Win_post", step(Step::Post, Some(&[0])), true)
        .call(1, "MPI_Win_wait", step(Step::Wait, None), false)
        .call(2, "MPI_Win_start", step(Step::Start, Some(&[3])), true)
        .call(2, "MPI_Win_complete", step(Step::Complete, None), true);
    let waits = job.waiting().waits;
    let told: Vec<_> = waits.iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(told, [(1, 0)]);
}

/// Which of two messages of two threads came first is not recorded: nothing is said of how much either is.
#[test]
fn messages_of_several_threads_are_in_no_order() {
    let of = |count| Size {
        count: Some(count),
        datatype: Some("MPI_INT".into()),
    };
    let sent = |count| PartKind::Send {
        to: Peer::Task(1),
        tag: 0,
        communicator: WORLD,
        mode: Mode::Standard,
        size: of(count),
    };
    let received = |count| PartKind::Receive {
        from: Peer::Task(0),
        tag: Some(0),
        communicator: WORLD,
        size: of(count),
        wildcard: None,
    };
    let misfits = |threads: &[(usize, u32)]| {
        let mut job = Job::default();
        job.call(0, "MPI_Send", vec![sent(1)], true)
            .call(0, "MPI_Send", vec![sent(2)], true)
            .call(1, "MPI_Recv", vec![received(2)], true)
            .call(1, "MPI_Recv", vec![received(1)], true);
        let named = threads
            .iter()
            .map(|(first, thread)| (*first, TraceName::new(0, *thread)));
        job.0.entry(0).or_default().threads = named.collect();
        let matching = Matching::new(&job.0);
        loose_ends(&job.0, &BTreeMap::new(), &job.members(), &matching).len()
    };
    assert_eq!(misfits(&[(0, 0)]), 1);
    assert_eq!(misfits(&[(0, 0), (1, 1)]), 0);
}
