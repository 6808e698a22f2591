//! Markov models with counts: of a task, and united over many.

use super::ranks::Ranks;
use std::collections::{BTreeMap, BTreeSet};

/// A state, by its number in a dictionary that all tasks share.
pub type StateId = u32;

/// What one task did: how often it went from which state to which, and where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// Transitions with their counts.
    pub edges: BTreeMap<(StateId, StateId), u64>,
    /// Its last state; none if it had none.
    pub at: Option<StateId>,
}

impl Walked {
    /// From a sequence of states.
    #[must_use]
    pub fn new(states: impl IntoIterator<Item = StateId>) -> Self {
        let mut walked = Self::default();
        for state in states {
            walked.step(state);
        }
        walked
    }

    /// Goes to a state.
    pub fn step(&mut self, state: StateId) {
        if let Some(from) = self.at.replace(state) {
            *self.edges.entry((from, state)).or_default() += 1;
        }
    }
}

/// The models of many tasks in one: tasks with the same count on an edge are together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// For each transition the counts, and who has which.
    pub edges: BTreeMap<(StateId, StateId), BTreeMap<u64, Ranks>>,
    /// Where the tasks are.
    pub at: BTreeMap<StateId, Ranks>,
}

/// States of a loop that is small enough to be taken as one state.
const SMALL: usize = 2;

impl Model {
    /// The model of one task.
    #[must_use]
    pub fn of(task: u32, walked: &Walked) -> Self {
        let edges = walked.edges.iter().map(|(edge, count)| {
            let who = BTreeMap::from([(*count, Ranks::one(task))]);
            (*edge, who)
        });
        Self {
            edges: edges.collect(),
            at: walked
                .at
                .map(|at| (at, Ranks::one(task)))
                .into_iter()
                .collect(),
        }
    }

    /// Takes another in.
    #[must_use]
    pub fn unite(mut self, other: Self) -> Self {
        for (edge, counts) in other.edges {
            let own = self.edges.entry(edge).or_default();
            for (count, who) in counts {
                own.entry(count).or_default().unite(&who);
            }
        }
        for (state, who) in other.at {
            self.at.entry(state).or_default().unite(&who);
        }
        self
    }

    /// Unites the models of all tasks along a binomial tree: in each round every second one goes to its
    /// neighbour, as the ranks of a job would do it.
    #[must_use]
    pub fn reduce(mut models: Vec<Self>) -> Self {
        while models.len() > 1 {
            let mut left = models.into_iter();
            let mut next = Vec::with_capacity(left.len().div_ceil(2));
            while let Some(model) = left.next() {
                next.push(match left.next() {
                    Some(other) => model.unite(other),
                    None => model,
                });
            }
            models = next;
        }
        models.pop().unwrap_or_default()
    }

    /// How often a task took an edge.
    #[must_use]
    pub fn count(&self, edge: (StateId, StateId), task: u32) -> u64 {
        let counts = self.edges.get(&edge).into_iter().flatten();
        let own = counts.filter(|(_, who)| who.contains(task));
        own.map(|(count, _)| *count).sum()
    }

    /// How often an edge was taken by all.
    #[must_use]
    pub fn total(&self, edge: (StateId, StateId)) -> u64 {
        let counts = self.edges.get(&edge).into_iter().flatten();
        counts.map(|(count, who)| count * who.count()).sum()
    }

    /// Makes it smaller: loops of few states become one state, chains an edge. States in which tasks are
    /// (those to be compared) stay.
    pub fn compress(&mut self) {
        let kept: BTreeSet<StateId> = self.at.keys().copied().collect();
        while self.shrink(&kept) {}
    }

    /// One round; whether anything changed.
    fn shrink(&mut self, kept: &BTreeSet<StateId>) -> bool {
        let free = |state: StateId| !kept.contains(&state);
        let mut changed = false;
        let edges: Vec<(StateId, StateId)> = self.edges.keys().copied().collect();
        for (from, to) in edges {
            let is_there = |edge| self.edges.contains_key(&edge);
            if !is_there((from, to)) || !free(from) || !free(to) {
                continue;
            }
            if from == to {
                self.edges.remove(&(from, to));
                changed = true;
            } else if SMALL >= 2 && from < to && is_there((to, from)) {
                self.fold(from, to);
                changed = true;
            }
        }
        changed | self.shorten(&free)
    }

    /// Two states become one, and the edges between them go.
    fn fold(&mut self, into: StateId, state: StateId) {
        let touched: Vec<(StateId, StateId)> = self
            .edges
            .keys()
            .filter(|(from, to)| *from == state || *to == state)
            .copied()
            .collect();
        for edge in touched {
            let Some(counts) = self.edges.remove(&edge) else {
                continue;
            };
            let renamed = |it: StateId| if it == state { into } else { it };
            let next = (renamed(edge.0), renamed(edge.1));
            if next.0 != next.1 {
                self.add(next, counts);
            }
        }
    }

    /// Adds counts to those of an edge, task by task.
    fn add(&mut self, edge: (StateId, StateId), counts: BTreeMap<u64, Ranks>) {
        let Some(before) = self.edges.remove(&edge) else {
            self.edges.insert(edge, counts);
            return;
        };
        let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
        for (count, who) in before.into_iter().chain(counts) {
            for task in who.iter() {
                *sums.entry(task).or_default() += count;
            }
        }
        let mut joined: BTreeMap<u64, Ranks> = BTreeMap::new();
        for (task, count) in sums {
            joined.entry(count).or_default().unite(&Ranks::one(task));
        }
        self.edges.insert(edge, joined);
    }

    /// States with one edge in and one out go, where that makes no second edge between two states.
    fn shorten(&mut self, free: &impl Fn(StateId) -> bool) -> bool {
        let mut ways: BTreeMap<StateId, (Vec<StateId>, Vec<StateId>)> = BTreeMap::new();
        for (from, to) in self.edges.keys() {
            ways.entry(*from).or_default().1.push(*to);
            ways.entry(*to).or_default().0.push(*from);
        }
        let mut changed = false;
        for (state, (before, after)) in ways {
            let ([from], [to]) = (before.as_slice(), after.as_slice()) else {
                continue;
            };
            let is_chain = free(state) && *from != state && *to != state && from != to;
            if !is_chain || self.edges.contains_key(&(*from, *to)) {
                continue;
            }
            // A neighbour may have gone in this round.
            let way_in = self.edges.contains_key(&(*from, state));
            if way_in
                && self.edges.remove(&(state, *to)).is_some()
                && let Some(counts) = self.edges.remove(&(*from, state))
            {
                self.edges.insert((*from, *to), counts);
                changed = true;
            }
        }
        changed
    }
}
