use crate::LooseEnd;
use crate::races::{Harm, Race, race};
use crate::strays::Awaited;
use crate::taken::{Doubt, doubts, steals};
use lockstep_comm::job::{Job, receive, send};
use lockstep_comm::{CommunicatorId, Conversation, Matching, Mode, PartKind, Peer, Size, Wildcard};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A receive from anybody that got its message from `from`.
fn took(from: u32, tag: i64) -> PartKind {
    match receive(Peer::Any, Some(tag)) {
        PartKind::Receive {
            tag,
            communicator,
            size,
            ..
        } => PartKind::Receive {
            from: Peer::Task(from),
            tag,
            communicator,
            size,
            wildcard: Some(Wildcard { tag }),
        },
        other => other,
    }
}

fn named(from: u32, tag: i64) -> PartKind {
    receive(Peer::Task(from), Some(tag))
}

/// Task 0 does these; 1 and 2 send it one message each, or as many as said.
fn found(receives: Vec<PartKind>, messages: [usize; 2]) -> Option<Race> {
    let mut job = Job::default();
    for receive in receives {
        job.call(0, "MPI_Recv", vec![receive], true);
    }
    for (task, many) in (1..).zip(messages) {
        for _ in 0..many {
            job.call(task, "MPI_Send", vec![send(0, 3, Mode::Standard)], true);
        }
    }
    race(&job.0, &job.members(), &Matching::new(&job.0))
}

#[test]
fn a_receive_from_anybody_could_have_taken_what_is_needed() {
    let race = found(vec![took(2, 3), named(1, 3)], [1, 1]).expect("a race");
    assert_eq!(
        (race.task, race.wildcard, race.harm),
        (0, 0, Harm::Starves(1))
    );
    assert_eq!((race.took, race.instead), (Some(2), 1));
}

#[test]
fn what_follows_from_whose_message_it_was_is_no_race() {
    // Header and body, one sender after the other.
    let each = vec![took(1, 3), named(1, 3), took(2, 3), named(2, 3)];
    assert_eq!(found(each, [2, 2]), None);
    let all = vec![took(1, 3), took(2, 3), named(1, 3), named(2, 3)];
    assert_eq!(found(all, [2, 2]), None);
    // There are enough messages.
    assert_eq!(
        found(vec![took(2, 3), named(1, 3), took(1, 3)], [2, 1]),
        None
    );
    // Another tag.
    assert_eq!(found(vec![took(2, 3), named(1, 4)], [1, 1]), None);
}

#[test]
fn a_message_that_is_sent_for_the_first_one_comes_after_it() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![took(2, 3)], true)
        .call(0, "MPI_Send", vec![send(1, 9, Mode::Standard)], true)
        .call(0, "MPI_Recv", vec![named(1, 3)], true)
        .call(1, "MPI_Recv", vec![named(0, 9)], true)
        .call(1, "MPI_Send", vec![send(0, 3, Mode::Standard)], true)
        .call(2, "MPI_Send", vec![send(0, 3, Mode::Standard)], true);
    assert_eq!(race(&job.0, &job.members(), &Matching::new(&job.0)), None);
}

/// As many numbers are sent, or as many fit.
fn numbers(mut kind: PartKind, count: i64) -> PartKind {
    if let PartKind::Send { size, .. } | PartKind::Receive { size, .. } = &mut kind {
        *size = Size {
            count: Some(count),
            datatype: Some("MPI_INT".into()),
        };
    }
    kind
}

#[test]
fn a_receive_from_anybody_could_have_taken_what_does_not_fit() {
    // Task 0 has room for so many, first and then; 1 sends 10, and 2 sends 20.
    let found = |room: [i64; 2], from: [u32; 2]| {
        let mut job = Job::default();
        for (room, from) in room.into_iter().zip(from) {
            job.call(0, "MPI_Recv", vec![numbers(took(from, 3), room)], true);
        }
        for (task, many) in [(1, 10), (2, 20)] {
            let sent = numbers(send(0, 3, Mode::Standard), many);
            job.call(task, "MPI_Send", vec![sent], true);
        }
        race(&job.0, &job.members(), &Matching::new(&job.0))
    };
    let race = found([10, 20], [1, 2]).expect("a race");
    assert_eq!((race.wildcard, race.took, race.instead), (0, Some(1), 2));
    assert!(matches!(race.harm, Harm::Unfit(LooseEnd::TooLarge { .. })));
    assert_eq!(found([20, 20], [1, 2]), None);
    // The larger came first.
    assert_eq!(found([20, 10], [2, 1]), None);
}

#[test]
fn a_receive_of_which_nothing_tells_whose_message_it_took() {
    let found = |told: bool| {
        let mut job = Job::default();
        let taken = match told {
            true => took(1, 3),
            false => receive(Peer::Any, Some(3)),
        };
        job.call(0, "MPI_Recv", vec![taken], true)
            .call(0, "MPI_Recv", vec![named(2, 3)], false);
        for task in [1, 2] {
            job.call(task, "MPI_Send", vec![send(0, 3, Mode::Standard)], true);
        }
        doubts(&job.0, &Matching::new(&job.0))
    };
    let doubt = Doubt {
        task: 0,
        from: 2,
        tag: Some(3),
        wildcard: 0,
    };
    assert_eq!(found(false), [doubt]);
    assert_eq!(found(true), []);
}

#[test]
fn who_took_it_is_told() {
    let mut job = Job::default();
    job.call(0, "MPI_Recv", vec![took(1, 3)], true)
        .call(0, "MPI_Recv", vec![named(1, 3)], false)
        .call(1, "MPI_Send", vec![send(0, 3, Mode::Standard)], true)
        .call(2, "MPI_Send", vec![send(0, 3, Mode::Standard)], true);
    let awaited = Awaited {
        by: 0,
        from: 1,
        tag: Some(3),
        communicator: CommunicatorId(0),
        or_another: false,
    };
    let steals = steals(&job.0, &Matching::new(&job.0), [awaited].into_iter());
    assert_eq!(steals.len(), 1);
    assert_eq!(
        (steals[0].wildcard, &steals[0].harm),
        (0, &Harm::Starves(1))
    );
}

/// What a task does.
#[derive(Debug, Clone, Copy)]
enum Step {
    Send(u32),
    Named(u32),
    Anybody,
}

type Program = Vec<Vec<Step>>;

/// Messages on their way, by sender and receiver: all have one tag, so how many is enough.
type Flying = BTreeMap<(u32, u32), usize>;

/// Where each task stands, and what is on its way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Moment {
    at: Vec<usize>,
    flying: Flying,
}

/// The moments that can come next, by the task that moves and the sender of what it received.
fn next(program: &Program, now: &Moment) -> Vec<(u32, Option<u32>, Moment)> {
    let mut all = Vec::new();
    for (task, steps) in (0..).zip(program) {
        let Some(step) = steps.get(now.at[task as usize]) else {
            continue;
        };
        let mut then = now.clone();
        then.at[task as usize] += 1;
        let from: Vec<u32> = match *step {
            Step::Send(to) => {
                *then.flying.entry((task, to)).or_default() += 1;
                all.push((task, None, then));
                continue;
            }
            Step::Named(from) => vec![from],
            Step::Anybody => (0..program.len() as u32).collect(),
        };
        for from in from {
            let mut then = then.clone();
            let many = then.flying.entry((from, task)).or_default();
            if *many > 0 {
                *many -= 1;
                all.push((task, Some(from), then));
            }
        }
    }
    all
}

fn start(program: &Program) -> Moment {
    Moment {
        at: vec![0; program.len()],
        flying: Flying::new(),
    }
}

/// Whether some order of messages leaves a task waiting.
fn can_hang(program: &Program) -> bool {
    let mut seen = BTreeSet::from([start(program)]);
    let mut queue = VecDeque::from([start(program)]);
    while let Some(now) = queue.pop_front() {
        let next = next(program, &now);
        let is_over = |(steps, at): (&Vec<Step>, &usize)| steps.len() == *at;
        if next.is_empty() && !program.iter().zip(&now.at).all(is_over) {
            return true;
        }
        for (_, _, then) in next {
            if seen.insert(then.clone()) {
                queue.push_back(then);
            }
        }
    }
    false
}

/// A run of it, if it does not hang.
fn run(program: &Program, choices: &[prop::sample::Index]) -> Option<BTreeMap<u32, Conversation>> {
    let mut job = Job::default();
    let mut now = start(program);
    let mut choices = choices.iter().cycle();
    loop {
        let all = next(program, &now);
        if all.is_empty() {
            break;
        }
        let (task, from, then) = choices.next()?.get(&all).clone();
        let step = program[task as usize][now.at[task as usize]];
        let kind = match (step, from) {
            (Step::Send(to), _) => send(to, 3, Mode::Standard),
            (Step::Named(from), _) => named(from, 3),
            (Step::Anybody, from) => took(from?, 3),
        };
        job.call(task, "MPI_", vec![kind], true);
        now = then;
    }
    let is_over = |(steps, at): (&Vec<Step>, &usize)| steps.len() == *at;
    program.iter().zip(&now.at).all(is_over).then_some(job.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Against every order of messages of programs that do the same whatever they receive.
    #[test]
    fn what_is_told_can_happen(
        receives in prop::collection::vec(
            prop_oneof![
                4 => (1..3_u32).prop_map(Step::Named),
                3 => Just(Step::Anybody),
                1 => (1..3_u32).prop_map(Step::Send),
            ],
            2..5,
        ),
        others in prop::collection::vec(
            prop::collection::vec(
                prop_oneof![
                    8 => Just(Step::Send(0)),
                    1 => (1..3_u32).prop_map(Step::Send),
                    1 => (0..3_u32).prop_map(Step::Named),
                    1 => Just(Step::Anybody),
                ],
                1..4,
            ),
            2,
        ),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let program = [vec![receives], others].concat();
        let Some(tasks) = run(&program, &choices) else { return Ok(()) };
        let job = Job(tasks);
        if let Some(race) = race(&job.0, &job.members(), &Matching::new(&job.0)) {
            prop_assert!(can_hang(&program), "{program:?}: {race:?}");
        }
    }
}
