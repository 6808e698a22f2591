//! Tasks at one place are a group; groups are ordered by progress.

use crate::place::{Coordinates, Program};
use std::cmp::Ordering;

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
