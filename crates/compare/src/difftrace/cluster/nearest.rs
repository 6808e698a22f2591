//! Clusters that merge, always the nearest two.

use super::condensed::{Condensed, Levels};
use crate::Linkage;

impl Linkage {
    /// Whether its formula is one of squares.
    pub(super) const fn squares(self) -> bool {
        matches!(self, Self::Centroid | Self::Median | Self::Ward)
    }

    /// Lance and Williams' formula: how far each cluster, given by its size and its distances from `a` and `b`, is from the
    /// union of these, whose sizes and distance are given; squares of distances where the linkage wants them.
    #[inline(always)]
    pub(super) fn formula(self, a: f64, b: f64, ab: f64) -> impl Fn(f64, f64, f64) -> f64 + Copy {
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
pub(super) struct Clusters {
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
    pub(super) fn new(linkage: Linkage, mut distances: Condensed, sizes: Vec<f64>) -> Self {
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
    pub(super) fn merge(&mut self) -> Option<(usize, usize, f64)> {
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
