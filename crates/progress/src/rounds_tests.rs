#![allow(clippy::unwrap_used)]
//! Random turns of three tasks, looked at now and then with what is settled left out, against all of them in detail.

use lockstep_comm::{Conversation, Envelope, Mode, Operation, Part, Waits};
use super::*;
use crate::Matching;
use crate::message_tests::{Job, collective, receive, send};
use crate::mismatches;
use lockstep_comm::tests::found;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const TASKS: u32 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// From a task to the next or the one after it.
    Send(u32, u32, i64),
    /// The oldest message that is on its way.
    Receive,
    /// Two tasks send each other a message, in one call or in three; the second of them with another count.
    Exchange(u32, bool, i64),
    /// All send to the next, which asked before.
    Halo(bool),
    /// All of them; the last with another root.
    Together(bool),
    /// Two of which the last ones come before the first.
    Twice,
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..TASKS, 1..TASKS, 0..2i64).prop_map(|(from, by, tag)| Step::Send(from, by, tag)),
        4 => Just(Step::Receive),
        3 => (0..TASKS, any::<bool>(), prop_oneof![9 => Just(1), 1 => Just(2)])
            .prop_map(|(a, split, count)| Step::Exchange(a, split, count)),
        2 => any::<bool>().prop_map(Step::Halo),
        2 => prop_oneof![9 => Just(true), 1 => Just(false)].prop_map(Step::Together),
        1 => Just(Step::Twice),
        4 => Just(Step::Look),
    ]
}

fn counted(mut kind: PartKind, of: i64) -> PartKind {
    if let PartKind::Send { size, .. } | PartKind::Receive { size, .. } = &mut kind {
        size.count = Some(of);
        size.datatype = Some("MPI_INT".into());
    }
    kind
}

/// A task: what it said, and what of it is left.
#[derive(Default)]
struct Speech {
    whole: Conversation,
    tail: Tail,
    /// What is settled is counted here.
    said: Conversation,
    left_out: usize,
}

#[derive(Default)]
struct Play(BTreeMap<u32, Speech>);

impl Play {
    /// Calls, each with the parts that it begins, and those of the turn that it waits for.
    fn turn(&mut self, task: u32, calls: &[(&[PartKind], &[usize])]) {
        let speech = self.0.entry(task).or_default();
        let said = &mut speech.whole;
        let (operation, part) = (said.operations.len(), said.parts.len());
        for (index, (kinds, waits)) in calls.iter().enumerate() {
            let waits: Vec<usize> = waits.iter().map(|it| it + part).collect();
            said.operations.push(Operation {
                name: "MPI_Call".into(),
                event: (operation + index) as u64,
                returned: true,
                waits: if waits.is_empty() {
                    Waits::No
                } else {
                    Waits::All(waits)
                },
            });
            said.parts.extend(kinds.iter().map(|kind| Part {
                operation: operation + index,
                kind: kind.clone(),
                complete: true, completed_at: None,
            }));
            speech.tail.events.push_back((operation + index) as u64);
        }
        let turn = Turn::new(said, (operation, part), 0, false).unwrap();
        let known = &mut speech.tail.known;
        let number = known.iter().position(|it| **it == turn).unwrap_or_else(|| {
            known.push(Arc::new(turn));
            known.len() - 1
        });
        speech.tail.turns.push_back(number as u32);
    }

    fn call(&mut self, task: u32, kinds: &[PartKind]) {
        let all: Vec<usize> = (0..kinds.len()).collect();
        self.turn(task, &[(kinds, &all)]);
    }

    /// In detail: all of it, and what is left.
    fn jobs(&self) -> [Job; 2] {
        let (mut whole, mut cut) = (Job::default(), Job::default());
        for (task, speech) in &self.0 {
            whole.0.insert(*task, speech.whole.clone());
            let mut said = speech.said.clone();
            speech.tail.tell(&mut said);
            cut.0.insert(*task, said);
        }
        [whole, cut]
    }

    fn look(&mut self) {
        let speakers: Vec<Speaker<'_>> = self
            .0
            .iter()
            .map(|(task, it)| Speaker {
                task: *task,
                tail: &it.tail,
            })
            .collect();
        let turns = settled(&speakers, &|_| Some(TASKS as usize));
        let [whole, _] = self.jobs();
        let matching = Matching::new(&whole.0);
        let members = whole.members();
        let wrong = mismatches(&whole.0, &members, &matching);
        let most = lockstep_comm::settled(&whole.0, &members, &matching, &wrong, 1);
        for ((task, speech), turns) in self.0.iter_mut().zip(turns) {
            let before = speech.tail.operations();
            speech.tail.leave_out(turns, &mut speech.said);
            speech.left_out += before - speech.tail.operations();
            assert!(
                speech.left_out <= most[task],
                "{task}: {} {most:?}",
                speech.left_out
            );
        }
    }
}

fn play(steps: &[Step]) -> Play {
    let mut play = Play::default();
    let mut under_way: Vec<(u32, u32, i64)> = Vec::new();
    for task in 0..TASKS {
        play.call(task, &[collective("MPI_Allreduce", Some(0))]);
    }
    for step in steps {
        match *step {
            Step::Send(from, by, tag) => {
                let to = (from + by) % TASKS;
                play.call(from, &[send(to, tag, Mode::Standard)]);
                under_way.push((from, to, tag));
            }
            Step::Receive if !under_way.is_empty() => {
                let (from, to, tag) = under_way.remove(0);
                play.call(to, &[receive(Peer::Task(from), Some(tag))]);
            }
            Step::Receive => {}
            Step::Exchange(a, split, count) => {
                let b = (a + 1) % TASKS;
                for (me, other, count) in [(a, b, 1), (b, a, count)] {
                    let sent = counted(send(other, 7, Mode::Standard), count);
                    let got = counted(receive(Peer::Task(other), Some(7)), 1);
                    match split {
                        false => play.call(me, &[sent, got]),
                        true => play.turn(me, &[(&[got], &[]), (&[sent], &[1]), (&[], &[0])]),
                    }
                }
            }
            Step::Halo(far) => {
                for me in 0..TASKS {
                    let by = if far { 2 } else { 1 };
                    let (to, from) = ((me + by) % TASKS, (me + TASKS - by) % TASKS);
                    let got = receive(Peer::Task(from), Some(5));
                    let sent = send(to, 5, Mode::Synchronous);
                    play.turn(me, &[(&[got], &[]), (&[sent], &[]), (&[], &[0, 1])]);
                }
            }
            Step::Together(alike) => {
                for task in 0..TASKS {
                    let root = i64::from(!alike && task + 1 == TASKS);
                    play.call(task, &[collective("MPI_Allreduce", Some(root))]);
                }
            }
            Step::Twice => {
                let sent = [4, 6].map(|tag| send(1, tag, Mode::Standard));
                let [first, second] = sent;
                play.turn(0, &[(&[first], &[]), (&[second], &[]), (&[], &[1, 0])]);
                for tag in [6, 4] {
                    play.call(1, &[receive(Peer::Task(0), Some(tag))]);
                }
            }
            Step::Look => play.look(),
        }
    }
    play
}

/// To whom and with which tags each task sent.
fn sent(job: &Job) -> BTreeMap<u32, BTreeSet<Envelope>> {
    let of = |said: &Conversation| {
        let parts = said.parts.iter().filter_map(|it| it.kind.envelope());
        said.sent.iter().copied().chain(parts).collect()
    };
    job.0.iter().map(|(task, it)| (*task, of(it))).collect()
}

proptest! {
    #[test]
    fn what_is_settled_does_not_matter(
        steps in prop::collection::vec(step(), 0..60),
        last in 0..TASKS,
        by in 1..TASKS,
        tag in 0..2i64,
    ) {
        let mut play = play(&steps);
        for is_over in [false, true] {
            if is_over {
                play.look();
            }
            let mut jobs = play.jobs();
            let [whole, cut] = &jobs;
            prop_assert_eq!(found(cut), found(whole));
            prop_assert_eq!(sent(cut), sent(whole));
            let event = jobs[0].0[&last].operations.len() as u64;
            for job in &mut jobs {
                let wanted = receive(Peer::Task((last + by) % TASKS), Some(tag));
                job.call(last, "MPI_Recv", vec![wanted], false);
                let operations = &mut job.0.get_mut(&last).unwrap().operations;
                operations.last_mut().unwrap().event = event;
            }
            let [whole, cut] = &jobs;
            prop_assert_eq!(found(cut), found(whole));
        }
    }
}

#[test]
fn nothing_is_kept_of_what_is_over() {
    let round = [
        Step::Exchange(0, true, 1),
        Step::Halo(false),
        Step::Together(true),
        Step::Exchange(1, false, 1),
        Step::Twice,
    ];
    let mut steps: Vec<Step> = round.iter().cycle().take(1000).cloned().collect();
    steps.push(Step::Look);
    let play = play(&steps);
    assert!(
        play.0
            .values()
            .all(|it| it.tail.turns.is_empty() && it.tail.events.is_empty())
    );
    assert!(
        play.0
            .values()
            .all(|it| it.said.settled[&CommunicatorId(0)] == 201)
    );
}

#[test]
fn what_a_message_under_way_belongs_to_stays() {
    let play = play(&[Step::Send(0, 1, 3), Step::Together(true), Step::Look]);
    let left: Vec<usize> = play.0.values().map(|it| it.tail.turns.len()).collect();
    assert_eq!(left, [2, 1, 1]);
}
