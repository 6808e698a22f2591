//! Hierarchical clustering of traces.
//!
//! Where the papers hand a matrix to a statistics library, three things stay open: how similarities
//! are read as distances, how ties are broken, and how trees with inversions (centroid and median
//! linkage) are cut. Here: [`Distance`]; ties go to the clusters with the smallest members; a cut undoes
//! the last merges, whatever their heights.

use crate::similarity::ClassMatrix;
use crate::{Distance, Linkage};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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
    /// Distances between all pairs of objects (0,1), (0,2) .. (1,2) .. of a similarity matrix.
    pub(crate) fn of_similarity(self, matrix: &ClassMatrix) -> Vec<f64> {
        match self {
            Self::OneMinus => condensed(matrix.len(), |a, b| 1.0 - matrix.get(a, b)),
            Self::Sqrt => condensed(matrix.len(), |a, b| (1.0 - matrix.get(a, b)).sqrt()),
            Self::Rows => rows(matrix),
        }
    }

    /// The same of a difference of two (JSM_D): a large difference is a large distance, so that a trace
    /// whose relations all changed stands apart.
    pub(crate) fn of_difference(self, matrix: &ClassMatrix) -> Vec<f64> {
        match self {
            Self::OneMinus => condensed(matrix.len(), |a, b| matrix.get(a, b)),
            Self::Sqrt => condensed(matrix.len(), |a, b| matrix.get(a, b).sqrt()),
            Self::Rows => rows(matrix),
        }
    }
}

fn condensed(count: usize, distance: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..count)
        .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
        .map(|(a, b)| distance(a, b))
        .collect()
}

fn rows(matrix: &ClassMatrix) -> Vec<f64> {
    condensed(matrix.len(), |a, b| {
        (0..matrix.len())
            .map(|column| (matrix.get(a, column) - matrix.get(b, column)).powi(2))
            .sum::<f64>()
            .sqrt()
    })
}

impl Linkage {
    const fn method(self) -> kodama::Method {
        match self {
            Self::Single => kodama::Method::Single,
            Self::Complete => kodama::Method::Complete,
            Self::Average => kodama::Method::Average,
            Self::Weighted => kodama::Method::Weighted,
            Self::Centroid => kodama::Method::Centroid,
            Self::Median => kodama::Method::Median,
            Self::Ward => kodama::Method::Ward,
        }
    }
}

impl Dendrogram {
    /// Clusters `leaves` objects by their distances, which must not be NaN. O(leaves²), at worst
    /// O(leaves³).
    pub(crate) fn new(linkage: Linkage, leaves: usize, mut distances: Vec<f64>) -> Self {
        if leaves < 2 {
            return Self {
                leaves,
                merges: Vec::new(),
            };
        }
        let tree = kodama::linkage(&mut distances, leaves, linkage.method());
        let steps = tree.steps();
        // (smallest leaf, size) of every node, and the step that waits for each node.
        let mut nodes: Vec<(usize, usize)> = (0..leaves).map(|leaf| (leaf, 1)).collect();
        let mut waiting = vec![None; leaves + steps.len()];
        for (index, step) in steps.iter().enumerate() {
            let parts = (nodes[step.cluster1], nodes[step.cluster2]);
            nodes.push((parts.0.0.min(parts.1.0), parts.0.1 + parts.1.1));
            waiting[step.cluster1] = Some(index);
            waiting[step.cluster2] = Some(index);
        }
        // A step is ready when both of its parts exist. The least ready one comes next: that is the
        // order in which clusters merge, with ties by the smallest members and not by chance.
        let key = |index: usize| {
            let step = &steps[index];
            let (a, b) = (nodes[step.cluster1].0, nodes[step.cluster2].0);
            Reverse((level(step.dissimilarity), a.min(b), a.max(b), index))
        };
        let mut missing = vec![2u8; steps.len()];
        let mut ready = BinaryHeap::new();
        let arrive = |node: usize, missing: &mut Vec<u8>, ready: &mut BinaryHeap<_>| {
            if let Some(index) = waiting[node] {
                missing[index] -= 1;
                if missing[index] == 0 {
                    ready.push(key(index));
                }
            }
        };
        for leaf in 0..leaves {
            arrive(leaf, &mut missing, &mut ready);
        }
        let mut renamed: Vec<usize> = (0..leaves + steps.len()).collect();
        let mut merges = Vec::with_capacity(steps.len());
        while let Some(Reverse((_, _, _, index))) = ready.pop() {
            let step = &steps[index];
            let (mut left, mut right) = (step.cluster1, step.cluster2);
            if nodes[right].0 < nodes[left].0 {
                std::mem::swap(&mut left, &mut right);
            }
            renamed[leaves + index] = leaves + merges.len();
            merges.push(Merge {
                left: renamed[left],
                right: renamed[right],
                height: step.dissimilarity,
                size: nodes[leaves + index].1,
            });
            arrive(leaves + index, &mut missing, &mut ready);
        }
        Self { leaves, merges }
    }

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
        let mut result = vec![0.0; self.leaves * self.leaves.saturating_sub(1) / 2];
        for merge in &self.merges {
            for a in &members[merge.left] {
                for b in &members[merge.right] {
                    let (a, b) = (*a.min(b), *a.max(b));
                    result[a * (2 * self.leaves - a - 1) / 2 + b - a - 1] = merge.height;
                }
            }
            let mut both = std::mem::take(&mut members[merge.left]);
            both.append(&mut members[merge.right]);
            members.push(both);
        }
        result
    }
}

/// Heights that differ by rounding alone are one level.
fn level(height: f64) -> i64 {
    (height * 1e9).round() as i64
}

#[cfg(test)]
mod tests;
