//! Distances between pairs of clusters.

use crate::Distance;
use crate::difftrace::similarity::ClassMatrix;
use std::ops::Range;

/// Distances between pairs, each pair once: (0,1), (0,2) .. (1,2) ..
#[derive(Debug, Clone)]
pub(crate) struct Condensed {
    pub(super) count: usize,
    pub(super) values: Vec<f64>,
}

impl Condensed {
    pub(crate) fn new(count: usize, distance: impl Fn(usize, usize) -> f64) -> Self {
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        Self {
            count,
            values: pairs.map(|(a, b)| distance(a, b)).collect(),
        }
    }

    /// Where the distances of `a` to all behind it stand.
    fn row(&self, a: usize) -> Range<usize> {
        let start = a * (2 * self.count - a - 1) / 2;
        start..start + self.count - a - 1
    }

    pub(super) fn place(&self, a: usize, b: usize) -> usize {
        let (a, b) = (a.min(b), a.max(b));
        self.row(a).start + b - a - 1
    }

    pub(super) fn get(&self, a: usize, b: usize) -> f64 {
        self.values[self.place(a, b)]
    }

    /// The distances of `a` to all behind it.
    pub(super) fn behind(&self, a: usize) -> &[f64] {
        &self.values[self.row(a)]
    }

    pub(super) fn behind_mut(&mut self, a: usize) -> &mut [f64] {
        let row = self.row(a);
        &mut self.values[row]
    }

    /// The same of two, the first one of them before the second.
    pub(super) fn two_behind(&mut self, a: usize, b: usize) -> (&mut [f64], &[f64]) {
        let (first, second) = (self.row(a), self.row(b));
        let (before, after) = self.values.split_at_mut(second.start);
        (&mut before[first], &after[..second.len()])
    }
}

impl Distance {
    /// Distances between all pairs of classes of a similarity matrix.
    pub(crate) fn of_similarity(self, matrix: &ClassMatrix) -> Condensed {
        self.of(matrix, |value| 1.0 - value)
    }

    /// The same of a difference of two (JSM_D): a large difference is a large distance, so that a trace
    /// whose relations all changed stands apart.
    pub(crate) fn of_difference(self, matrix: &ClassMatrix) -> Condensed {
        self.of(matrix, |value| value)
    }

    fn of(self, matrix: &ClassMatrix, apart: impl Fn(f64) -> f64) -> Condensed {
        let apart = |a, b| apart(matrix.value(a, b));
        match self {
            Self::OneMinus => Condensed::new(matrix.count(), apart),
            Self::Sqrt => Condensed::new(matrix.count(), |a, b| apart(a, b).sqrt()),
            Self::Rows => rows(matrix),
        }
    }
}

/// Between rows of the whole matrix, in which a class stands as often as it has members.
fn rows(matrix: &ClassMatrix) -> Condensed {
    let sizes = matrix.sizes();
    Condensed::new(matrix.count(), |a, b| {
        let squares = (0..matrix.count()).map(|column| {
            sizes[column] * (matrix.value(a, column) - matrix.value(b, column)).powi(2)
        });
        squares.sum::<f64>().sqrt()
    })
}

/// Distances that differ by rounding alone, beside the largest one, are one level; greater ones have no smaller level. What merges
/// may be as far apart as 10^7 times the largest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    /// To the unit.
    count: f64,
}

impl Levels {
    pub(super) fn of(distances: &Condensed) -> Self {
        let largest = distances.values.iter().copied().fold(1.0, f64::max);
        Self {
            count: 1e11 / largest,
        }
    }

    pub(super) fn at(self, distance: f64) -> i64 {
        (distance * self.count + 0.5) as i64
    }
}
