//! The resolver on calls made up by hand, and against MPI's own rules as a slow oracle.
#![allow(clippy::unwrap_used)]

use super::local::{Birth, Given, Group, Local, Made, Making, Tracker};
use super::matching::{Place, Process, solve};
use super::{Communicator, Communicators, Members, Origin};
use lockstep_api::mpi::{Function, Kind};
use lockstep_trace::{Argument, FunctionId, Handle, Value};
use proptest::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Arc;

const fn born(number: u32) -> Local {
    Local::Born(Birth { thread: 0, number })
}

fn made(parent: Local, making: Making) -> Made {
    let given = match making {
        Making::Split { color: None, .. } => Given::Nothing,
        _ => Given::Handle,
    };
    Made {
        parent,
        making,
        given,
    }
}

const fn split(color: i64, key: i64) -> Making {
    Making::Split {
        color: Some(color),
        key,
    }
}

/// Ranks of a job, each of which knows how many there are.
fn job(ranks: u32, made: impl Fn(u32) -> Vec<Made>) -> Vec<Process> {
    let one = |rank| Process {
        rank,
        world_size: Some(ranks),
        host: format!("h{}", rank / 2),
        made: vec![made(rank)],
        ..Process::default()
    };
    (0..ranks).map(one).collect()
}

struct Solved {
    all: Vec<Communicator>,
    places: Vec<FxHashMap<Local, Place>>,
}

fn solved(processes: &[Process]) -> Solved {
    let mut all = Vec::new();
    let places = solve(processes, &mut all);
    Solved { all, places }
}

impl Solved {
    /// The members of a process's communicator, of both sides; nothing where it is not known.
    fn members(&self, process: usize, local: Local) -> Vec<Vec<Option<u32>>> {
        let Some((id, _)) = self.places[process].get(&local) else {
            return Vec::new();
        };
        let sides = &self.all[id.0 as usize].sides;
        sides.iter().map(|side| side.ranks.clone()).collect()
    }

    fn is_same(&self, local: Local, processes: &[usize]) -> bool {
        let place = |process: &usize| self.places[*process].get(&local).map(|it| it.0);
        let first = place(&processes[0]);
        first.is_some() && processes.iter().all(|process| place(process) == first)
    }
}

fn known(ranks: &[u32]) -> Vec<Vec<Option<u32>>> {
    vec![ranks.iter().copied().map(Some).collect()]
}

#[test]
fn a_split_and_its_copy() {
    let found = solved(&job(4, |rank| {
        vec![
            made(Local::World, split(i64::from(rank) % 2, -i64::from(rank))),
            made(born(0), Making::Copy),
        ]
    }));
    assert_eq!(found.members(0, born(0)), known(&[2, 0]));
    assert_eq!(found.members(3, born(0)), known(&[3, 1]));
    assert_eq!(found.members(1, born(1)), known(&[3, 1]));
    assert!(found.is_same(born(1), &[0, 2]) && !found.is_same(born(1), &[0, 1]));
}

#[test]
fn equal_keys_are_ordered_by_rank_in_the_parent() {
    let found = solved(&job(4, |rank| {
        vec![
            made(Local::World, split(0, -i64::from(rank))),
            made(born(0), split(7, 1)),
        ]
    }));
    assert_eq!(found.members(0, born(1)), known(&[3, 2, 1, 0]));
}

#[test]
fn who_takes_no_part_is_no_member() {
    let found = solved(&job(3, |rank| {
        let color = (rank > 0).then_some(5);
        vec![
            made(Local::World, Making::Split { color, key: 0 }),
            made(Local::World, Making::Copy),
        ]
    }));
    assert_eq!(found.members(0, born(0)), Vec::<Vec<_>>::new());
    assert_eq!(found.members(2, born(0)), known(&[1, 2]));
    assert_eq!(found.members(0, born(1)), known(&[0, 1, 2]));
}

#[test]
fn a_missing_rank_makes_members_unknown_unless_they_say_who_they_are() {
    let mut processes = job(4, |_| vec![made(Local::World, split(0, 0))]);
    processes.remove(2);
    let found = solved(&processes);
    assert!(found.is_same(born(0), &[0, 1, 2]));
    assert_eq!(found.members(0, born(0)), [vec![]]);
    processes[2].told.ranks.insert(born(0), 3);
    processes[0].told.sizes.insert(born(0), 4);
    let found = solved(&processes);
    assert_eq!(found.members(0, born(0)), [vec![None, None, None, Some(3)]]);
}

#[test]
fn what_a_process_was_told_takes_back_what_contradicts_it() {
    let mut processes = job(2, |_| vec![made(Local::World, split(0, 0))]);
    processes[0].told.ranks.insert(born(0), 1);
    let found = solved(&processes);
    assert_eq!(found.members(0, born(0)), [vec![None, Some(0)]]);
}

#[test]
fn different_calls_are_no_operation() {
    let found = solved(&job(2, |rank| {
        let making = match rank {
            0 => Making::Copy,
            _ => split(0, 0),
        };
        vec![made(Local::World, making), made(Local::World, Making::Copy)]
    }));
    assert!(found.members(0, born(0)).is_empty() && found.members(0, born(1)).is_empty());
}

#[test]
fn two_threads_that_make_some_of_one_parent() {
    let mut processes = job(2, |_| vec![made(Local::World, Making::Copy)]);
    let more = vec![made(Local::World, Making::Copy)];
    processes[0].made.push(more);
    let found = solved(&processes);
    assert!(found.members(0, born(0)).is_empty());
}

#[test]
fn groups_and_what_is_made_of_them() {
    let all = Arc::new(Group::Of(Local::World));
    let even = Arc::new(Group::Include(Arc::clone(&all), vec![4, 0, 2]));
    let odd = Arc::new(Group::Difference(Arc::clone(&all), Arc::clone(&even)));
    let found = solved(&job(5, |rank| {
        let own = if rank % 2 == 0 { &even } else { &odd };
        let mut calls = vec![made(Local::World, Making::Create(Arc::clone(own)))];
        if rank % 2 == 1 {
            let group = Making::CreateGroup(Arc::clone(&odd), 3);
            calls.push(made(Local::World, group.clone()));
            calls.push(made(Local::World, group));
        }
        calls.push(made(Local::World, Making::Copy));
        calls
    }));
    assert_eq!(found.members(0, born(0)), known(&[4, 0, 2]));
    assert_eq!(found.members(3, born(0)), known(&[1, 3]));
    assert_eq!(found.members(1, born(2)), known(&[1, 3]));
    assert!(found.is_same(born(1), &[1, 3]) && found.is_same(born(2), &[1, 3]));
    assert_ne!(found.places[1][&born(1)], found.places[1][&born(2)]);
    // The copies are one communicator though they are the second, or the fourth, of each.
    assert_eq!(found.places[0][&born(1)].0, found.places[1][&born(3)].0);
    // A group that nobody knows.
    let found = solved(&job(2, |_| {
        vec![made(Local::World, Making::Create(Arc::new(Group::Unknown)))]
    }));
    assert!(found.members(0, born(0)).is_empty());
}

#[test]
fn topologies() {
    let grid = |reorder| Making::First {
        count: Some(4),
        reorder,
        dims: None,
    };
    let mut processes = job(5, |_| {
        vec![
            made(Local::World, grid(false)),
            made(Local::World, grid(true)),
        ]
    });
    for made in &mut processes[4].made[0] {
        made.given = Given::Nothing;
    }
    processes[3].told.ranks.insert(born(1), 0);
    let found = solved(&processes);
    assert_eq!(found.members(0, born(0)), known(&[0, 1, 2, 3]));
    assert!(found.members(4, born(0)).is_empty());
    assert_eq!(found.members(0, born(1)), [vec![Some(3), None, None, None]]);
}

#[test]
fn slices_of_grids() {
    let grid = Making::First {
        count: Some(6),
        reorder: false,
        dims: Some([2, 3].into()),
    };
    let slice = |remain: &[bool]| Making::Slice(remain.into());
    let mut processes = job(7, |_| {
        vec![
            made(Local::World, grid.clone()),
            made(born(0), slice(&[false, true])),
            made(born(0), slice(&[true, false])),
            made(born(0), Making::Copy),
            // Of a copy; of a slice; and where the array was not recorded.
            made(born(3), slice(&[true, true])),
            made(born(1), slice(&[false])),
            made(born(0), Making::Hidden),
        ]
    });
    processes[6].made[0].truncate(1);
    processes[6].made[0][0].given = Given::Nothing;
    // Of one of them the array was not recorded; of another its rank tells.
    processes[4].made[0][1].making = Making::Hidden;
    let found = solved(&processes);
    assert_eq!(found.members(4, born(1)), known(&[3, 4, 5]));
    assert_eq!(found.members(0, born(1)), known(&[0, 1, 2]));
    assert_eq!(found.members(4, born(2)), known(&[1, 4]));
    assert_eq!(found.members(5, born(4)), known(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(found.members(5, born(5)), known(&[5]));
    assert!(found.members(5, born(6)).is_empty());
    // Who do not agree make nothing that is known.
    processes[2].made[0][1].making = slice(&[true, true]);
    assert!(solved(&processes).members(0, born(1)).is_empty());
}

#[test]
fn two_sides_and_their_merger() {
    let found = solved(&job(5, |rank| {
        let low = rank < 2;
        vec![
            made(Local::World, split(i64::from(low), 0)),
            made(
                born(0),
                Making::Bridge {
                    leader: 1,
                    peer: Local::World,
                    remote: if low { 3 } else { 1 },
                    tag: 9,
                },
            ),
            made(born(1), Making::Merge { high: low }),
            made(born(1), Making::Copy),
        ]
    }));
    let sides = found.members(0, born(1));
    assert!(sides.contains(&known(&[0, 1])[0]) && sides.contains(&known(&[2, 3, 4])[0]));
    assert!(found.is_same(born(1), &[0, 1, 2, 3, 4]));
    assert_eq!(found.members(4, born(2)), known(&[2, 3, 4, 0, 1]));
    assert_eq!(found.members(4, born(3)), sides);
    // A rank is one of the other side.
    let (id, side) = found.places[0][&born(1)];
    assert_eq!(found.all[id.0 as usize].world_rank(side, 2), Some(4));
}

#[test]
fn by_what_they_share() {
    let found = solved(&job(4, |_| {
        vec![made(Local::World, Making::SplitType { by: 0, key: 0 })]
    }));
    assert_eq!(found.members(1, born(0)), known(&[0, 1]));
    assert_eq!(found.members(2, born(0)), known(&[2, 3]));
    assert_eq!(found.all.last().unwrap().origin, Origin::SplitType);
}

fn handle(name: &'static str, kind: Kind, raw: i64) -> Argument {
    let predefined = match raw {
        1 => Some("MPI_COMM_WORLD".to_owned()),
        _ => None,
    };
    Argument {
        name,
        kind,
        value: Value::Handle(Handle {
            raw,
            name: predefined,
        }),
    }
}

fn dup(tracker: &mut Tracker<'_>, of: i64, gives: i64) {
    let function = Function::of(b"MPI_Comm_dup").unwrap();
    tracker.call(FunctionId(1), &function, &[handle("comm", Kind::Comm, of)]);
    let result = [handle("newcomm", Kind::NewComm, gives)];
    tracker.result(FunctionId(1), &result);
}

fn free(tracker: &mut Tracker<'_>, comm: i64) {
    let function = Function::of(b"MPI_Comm_free").unwrap();
    let given = [handle("comm", Kind::CommAt, comm)];
    tracker.call(FunctionId(2), &function, &given);
}

#[test]
fn a_handle_that_comes_back_is_another_communicator() {
    let mut tracker = Tracker::new(0, None);
    dup(&mut tracker, 1, 0x7000);
    dup(&mut tracker, 0x7000, 0x8000);
    free(&mut tracker, 0x7000);
    dup(&mut tracker, 1, 0x7000);
    dup(&mut tracker, 0x7000, 0x9000);
    dup(&mut tracker, 0x5000, 0xa000);
    let parents: Vec<Local> = tracker.made.iter().map(|it| it.parent).collect();
    assert_eq!(
        parents,
        [Local::World, born(0), Local::World, born(2), Local::Unknown]
    );
}

#[test]
fn members_in_short() {
    let text = |members: Vec<Option<u32>>| {
        let own = Communicator {
            id: super::CommunicatorId(0),
            origin: Origin::Split,
            parent: None,
            sides: vec![Members::of(members)],
        };
        let all = Communicators {
            all: vec![own],
            ..Communicators::default()
        };
        all.name(super::CommunicatorId(0))
    };
    assert_eq!(text(vec![Some(0), Some(2), Some(3), Some(4)]), "#1 {0,2-4}");
    assert_eq!(text(vec![Some(6), Some(7), None]), "#1 {6,7,?}");
    assert_eq!(text(vec![None, None]), "#1 {2 unknown}");
    assert_eq!(text(vec![]), "#1");
}

/// What MPI does, step by step: every process's communicators, as lists of world ranks.
fn oracle(ranks: u32, steps: &[Step]) -> (Vec<Vec<Made>>, Worlds) {
    let mut comms: Worlds = vec![vec![(0..ranks).collect()]; ranks as usize];
    let mut calls: Vec<Vec<Made>> = vec![Vec::new(); ranks as usize];
    let mut locals: Vec<Vec<Local>> = vec![vec![Local::World]; ranks as usize];
    for (parent, arguments) in steps {
        // Everybody works on the parent that rank 0 chooses, who is in it.
        let parent = parent % comms[0].len();
        let members = comms[0][parent].clone();
        for member in members.iter().map(|it| *it as usize) {
            let (color, key) = arguments[member % arguments.len()];
            let mine = comms[member].iter().position(|it| *it == members);
            let at = mine.unwrap();
            let number = calls[member].len() as u32;
            let of = locals[member][at];
            calls[member].push(made(of, Making::Split { color, key }));
            let Some(color) = color else { continue };
            let mut others: Vec<(i64, usize, u32)> = members
                .iter()
                .enumerate()
                .map(|(position, rank)| {
                    (arguments[*rank as usize % arguments.len()], position, *rank)
                })
                .filter(|((other, _), ..)| *other == Some(color))
                .map(|((_, key), position, rank)| (key, position, rank))
                .collect();
            others.sort_unstable();
            comms[member].push(others.into_iter().map(|it| it.2).collect());
            locals[member].push(born(number));
        }
    }
    (calls, comms)
}

type Worlds = Vec<Vec<Vec<u32>>>;
/// Which parent; colour and key of each rank.
type Step = (usize, Vec<(Option<i64>, i64)>);

proptest! {
    #[test]
    fn splits_of_splits_are_as_mpi_says(
        ranks in 1u32..6,
        steps in prop::collection::vec(
            (0usize..4, prop::collection::vec((prop::option::weighted(0.9, 0i64..3), -2i64..3), 6)),
            0..6,
        ),
    ) {
        // Two communicators of the same members cannot be told apart by the oracle.
        let mut seen = std::collections::BTreeSet::new();
        let (calls, comms) = oracle(ranks, &steps);
        prop_assume!(comms[0].iter().all(|it| seen.insert(it.clone())));
        let found = solved(&job(ranks, |rank| calls[rank as usize].clone()));
        for (rank, calls) in calls.iter().enumerate() {
            let mut own = comms[rank].iter().skip(1);
            for (number, call) in calls.iter().enumerate() {
                let members = found.members(rank, born(number as u32));
                match call.given {
                    Given::Nothing => prop_assert!(members.is_empty()),
                    _ => prop_assert_eq!(members, known(own.next().unwrap())),
                }
            }
        }
    }
}

#[test]
fn a_group_of_a_communicator_of_that_group() {
    let all = Arc::new(Group::Of(Local::World));
    let few = Arc::new(Group::Include(all, vec![2, 0]));
    let found = solved(&job(3, |rank| {
        let mut calls = vec![made(Local::World, Making::Create(Arc::clone(&few)))];
        if rank == 1 {
            calls[0].given = Given::Nothing;
        } else {
            let group = Making::CreateGroup(Arc::clone(&few), 7);
            calls.push(made(born(0), group));
        }
        calls
    }));
    assert_eq!(found.members(0, born(0)), known(&[2, 0]));
    assert_eq!(found.members(0, born(1)), known(&[2, 0]));
}
