//! A tree over classes of equal objects: what is left to merge once those of a class are one.
//!
//! It stands for the [`Dendrogram`] of all objects, in which those of a class merge first, at height 0, and leave their
//! distances to others as they were (but for Ward's, which follow in closed form). So a cut costs the classes, and one
//! step an object.

use super::condensed::Condensed;
use super::nearest::Clusters;
use super::{Dendrogram, Merge, single};
use crate::Linkage;
use crate::numbered::Numbered;

/// The tree of objects, each of a class.
#[derive(Debug, Clone)]
pub(crate) struct ClassTree<'a> {
    /// The class of each object; classes are numbered as they first occur.
    classes: &'a [usize],
    count: usize,
    /// In order: the first classes of two clusters, of which the first gives its name to both, and their distance.
    merges: Vec<(usize, usize, f64)>,
}

impl<'a> ClassTree<'a> {
    /// Clusters objects, given the class of each and the distances between classes. O(classes²), at worst
    /// O(classes³), and O(objects).
    pub(crate) fn new(linkage: Linkage, classes: &'a [usize], distances: Condensed) -> Self {
        let count = distances.count;
        let merges = if linkage == Linkage::Single {
            single::merges(&distances)
        } else {
            let mut sizes = vec![0.0; count];
            for class in classes {
                sizes[*class] += 1.0;
            }
            let mut clusters = Clusters::new(linkage, distances, sizes);
            std::iter::from_fn(|| clusters.merge()).collect()
        };
        Self {
            classes,
            count,
            merges,
        }
    }

    /// Number of objects.
    pub(crate) fn leaves(&self) -> usize {
        self.classes.len()
    }

    /// The cluster of each object, as undoing the last merges gives it: clusters are numbered in the order of their smallest members.
    pub(crate) fn cut(&self, clusters: usize) -> Vec<usize> {
        let clusters = clusters.max(1);
        let kept = self.count.saturating_sub(clusters);
        let mut first: Vec<usize> = (0..self.count).collect();
        for (a, b, _) in self.merges.iter().take(kept) {
            first[*b] = *a;
        }
        // A cluster is named by its smallest class, and classes by their smallest objects.
        let mut next = 0;
        for class in 0..self.count {
            first[class] = match first[class] {
                own if own == class => {
                    next += 1;
                    next - 1
                }
                other => first[other],
            };
        }
        let mut labels: Vec<usize> = self.classes.iter().map(|class| first[*class]).collect();
        let alone = clusters.saturating_sub(self.count);
        if alone > 0 {
            self.part(&mut labels, alone);
        }
        labels
    }

    /// Takes objects out of their classes, each for itself: the last of the last class that has several, and so on.
    fn part(&self, labels: &mut [usize], mut alone: usize) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.count];
        for (object, class) in self.classes.iter().enumerate() {
            members[*class].push(object);
        }
        let mut numbers = self.count;
        for members in members.iter().rev() {
            for object in members.iter().skip(1).rev().take(alone) {
                labels[*object] = numbers;
                numbers += 1;
            }
            alone = alone.saturating_sub(members.len().saturating_sub(1));
        }
        let mut known = Numbered::default();
        for label in labels {
            *label = known.number(*label);
        }
    }

    /// The tree of all objects.
    pub(crate) fn dendrogram(&self) -> Dendrogram {
        let leaves = self.classes.len();
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.count];
        for (leaf, class) in self.classes.iter().enumerate() {
            members[*class].push(leaf);
        }
        let mut merges: Vec<Merge> = Vec::with_capacity(leaves.saturating_sub(1));
        let mut merge = |left: (usize, usize), right: (usize, usize), height| {
            let size = left.1 + right.1;
            merges.push(Merge {
                left: left.0,
                right: right.0,
                height,
                size,
            });
            (leaves + merges.len() - 1, size)
        };
        let mut nodes: Vec<(usize, usize)> = Vec::with_capacity(self.count);
        for members in &members {
            let mut equal = members.iter().map(|leaf| (*leaf, 1));
            let first = equal.next().unwrap_or_default();
            nodes.push(equal.fold(first, |node, leaf| merge(node, leaf, 0.0)));
        }
        for (a, b, height) in &self.merges {
            nodes[*a] = merge(nodes[*a], nodes[*b], *height);
        }
        Dendrogram { leaves, merges }
    }
}
