//! Groups of tasks in the order that the published methods find.

use super::circuits::{MOST_STEPS, circuits};
use super::model::{Model, StateId};
use super::probability::Chain;
use super::ranks::Ranks;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tasks that the method does not tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineGroup {
    /// Where they are.
    pub state: StateId,
    /// Who.
    pub tasks: Ranks,
    /// The loops around the state, outermost first: entry, and iterations counted.
    pub loops: Vec<(StateId, u64)>,
}

/// What a published method says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline {
    /// The groups.
    pub groups: Vec<BaselineGroup>,
    /// `behind[a][b]`: group `a` is behind group `b`.
    pub behind: Vec<Vec<bool>>,
    /// Groups that are behind some group, or at least behind none.
    pub least: Vec<usize>,
    /// What bit: bounds that were reached.
    pub notes: Vec<String>,
}

/// Circuits with one entry.
#[derive(Debug)]
struct Loop {
    entry: StateId,
    members: BTreeSet<StateId>,
}

/// Prodometer: `sent` holds who ever sent to whom, for the reduction of the least progressed.
#[must_use]
pub fn prodometer(model: &Model, sent: &BTreeSet<(u32, u32)>) -> Baseline {
    let mut model = model.clone();
    model.compress();
    let (loops, complete) = loops(&model);
    let mut notes = Vec::new();
    if !complete {
        notes.push(format!(
            "more elementary circuits than {MOST_STEPS} steps find: loops are missing, and the order with them"
        ));
    }
    let mut groups: BTreeMap<(StateId, Vec<(StateId, u64)>), Ranks> = BTreeMap::new();
    for (state, tasks) in &model.at {
        let around: Vec<&Loop> = loops
            .iter()
            .filter(|it| it.members.contains(state))
            .collect();
        for task in tasks.iter() {
            let counts = around
                .iter()
                .map(|it| (it.entry, iterations(&model, it, task)));
            let key = (*state, counts.collect());
            groups.entry(key).or_default().unite(&Ranks::one(task));
        }
    }
    let groups: Vec<BaselineGroup> = groups
        .into_iter()
        .map(|((state, loops), tasks)| BaselineGroup {
            state,
            tasks,
            loops,
        })
        .collect();
    let chain = Chain::new(model.edges.keys().map(|edge| (*edge, model.total(*edge))));
    let compare = |a: &BaselineGroup, b: &BaselineGroup| {
        let of = |group: &BaselineGroup, entry: StateId| {
            let mut counts = group.loops.iter();
            counts.find(|it| it.0 == entry).map_or(0, |it| it.1)
        };
        let is_common = |it: &&Loop| it.members.contains(&a.state) && it.members.contains(&b.state);
        let common: Vec<&Loop> = loops.iter().filter(is_common).collect();
        let Some(outermost) = common.first() else {
            let (there, back) = (
                chain.reaches(a.state, b.state),
                chain.reaches(b.state, a.state),
            );
            return there.partial_cmp(&back).map(Ordering::reverse);
        };
        for it in &common {
            match of(a, it.entry).cmp(&of(b, it.entry)) {
                Ordering::Equal => {}
                other => return Some(other),
            }
        }
        let hops = hops(&model, outermost.entry);
        hops.get(&a.state)
            .zip(hops.get(&b.state))
            .map(|(a, b)| a.cmp(b))
    };
    let mut found = order(groups, compare);
    found.notes = notes;
    reduce(&mut found, sent);
    found
}

/// AutomaDeD: each state a group; the probabilities of coming from one to the other and back, each 0,
/// between, or 1.
#[must_use]
pub fn automaded(model: &Model) -> Baseline {
    let groups = model.at.iter().map(|(state, tasks)| BaselineGroup {
        state: *state,
        tasks: tasks.clone(),
        loops: Vec::new(),
    });
    let chain = Chain::new(model.edges.keys().map(|edge| (*edge, model.total(*edge))));
    let compare = |a: &BaselineGroup, b: &BaselineGroup| {
        let (there, back) = (
            chain.reaches(a.state, b.state),
            chain.reaches(b.state, a.state),
        );
        let between = |it: f64| it > 0.0 && !is_certain(it);
        if there == 0.0 && back > 0.0 || between(there) && is_certain(back) {
            Some(Ordering::Greater)
        } else if there > 0.0 && back == 0.0 || is_certain(there) && between(back) {
            Some(Ordering::Less)
        } else {
            None
        }
    };
    order(groups.collect(), compare)
}

fn is_certain(probability: f64) -> bool {
    probability > 1.0 - 1e-9
}

/// Every two compared; least progressed is who depends on nobody's progress.
fn order(
    groups: Vec<BaselineGroup>,
    compare: impl Fn(&BaselineGroup, &BaselineGroup) -> Option<Ordering>,
) -> Baseline {
    let count = groups.len();
    let mut behind = vec![vec![false; count]; count];
    for a in 0..count {
        for b in a + 1..count {
            match compare(&groups[a], &groups[b]) {
                Some(Ordering::Less) => behind[a][b] = true,
                Some(Ordering::Greater) => behind[b][a] = true,
                Some(Ordering::Equal) | None => {}
            }
        }
    }
    let is_least = |group: &usize| !behind.iter().any(|row| row[*group]);
    Baseline {
        least: (0..count).filter(is_least).collect(),
        groups,
        behind,
        notes: Vec::new(),
    }
}

/// Of several least progressed groups, one whose members were sent messages by another's, and never sent
/// any back, depends on that other.
fn reduce(found: &mut Baseline, sent: &BTreeSet<(u32, u32)>) {
    let sends = |a: &BaselineGroup, b: &BaselineGroup| {
        let mut tasks = a.tasks.iter();
        tasks.any(|from| {
            sent.range((from, 0)..=(from, u32::MAX))
                .any(|(_, to)| b.tasks.contains(*to))
        })
    };
    let depends = |on: usize, group: usize| {
        let (on, group) = (&found.groups[on], &found.groups[group]);
        sends(on, group) && !sends(group, on)
    };
    let free: Vec<usize> = found
        .least
        .iter()
        .copied()
        .filter(|group| {
            !found
                .least
                .iter()
                .any(|on| on != group && depends(*on, *group))
        })
        .collect();
    if !free.is_empty() {
        found.least = free;
    }
}

/// The loops, outer ones (those of more states) first; whether these are all.
fn loops(model: &Model) -> (Vec<Loop>, bool) {
    let found = circuits(model.edges.keys().copied(), MOST_STEPS);
    let mut into: BTreeMap<StateId, Vec<StateId>> = BTreeMap::new();
    for (from, to) in model.edges.keys() {
        into.entry(*to).or_default().push(*from);
    }
    let mut by_entry: BTreeMap<StateId, BTreeSet<StateId>> = BTreeMap::new();
    for circuit in found.list {
        let members: BTreeSet<StateId> = circuit.into_iter().collect();
        let is_entered = |state: &&StateId| {
            let before = into.get(state).into_iter().flatten();
            before.into_iter().any(|from| !members.contains(from))
        };
        // Of several, the one that was created first.
        let Some(&entry) = members.iter().find(is_entered).or(members.first()) else {
            continue;
        };
        by_entry.entry(entry).or_default().extend(members);
    }
    let mut loops: Vec<Loop> = by_entry
        .into_iter()
        .map(|(entry, members)| Loop { entry, members })
        .collect();
    loops.sort_by_key(|it| (std::cmp::Reverse(it.members.len()), it.entry));
    (loops, found.complete)
}

/// How often a task went back to a loop's entry.
fn iterations(model: &Model, it: &Loop, task: u32) -> u64 {
    it.members
        .iter()
        .map(|from| model.count((*from, it.entry), task))
        .sum()
}

/// The fewest edges from a state to each.
fn hops(model: &Model, from: StateId) -> BTreeMap<StateId, u64> {
    let mut hops = BTreeMap::from([(from, 0)]);
    let mut next = VecDeque::from([(from, 0)]);
    while let Some((state, distance)) = next.pop_front() {
        for ((_, to), _) in model.edges.range((state, 0)..=(state, StateId::MAX)) {
            if !hops.contains_key(to) {
                hops.insert(*to, distance + 1);
                next.push_back((*to, distance + 1));
            }
        }
    }
    hops
}
