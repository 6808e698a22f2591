#![allow(clippy::unwrap_used)]
//! Random conversations of three tasks, read step by step with what is settled left out, against all of them.

use lockstep_comm::{Mode};
use super::*;
use crate::message_tests::{Job, collective, receive, send};
use crate::{Circle, Waiting, loose_ends, mismatches, without_buffers};
use proptest::prelude::*;

const TASKS: u32 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// From a task to the next or the one after it.
    Send(u32, u32, i64),
    /// The oldest message that is on its way.
    Receive,
    /// Two messages that cross.
    Cross(u32, Mode),
    /// From anybody.
    Wildcard(u32),
    /// All of them; the last with another root.
    Together(bool),
    /// What is settled is left out.
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..TASKS, 1..TASKS, 0..2i64).prop_map(|(from, by, tag)| Step::Send(from, by, tag)),
        6 => Just(Step::Receive),
        1 => (0..TASKS).prop_map(|it| Step::Cross(it, Mode::Buffered)),
        1 => (0..TASKS).prop_map(Step::Wildcard),
        2 => Just(Step::Together(true)),
        6 => Just(Step::Look),
    ]
}

/// The same said twice: kept whole, and cut.
#[derive(Default)]
struct Both {
    whole: Job,
    cut: Job,
}

impl Both {
    fn call(&mut self, task: u32, kinds: &[PartKind], done: bool) {
        self.whole.call(task, "MPI_Call", kinds.to_vec(), done);
        self.cut.call(task, "MPI_Call", kinds.to_vec(), done);
        let event = self.whole.0[&task].operations.len() as u64;
        for job in [&mut self.whole, &mut self.cut] {
            job.0
                .get_mut(&task)
                .unwrap()
                .operations
                .last_mut()
                .unwrap()
                .event = event;
        }
    }

    fn look(&mut self) {
        let (tasks, members) = (&self.cut.0, self.cut.members());
        let matching = Matching::new(tasks);
        let wrong = mismatches(tasks, &members, &matching);
        let cut = settled(tasks, &members, &matching, &wrong, 1);
        for (task, operations) in cut {
            self.cut.0.get_mut(&task).unwrap().leave_out(operations);
        }
    }
}

/// What is found, with calls told by their events.
pub fn found(job: &Job) -> String {
    let (tasks, members) = (&job.0, job.members());
    let matching = Matching::new(tasks);
    let mut wrong = mismatches(tasks, &members, &matching);
    let waiting = Waiting::new(tasks, &members, &matching, &wrong);
    let sides = wrong.iter_mut().flat_map(|it| &mut it.sides);
    sides.flat_map(|it| &mut it.1).for_each(|id| id.part = 0);
    let circle: Option<Circle> = without_buffers(tasks, &members, &matching);
    let event = |(task, operation): (u32, usize)| (task, tasks[&task].operations[operation].event);
    let circle: Option<Vec<_>> = circle.map(|it| it.into_iter().map(event).collect());
    format!(
        "{waiting:#?} {wrong:#?} {:#?} {circle:#?}",
        loose_ends(tasks, &members, &matching)
    )
}

fn play(steps: &[Step]) -> Both {
    let mut both = Both::default();
    let mut under_way: Vec<(u32, u32, i64)> = Vec::new();
    let mut took_from_anybody = false;
    for task in 0..TASKS {
        both.call(task, &[collective("MPI_Allreduce", Some(0))], true);
    }
    for step in steps {
        match *step {
            Step::Send(from, by, tag) => {
                let to = (from + by) % TASKS;
                both.call(from, &[send(to, tag, Mode::Standard)], true);
                under_way.push((from, to, tag));
            }
            Step::Receive if !under_way.is_empty() && !took_from_anybody => {
                let (from, to, tag) = under_way.remove(0);
                both.call(to, &[receive(Peer::Task(from), Some(tag))], true);
            }
            Step::Cross(a, mode) => {
                let b = (a + 1) % TASKS;
                both.call(
                    a,
                    &[send(b, 7, mode), receive(Peer::Task(b), Some(7))],
                    true,
                );
                both.call(
                    b,
                    &[send(a, 7, mode), receive(Peer::Task(a), Some(7))],
                    true,
                );
            }
            Step::Wildcard(to) if under_way.iter().any(|it| it.1 == to) => {
                both.call(to, &[receive(Peer::Any, None)], true);
                took_from_anybody = true;
            }
            Step::Together(alike) => {
                for task in 0..TASKS {
                    both.call(
                        task,
                        &[collective(
                            "MPI_Allreduce",
                            Some(i64::from(!alike && task + 1 == TASKS)),
                        )],
                        true,
                    );
                }
            }
            Step::Receive | Step::Wildcard(_) => {}
            Step::Look => both.look(),
        }
    }
    both
}

proptest! {
    #[test]
    fn what_is_settled_does_not_matter(
        steps in prop::collection::vec(step(), 0..60),
        odd in any::<bool>(),
        last in 0..TASKS,
        by in 1..TASKS,
        tag in 0..2i64,
    ) {
        let mut both = play(&steps);
        prop_assert_eq!(found(&both.cut), found(&both.whole));
        if odd {
            for task in 0..TASKS {
                both.call(task, &[collective("MPI_Allreduce", Some(i64::from(task == last)))], true);
            }
            both.look();
        }
        both.call(last, &[receive(Peer::Task((last + by) % TASKS), Some(tag))], false);
        both.look();
        prop_assert_eq!(found(&both.cut), found(&both.whole));
    }
}

#[test]
fn nothing_is_kept_of_what_is_over() {
    let round = [
        Step::Send(0, 1, 3),
        Step::Receive,
        Step::Together(true),
        Step::Cross(2, Mode::Standard),
        Step::Look,
    ];
    let both = play(&round.iter().cycle().take(1000).cloned().collect::<Vec<_>>());
    assert!(
        both.cut
            .0
            .values()
            .all(|it| it.operations.is_empty() && it.parts.is_empty())
    );
    // What waits stays, and what it belongs to.
    let both = play(&[Step::Send(0, 1, 3), Step::Together(true), Step::Look]);
    assert_eq!(both.cut.0[&0].operations.len(), 2);
    assert_eq!(both.cut.0[&1].operations.len(), 1);
}
