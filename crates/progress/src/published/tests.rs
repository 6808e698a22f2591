#![allow(clippy::unwrap_used)]
//! The published methods on the vectors that tell them apart from each other, and from ours.

use super::*;
use std::collections::BTreeSet;
use std::time::Duration;

/// Groups as (tasks, is least), in the order of their first task.
fn groups(found: &Baseline) -> Vec<(Vec<u32>, bool)> {
    let mut groups: Vec<(Vec<u32>, bool)> = found
        .groups
        .iter()
        .enumerate()
        .map(|(id, group)| (group.tasks.iter().collect(), found.least.contains(&id)))
        .collect();
    groups.sort();
    groups
}

fn model(tasks: &[Vec<StateId>]) -> Model {
    let walked = tasks
        .iter()
        .map(|states| Walked::new(states.iter().copied()));
    let models = (0..).zip(walked);
    Model::reduce(models.map(|(task, it)| Model::of(task, &it)).collect())
}

fn by_prodometer(tasks: &[Vec<StateId>]) -> Baseline {
    prodometer(&model(tasks), &BTreeSet::new())
}

fn behind(found: &Baseline, task: u32, other: u32) -> bool {
    let of = |task| {
        found
            .groups
            .iter()
            .position(|it| it.tasks.contains(task))
            .unwrap()
    };
    found.behind[of(task)][of(other)]
}

/// `times` iterations of 1 Isend, 2 Irecv, 3 Waitall, 4 computes, 5 Allgather, after state 0.
fn rounds(times: usize, last: &[StateId]) -> Vec<StateId> {
    let mut states = vec![0];
    for _ in 0..times {
        states.extend([1, 2, 3, 4, 5]);
    }
    states.extend(last);
    states
}

#[test]
fn figure_1_at_400_tasks() {
    // Task 100 hangs in its own code after the receives were posted; its neighbours wait for it, the
    // others for them.
    let tasks: Vec<Vec<StateId>> = (0..400)
        .map(|task| match task {
            100 => rounds(7, &[1, 2]),
            99 | 101 => rounds(7, &[1, 2, 3]),
            _ => rounds(7, &[1, 2, 3, 4, 5]),
        })
        .collect();
    let found = by_prodometer(&tasks);
    let rest: Vec<u32> = (0..400).filter(|it| !(99..=101).contains(it)).collect();
    let expected = vec![(rest, false), (vec![99, 101], false), (vec![100], true)];
    assert_eq!(groups(&found), expected);
    assert!(behind(&found, 100, 99) && behind(&found, 99, 0) && behind(&found, 100, 0));
    assert_eq!(model(&tasks).at[&5].ranges(), [(0, 98), (102, 399)]);
}

#[test]
fn an_earlier_iteration_is_behind_and_automaded_cannot_say() {
    let tasks = [rounds(7, &[1, 2, 3, 4, 5]), rounds(9, &[1, 2, 3])];
    let found = by_prodometer(&tasks);
    assert!(behind(&found, 0, 1));
    // In a loop everything leads to everything.
    let found = automaded(&model(&tasks));
    assert_eq!(groups(&found), [(vec![0], true), (vec![1], true)]);
}

#[test]
fn without_a_loop_probabilities_decide() {
    let tasks = [vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 1, 4]];
    for found in [by_prodometer(&tasks), automaded(&model(&tasks))] {
        assert!(behind(&found, 0, 1));
        // Arms of a conditional.
        assert!(!behind(&found, 0, 2) && !behind(&found, 2, 0));
    }
}

#[test]
fn cumulative_counts_invert_an_order() {
    // The published weakness: A is in outer iteration 5, inner 2, of 42 in all; B in 5, 3, of 23.
    let task = |inner: usize, last: usize| {
        let mut states = vec![0];
        for _ in 0..4 {
            states.push(1);
            states.extend(std::iter::repeat_n([2, 3, 4], inner).flatten());
        }
        states.push(1);
        states.extend(std::iter::repeat_n([2, 3, 4], last).flatten());
        states
    };
    let found = by_prodometer(&[task(10, 2), task(5, 3)]);
    assert!(behind(&found, 1, 0));
}

#[test]
fn a_ladder_of_conditionals_reaches_the_bound_and_it_is_said() {
    // 30 times one of two arms, in a loop: 2^30 circuits.
    let arms = |task: u64| {
        let mut states = vec![0];
        for turn in 0..4 {
            for rung in 0..30 {
                let head = 1 + 3 * rung as StateId;
                let arm = (task >> rung ^ turn) & 1;
                states.extend([head, head + 1 + arm as StateId]);
            }
        }
        states
    };
    let tasks: Vec<Vec<StateId>> = [0, u64::MAX, 0x5555_5555, 0x0f0f_0f0f].map(arms).to_vec();
    let found = by_prodometer(&tasks);
    assert_eq!(found.notes.len(), 1);
    assert!(found.notes[0].contains("more elementary circuits"));
}

#[test]
fn circuits_are_all_and_elementary() {
    // Johnson's count for the complete graph of 5: sum over k of C(5,k) (k-1)! for k >= 2.
    let edges = (0..5u32).flat_map(|a| (0..5).filter(move |b| *b != a).map(move |b| (a, b)));
    let found = circuits(edges, MOST_STEPS);
    assert!(found.complete);
    assert_eq!(found.list.len(), 84);
    let distinct: BTreeSet<&Vec<u32>> = found.list.iter().collect();
    assert_eq!(distinct.len(), 84);
    let self_loop = circuits([(3, 3), (1, 2), (2, 1), (2, 3)], MOST_STEPS);
    assert_eq!(self_loop.list, [vec![3], vec![1, 2]]);
    assert!(!circuits((0..5u32).flat_map(|a| (0..5).map(move |b| (a, b))), 20).complete);
}

#[test]
fn compression_keeps_states_in_which_tasks_are() {
    let mut small = model(&[rounds(3, &[1, 2]), rounds(3, &[1, 2, 3, 4, 5])]);
    small.compress();
    let states: BTreeSet<StateId> = small.edges.keys().flat_map(|it| [it.0, it.1]).collect();
    assert!(states.contains(&2) && states.contains(&5) && !states.contains(&4));
    // The chain 2 3 4 5 became an edge with its counts.
    assert_eq!((small.count((2, 5), 0), small.count((2, 5), 1)), (3, 4));
}

#[test]
fn uniting_does_not_depend_on_the_shape_of_the_tree() {
    let tasks: Vec<Vec<StateId>> = (0..13)
        .map(|task| rounds(task % 4 + 1, &[1, 2, 3][..task % 3 + 1]))
        .collect();
    let walked = tasks
        .iter()
        .map(|states| Walked::new(states.iter().copied()));
    let models = (0..).zip(walked).map(|(task, it)| Model::of(task, &it));
    let mut models: Vec<Model> = models.collect();
    models.reverse();
    let one_by_one = models.into_iter().fold(Model::default(), Model::unite);
    assert_eq!(model(&tasks), one_by_one);
}

#[test]
fn who_is_sent_to_depends_on_the_sender() {
    let tasks = [vec![0, 1, 2], vec![0, 1, 3]];
    let model = model(&tasks);
    let least = |sent: &[(u32, u32)]| {
        let found = prodometer(&model, &sent.iter().copied().collect());
        groups(&found)
    };
    assert_eq!(least(&[]), [(vec![0], true), (vec![1], true)]);
    assert_eq!(least(&[(0, 1)]), [(vec![0], true), (vec![1], false)]);
    assert_eq!(least(&[(0, 1), (1, 0)]), [(vec![0], true), (vec![1], true)]);
}

#[test]
fn the_published_detector_is_set_back_by_many_states() {
    let second = Duration::from_secs;
    let mut few = Patience::default();
    let mut many = Patience::default();
    for now in 0..600 {
        few.step(now % 8, second(u64::from(now)));
        many.step(now % 16, second(u64::from(now)));
    }
    assert!(few.is_over(second(600)));
    assert!(!many.is_over(second(600)));
    assert!(many.is_over(second(700)));
    // Gaps of 100 s, give or take nothing: longer than the floor.
    let mut slow = Patience::default();
    (0..6).for_each(|it| slow.step(it, second(100 * u64::from(it))));
    assert_eq!(slow.threshold(), second(100));
}
