//! The probability that a walk comes from one state to another.

use std::collections::{BTreeMap, BTreeSet};

/// A Markov chain: for each state the counts of what followed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    next: BTreeMap<u32, BTreeMap<u32, f64>>,
}

impl Chain {
    pub fn new(counts: impl IntoIterator<Item = ((u32, u32), u64)>) -> Self {
        let mut chain = Self::default();
        for ((from, to), count) in counts {
            let row = chain.next.entry(from).or_default();
            *row.entry(to).or_default() += count as f64;
        }
        for row in chain.next.values_mut() {
            let sum: f64 = row.values().sum();
            row.values_mut().for_each(|it| *it /= sum);
        }
        chain
    }

    /// States that a walk from one can come to.
    fn reach(&self, from: u32) -> BTreeSet<u32> {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(state) = next.pop() {
            let row = self.next.get(&state).into_iter().flatten();
            next.extend(row.filter(|(to, _)| seen.insert(**to)).map(|(to, _)| *to));
        }
        seen
    }

    /// The probability of ever coming from `from` to another state: of all paths together, whatever
    /// circles they make. States in between are eliminated one by one, without a subtraction
    /// (Grassmann, Taksar, Heyman).
    pub fn reaches(&self, from: u32, to: u32) -> f64 {
        let reached = self.reach(from);
        if !reached.contains(&to) {
            return 0.0;
        }
        let mut rows: BTreeMap<u32, BTreeMap<u32, f64>> = BTreeMap::new();
        let mut into: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &state in reached.iter().chain([&from]).filter(|it| **it != to) {
            let row = self.next.get(&state).cloned().unwrap_or_default();
            for next in row.keys() {
                into.entry(*next).or_default().insert(state);
            }
            rows.insert(state, row);
        }
        let between: Vec<u32> = reached
            .iter()
            .copied()
            .filter(|it| *it != to && *it != from)
            .collect();
        for state in between {
            let Some(mut row) = rows.remove(&state) else {
                continue;
            };
            row.remove(&state);
            // Without a way on, what comes here is lost.
            let leaving: f64 = row.values().sum();
            for before in into.remove(&state).into_iter().flatten() {
                let Some(weights) = rows.get_mut(&before) else {
                    continue;
                };
                let Some(weight) = weights.remove(&state) else {
                    continue;
                };
                for (next, share) in &row {
                    *weights.entry(*next).or_default() += weight * share / leaving;
                    into.entry(*next).or_default().insert(before);
                }
            }
        }
        let row = rows.remove(&from).unwrap_or_default();
        let leaving: f64 = row
            .iter()
            .filter(|(it, _)| **it != from)
            .map(|(_, it)| it)
            .sum();
        let lost = 1.0 - row.values().sum::<f64>();
        let share = row.get(&to).copied().unwrap_or(0.0);
        match leaving > 0.0 {
            true => share / (leaving + lost.max(0.0)),
            false => 0.0,
        }
    }
}
