//! Hierarchical clustering of traces.
//!
//! Where the papers hand a matrix to a statistics library, three things stay open: how similarities
//! are read as distances, how ties are broken, and how trees with inversions (centroid and median
//! linkage) are cut. Here: [`Distance`]; ties go to the clusters with the smallest members; a cut undoes
//! the last merges, whatever their heights.

use crate::similarity::ClassMatrix;
use crate::{Distance, Linkage};
use serde::Serialize;
use std::ops::Range;

mod classes;
mod single;

pub(crate) use classes::ClassTree;

/// A binary tree over objects, as the merges that build it, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dendrogram {
    /// Number of objects: the leaves 0..leaves.
    pub leaves: usize,
    /// The merges; merge `i` makes node `leaves + i`.
    pub merges: Vec<Merge>,
}

/// Two nodes that become one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Merge {
    /// The node with the smallest leaf.
    pub left: usize,
    /// The other node.
    pub right: usize,
    /// Distance at which they merge; may be below that of a part (centroid and median linkage).
    pub height: f64,
    /// Number of leaves below.
    pub size: usize,
}

impl Distance {
    /// Distances between all pairs of classes of a similarity matrix.
    pub(crate) fn of_similarity(self, matrix: &ClassMatrix) -> Condensed {
        let apart = |a, b| 1.0 - matrix.value(a, b);
        match self {
            Self::OneMinus => Condensed::new(matrix.count(), apart),
            Self::Sqrt => Condensed::new(matrix.count(), |a, b| apart(a, b).sqrt()),
            Self::Rows => rows(matrix),
        }
    }

    /// The same of a difference of two (JSM_D): a large difference is a large distance, so that a trace
    /// whose relations all changed stands apart.
    pub(crate) fn of_difference(self, matrix: &ClassMatrix) -> Condensed {
        match self {
            Self::OneMinus => Condensed::new(matrix.count(), |a, b| matrix.value(a, b)),
            Self::Sqrt => Condensed::new(matrix.count(), |a, b| matrix.value(a, b).sqrt()),
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

/// Distances between pairs, each pair once: (0,1), (0,2) .. (1,2) ..
#[derive(Debug, Clone)]
pub(crate) struct Condensed {
    count: usize,
    values: Vec<f64>,
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

    fn place(&self, a: usize, b: usize) -> usize {
        let (a, b) = (a.min(b), a.max(b));
        self.row(a).start + b - a - 1
    }

    fn get(&self, a: usize, b: usize) -> f64 {
        self.values[self.place(a, b)]
    }

    /// The distances of `a` to all behind it.
    fn behind(&self, a: usize) -> &[f64] {
        &self.values[self.row(a)]
    }

    fn behind_mut(&mut self, a: usize) -> &mut [f64] {
        let row = self.row(a);
        &mut self.values[row]
    }

    /// The same of two, the first one of them before the second.
    fn two_behind(&mut self, a: usize, b: usize) -> (&mut [f64], &[f64]) {
        let (first, second) = (self.row(a), self.row(b));
        let (before, after) = self.values.split_at_mut(second.start);
        (&mut before[first], &after[..second.len()])
    }
}

impl Linkage {
    /// Whether its formula is one of squares.
    const fn squares(self) -> bool {
        matches!(self, Self::Centroid | Self::Median | Self::Ward)
    }

    /// Lance and Williams' formula: how far each cluster, given by its size and its distances from `a` and `b`, is from the
    /// union of these, whose sizes and distance are given; squares of distances where the linkage wants them.
    #[inline(always)]
    fn formula(self, a: f64, b: f64, ab: f64) -> impl Fn(f64, f64, f64) -> f64 + Copy {
        let n = a + b;
        let middle = a * b * ab / (n * n);
        move |ax: f64, bx: f64, x: f64| match self {
            Self::Single => ax.min(bx),
            Self::Complete => ax.max(bx),
            Self::Average => (a * ax + b * bx) / n,
            Self::Weighted => (ax + bx) / 2.0,
            Self::Centroid => (a * ax + b * bx) / n - middle,
            Self::Median => (ax + bx) / 2.0 - ab / 4.0,
            Self::Ward => ((a + x) * ax + (b + x) * bx - x * ab) / (n + x),
        }
    }
}

/// Of a cluster, the next one behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Near {
    /// How far it is; nothing behind is nearer, while nobody has looked which it is.
    level: i64,
    at: Option<usize>,
}

/// Clusters that are left while they merge; a cluster stands in the place of its first class.
struct Clusters {
    linkage: Linkage,
    distances: Condensed,
    levels: Levels,
    sizes: Vec<f64>,
    /// By place; of the last one that is left nothing is known.
    nearest: Vec<Near>,
    /// Places of the clusters that are left, ascending.
    left: Vec<usize>,
}

impl Clusters {
    fn new(linkage: Linkage, mut distances: Condensed, sizes: Vec<f64>) -> Self {
        if linkage.squares() {
            for (a, size) in sizes.iter().enumerate() {
                for (distance, other) in distances.behind_mut(a).iter_mut().zip(&sizes[a + 1..]) {
                    // Between two classes of equal objects Ward's distance is already that of their
                    // clusters; for single objects the factor is 1.
                    let factor = match linkage {
                        Linkage::Ward => 2.0 * size * other / (size + other),
                        _ => 1.0,
                    };
                    *distance = factor * *distance * *distance;
                }
            }
        }
        let unknown = Near {
            level: i64::MIN,
            at: None,
        };
        let mut clusters = Self {
            linkage,
            levels: Levels::of(&distances),
            distances,
            nearest: vec![unknown; sizes.len()],
            left: (0..sizes.len()).collect(),
            sizes,
        };
        for place in 1..clusters.left.len() {
            clusters.find_nearest(place - 1);
        }
        clusters
    }

    /// `place` counts clusters that are left, and is not the last.
    fn find_nearest(&mut self, place: usize) {
        let a = self.left[place];
        let behind = &self.left[place + 1..];
        let row = self.distances.behind(a);
        let far = |b: &usize| row[*b - a - 1];
        // A level does not fall where the distance grows: the least distance has the least level.
        let least = behind.iter().map(far).fold(f64::INFINITY, f64::min);
        let level = self.levels.at(least);
        let is_first = |b: &&usize| self.levels.at(far(b)) == level;
        let at = behind.iter().find(is_first).or(behind.first()).copied();
        self.nearest[a] = Near { level, at };
    }

    /// The nearest two, of equally near ones those with the smallest members.
    fn nearest(&mut self) -> Option<(usize, usize)> {
        loop {
            let (_, before_last) = self.left.split_last()?;
            let places = before_last.iter().enumerate();
            let (place, a) = places.min_by_key(|(_, a)| self.nearest[**a].level)?;
            match self.nearest[*a].at {
                Some(b) => return Some((*a, b)),
                None => self.find_nearest(place),
            }
        }
    }

    /// Merges the nearest two: (first, second, height).
    fn merge(&mut self) -> Option<(usize, usize, f64)> {
        let (a, b) = self.nearest()?;
        let ab = self.distances.get(a, b);
        let gone = self.left.partition_point(|left| *left < b);
        self.left.remove(gone);
        let (size, other) = (self.sizes[a], self.sizes[b]);
        // One loop for each: what is in it is the same for all.
        match self.linkage {
            Linkage::Single => self.join(a, b, Linkage::Single.formula(size, other, ab)),
            Linkage::Complete => self.join(a, b, Linkage::Complete.formula(size, other, ab)),
            Linkage::Average => self.join(a, b, Linkage::Average.formula(size, other, ab)),
            Linkage::Weighted => self.join(a, b, Linkage::Weighted.formula(size, other, ab)),
            Linkage::Centroid => self.join(a, b, Linkage::Centroid.formula(size, other, ab)),
            Linkage::Median => self.join(a, b, Linkage::Median.formula(size, other, ab)),
            Linkage::Ward => self.join(a, b, Linkage::Ward.formula(size, other, ab)),
        }
        self.sizes[a] += self.sizes[b];
        let height = if self.linkage.squares() {
            ab.max(0.0).sqrt()
        } else {
            ab
        };
        Some((a, b, height))
    }

    /// Gives the distances of `a` and `b` to the others to `a`.
    #[inline(always)]
    fn join(&mut self, a: usize, b: usize, far: impl Fn(f64, f64, f64) -> f64) {
        let place = self.left.partition_point(|left| *left < a);
        let next = self.left.partition_point(|left| *left < b);
        let is_gone = |near: &Near| near.at == Some(a) || near.at == Some(b);
        for x in &self.left[..place] {
            let row = self.distances.behind_mut(*x);
            let (before, after) = row.split_at_mut(b - x - 1);
            let ax = &mut before[a - x - 1];
            *ax = far(*ax, after[0], self.sizes[*x]);
            let level = self.levels.at(*ax);
            let near = &mut self.nearest[*x];
            if is_gone(near) {
                near.at = None;
                near.level = near.level.min(level);
            } else if level < near.level || level == near.level && near.at.is_some_and(|at| a < at)
            {
                *near = Near { level, at: Some(a) };
            }
        }
        for x in &self.left[place + 1..next] {
            let bx = self.distances.get(*x, b);
            let ax = &mut self.distances.behind_mut(a)[x - a - 1];
            *ax = far(*ax, bx, self.sizes[*x]);
            let near = &mut self.nearest[*x];
            if is_gone(near) {
                near.at = None;
            }
        }
        let (ahead, rest) = self.distances.two_behind(a, b);
        for x in &self.left[next..] {
            let ax = &mut ahead[x - a - 1];
            *ax = far(*ax, rest[x - b - 1], self.sizes[*x]);
        }
        if place + 1 < self.left.len() {
            self.find_nearest(place);
        }
    }
}

/// Distances that differ by rounding alone, beside the largest one, are one level; greater ones have no smaller level. What merges
/// may be as far apart as 10^7 times the largest.
#[derive(Debug, Clone, Copy)]
struct Levels {
    /// To the unit.
    count: f64,
}

impl Levels {
    fn of(distances: &Condensed) -> Self {
        let largest = distances.values.iter().copied().fold(1.0, f64::max);
        Self {
            count: 1e11 / largest,
        }
    }

    fn at(self, distance: f64) -> i64 {
        (distance * self.count + 0.5) as i64
    }
}

impl Dendrogram {
    /// The cluster of each object after the last `clusters - 1` merges are undone. Clusters are numbered
    /// in the order of their smallest members.
    #[must_use]
    pub fn cut(&self, clusters: usize) -> Vec<usize> {
        let kept = self
            .leaves
            .saturating_sub(clusters.max(1))
            .min(self.merges.len());
        let mut top: Vec<usize> = (0..self.leaves + kept).collect();
        // Downwards, every node takes the name of the node above it.
        for index in (0..kept).rev() {
            let merge = &self.merges[index];
            let name = top[self.leaves + index];
            top[merge.left] = name;
            top[merge.right] = name;
        }
        let mut numbers = vec![None; top.len()];
        let mut next = 0;
        top[..self.leaves]
            .iter()
            .map(|top| {
                *numbers[*top].get_or_insert_with(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect()
    }

    /// For each pair of objects, as in a condensed distance matrix, the height at which they first lie
    /// in one cluster.
    #[must_use]
    pub fn cophenetic(&self) -> Vec<f64> {
        let mut members: Vec<Vec<usize>> = (0..self.leaves).map(|leaf| vec![leaf]).collect();
        let mut heights = Condensed::new(self.leaves, |_, _| 0.0);
        for merge in &self.merges {
            for a in &members[merge.left] {
                for b in &members[merge.right] {
                    let place = heights.place(*a, *b);
                    heights.values[place] = merge.height;
                }
            }
            let mut both = std::mem::take(&mut members[merge.left]);
            both.append(&mut members[merge.right]);
            members.push(both);
        }
        heights.values
    }
}

#[cfg(test)]
pub(crate) mod tests;
