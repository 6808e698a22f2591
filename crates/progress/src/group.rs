//! Tasks at one place are a group; groups are ordered by progress.

use crate::place::{Coordinates, Program, Standing};
use crate::task::{Activity, Group, Place, Task};
use crate::waits::Waiting;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// The progress of groups: which is behind which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Order {
    /// `behind[a][b]`: `a` is behind `b`.
    behind: Vec<Vec<bool>>,
}

impl Order {
    /// Compares every two. What follows by a third counts; where that contradicts itself, the two
    /// cannot be compared. O(groups^2) comparisons, O(groups^3) steps of a bit each.
    pub fn new(program: &Program<'_>, standings: &[&Coordinates]) -> Self {
        let count = standings.len();
        let mut behind = vec![vec![false; count]; count];
        for a in 0..count {
            for b in a + 1..count {
                match program.compare(standings[a], standings[b]) {
                    Some(Ordering::Less) => behind[a][b] = true,
                    Some(Ordering::Greater) => behind[b][a] = true,
                    Some(Ordering::Equal) | None => {}
                }
            }
        }
        for by in 0..count {
            let through = behind[by].clone();
            for row in behind.iter_mut().filter(|row| row[by]) {
                for (reached, further) in row.iter_mut().zip(&through) {
                    *reached |= further;
                }
            }
        }
        let closed = behind.clone();
        for (a, row) in behind.iter_mut().enumerate() {
            for (b, is_behind) in row.iter_mut().enumerate() {
                *is_behind &= !closed[b][a];
            }
        }
        Self { behind }
    }

    /// As these pairs say (`behind[a][b]`: `a` is behind `b`), consistent or not.
    pub fn pairs(behind: Vec<Vec<bool>>) -> Self {
        Self { behind }
    }

    /// Whether `a` is behind `b`.
    pub fn is_behind(&self, a: usize, b: usize) -> bool {
        self.behind[a][b]
    }

    /// Groups that no group of these is behind of.
    pub fn least(&self, of: &[usize]) -> Vec<usize> {
        let is_least = |group: &&usize| !of.iter().any(|other| self.behind[*other][**group]);
        of.iter().filter(is_least).copied().collect()
    }

    /// Pairs (more progressed, less progressed) without those that follow from others.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let count = self.behind.len();
        let mut edges = Vec::new();
        for more in 0..count {
            for less in 0..count {
                let direct = self.behind[less][more]
                    && !(0..count).any(|by| self.behind[less][by] && self.behind[by][more]);
                if direct {
                    edges.push((more, less));
                }
            }
        }
        edges
    }
}

/// Groups by place, and where each stands.
pub(crate) fn group<'s>(
    tasks: &BTreeMap<u32, Task>,
    standing: impl Iterator<Item = &'s Standing>,
    program: &Program<'_>,
) -> (Vec<Group>, Vec<&'s Coordinates>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: Vec<&Coordinates> = Vec::new();
    type Key<'a> = (Activity, &'a [Place], Option<&'a str>);
    let mut known: HashMap<Key<'_>, Vec<usize>> = HashMap::new();
    for (task, standing) in tasks.values().zip(standing) {
        let same = known
            .entry((task.activity, &*task.stack, task.leaf.as_deref()))
            .or_default();
        match same.iter().find(|group| *places[**group] == standing.at) {
            Some(group) => {
                let group = &mut groups[*group];
                group.tasks.push(task.number);
                // What is said of a group is right of all.
                group.loops.retain(|it| standing.iterations.contains(it));
            }
            None => {
                same.push(groups.len());
                places.push(&standing.at);
                groups.push(Group {
                    tasks: vec![task.number],
                    stack: task.stack.clone(),
                    leaf: task.leaf.clone(),
                    loops: standing.iterations.clone(),
                    turns: program.loops(&standing.at),
                    activity: task.activity,
                });
            }
        }
    }
    (groups, places)
}

/// Of a group in which some wait for a message, say, and another is known to wait for nobody and is waited for, that one
/// stands by itself: it holds the others up, not the whole group. O(tasks + waits).
pub(crate) fn apart<P: Copy>(groups: Vec<(Group, P)>, waiting: &Waiting) -> Vec<(Group, P)> {
    if !waiting.stuck.is_empty() {
        return groups;
    }
    let awaited: FxHashSet<u32> = waiting.waits.iter().map(|it| it.to).collect();
    let waits: FxHashSet<u32> = waiting.waits.iter().map(|it| it.from).collect();
    let waits = |task: &u32| waits.contains(task) && !waiting.partly.contains(task);
    let mut parts: Vec<(Group, P)> = Vec::new();
    for (mut group, place) in groups {
        let (behind, rest): (Vec<u32>, Vec<u32>) = group.tasks.iter().partition(|it| waits(it));
        if !behind.is_empty() && rest.iter().any(|it| awaited.contains(it)) {
            group.tasks = behind;
            parts.push((group.clone(), place));
            group.tasks = rest;
        }
        parts.push((group, place));
    }
    parts.sort_by_key(|(group, _)| group.tasks.first().copied());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::{Wait, Why};

    #[test]
    fn who_holds_up_others_of_its_place_stands_by_itself() {
        let group = |tasks: &[u32]| Group {
            tasks: tasks.to_vec(),
            stack: Vec::new().into(),
            leaf: None,
            loops: Vec::new(),
            turns: Vec::new(),
            activity: Activity::Communication,
        };
        let parts = |waits: &[(u32, u32)], stuck: &[u32]| {
            let wait = |&(from, to): &(u32, u32)| Wait {
                from,
                to,
                why: Why::Message(None),
                communicator: None,
                or_another: false,
            };
            let waiting = Waiting {
                waits: waits.iter().map(wait).collect(),
                stuck: stuck.iter().copied().collect(),
                ..Waiting::default()
            };
            let groups = vec![(group(&[0, 3]), 'a'), (group(&[1, 2, 4]), 'b')];
            let parts = apart(groups, &waiting).into_iter();
            parts.map(|it| (it.0.tasks, it.1)).collect::<Vec<_>>()
        };
        let whole = [(vec![0, 3], 'a'), (vec![1, 2, 4], 'b')];
        // 2 waits for 1, which waits for nobody that is known; 4 is not waited for.
        let split = [(vec![0, 3], 'a'), (vec![1, 4], 'b'), (vec![2], 'b')];
        assert_eq!(parts(&[(0, 1), (2, 1)], &[]), split);
        // All wait, nobody of them does, and a deadlock has a core.
        assert_eq!(parts(&[(1, 0), (2, 0), (4, 0)], &[]), whole);
        assert_eq!(parts(&[(0, 1), (3, 1)], &[]), whole);
        assert_eq!(parts(&[(0, 1), (2, 1)], &[0, 2]), whole);
    }
}
