//! Single linkage by a minimum spanning tree (SLINK: Sibson 1973).
//!
//! Each distance is read once, in the order in which it is stored. That gives the clusters at every height, but not which of
//! equally near ones merge first: what hangs together at one level is gone through again, from the cluster with the
//! smallest member, and each distance between two of these clusters is looked at once more.
//!
//! *Costs*: O(classes²) time, with ties too; memory for the classes.

use super::condensed::{Condensed, Levels};

/// The merges, in order: (first, second, height), each cluster named by its first class.
pub(super) fn merges(distances: &Condensed) -> Vec<(usize, usize, f64)> {
    let levels = Levels::of(distances);
    let mut edges = spanning_tree(distances);
    edges.sort_unstable_by_key(|it| (levels.at(it.height), it.low, it.high));
    let mut clusters = Clusters::new(distances, levels);
    let mut merges = Vec::with_capacity(edges.len());
    for edges in edges.chunk_by(|a, b| levels.at(a.height) == levels.at(b.height)) {
        for component in clusters.components(edges) {
            clusters.merge(&component, &mut merges);
        }
    }
    merges
}

/// Two classes that are in one cluster from a height on.
#[derive(Debug, Clone, Copy)]
struct Edge {
    low: usize,
    high: usize,
    height: f64,
}

/// Edges of a tree that join the same clusters at every height as all distances do.
fn spanning_tree(distances: &Condensed) -> Vec<Edge> {
    let count = distances.count;
    // Of the classes behind the one that is added: where and at what height each ceases to be the first of its cluster.
    let mut next: Vec<usize> = (0..count).collect();
    let mut height = vec![f64::INFINITY; count];
    let mut near = vec![f64::INFINITY; count];
    for added in (0..count).rev() {
        near[added + 1..].copy_from_slice(distances.behind(added));
        for place in (added + 1..count).rev() {
            let (far, over) = (near[place], next[place]);
            if height[place] >= far {
                near[over] = near[over].min(height[place]);
                height[place] = far;
                next[place] = added;
            } else {
                near[over] = near[over].min(far);
            }
        }
        for place in added + 1..count {
            if height[place] >= height[next[place]] {
                next[place] = added;
            }
        }
    }
    (1..count)
        .map(|high| Edge {
            low: next[high],
            high,
            height: height[high],
        })
        .collect()
}

struct Clusters<'a> {
    distances: &'a Condensed,
    levels: Levels,
    /// The first class of each one's cluster.
    first: Vec<usize>,
    /// The classes of a cluster, at the place of its first one.
    members: Vec<Vec<usize>>,
}

/// Clusters that hang together at one level.
struct Component {
    /// By their first classes, ascending.
    clusters: Vec<usize>,
    /// Of two clusters how far they are from each other; of more, that of some two.
    height: f64,
}

impl<'a> Clusters<'a> {
    fn new(distances: &'a Condensed, levels: Levels) -> Self {
        Self {
            distances,
            levels,
            first: (0..distances.count).collect(),
            members: (0..distances.count).map(|class| vec![class]).collect(),
        }
    }

    /// What hangs together by these edges, in the order of the first classes.
    fn components(&self, edges: &[Edge]) -> Vec<Component> {
        let ends = edges.iter().map(|edge| {
            let (a, b) = (self.first[edge.low], self.first[edge.high]);
            (a.min(b), a.max(b))
        });
        let ends: Vec<(usize, usize)> = ends.collect();
        let mut clusters: Vec<usize> = ends.iter().flat_map(|(a, b)| [*a, *b]).collect();
        clusters.sort_unstable();
        clusters.dedup();
        let place = |cluster: usize| clusters.partition_point(|other| *other < cluster);
        let mut above: Vec<usize> = (0..clusters.len()).collect();
        let root = |above: &mut Vec<usize>, mut at: usize| {
            while above[at] != at {
                above[at] = above[above[at]];
                at = above[at];
            }
            at
        };
        for (a, b) in &ends {
            let (a, b) = (root(&mut above, place(*a)), root(&mut above, place(*b)));
            above[a.max(b)] = a.min(b);
        }
        let component = || Component {
            clusters: Vec::new(),
            height: 0.0,
        };
        let mut components: Vec<Component> = clusters.iter().map(|_| component()).collect();
        for (at, cluster) in clusters.iter().enumerate() {
            components[root(&mut above, at)].clusters.push(*cluster);
        }
        for ((first, _), edge) in ends.iter().zip(edges) {
            components[root(&mut above, place(*first))].height = edge.height;
        }
        components.retain(|component| !component.clusters.is_empty());
        components
    }

    /// Merges all clusters of a component: its first one takes the nearest with the smallest first class, again and again.
    fn merge(&mut self, component: &Component, merges: &mut Vec<(usize, usize, f64)>) {
        let Some((&first, others)) = component.clusters.split_first() else {
            return;
        };
        if let [other] = others {
            let members = std::mem::take(&mut self.members[*other]);
            self.join(first, members);
            merges.push((first, *other, component.height));
            return;
        }
        let least = self.levels.at(component.height);
        let mut left: Vec<(usize, f64)> = others.iter().map(|it| (*it, f64::INFINITY)).collect();
        // What the cluster has taken last.
        let mut fresh = std::mem::take(&mut self.members[first]);
        while !left.is_empty() {
            for (cluster, far) in &mut left {
                for a in &fresh {
                    for b in &self.members[*cluster] {
                        *far = far.min(self.distances.get(*a, *b));
                    }
                }
            }
            self.join(first, fresh);
            let is_next = |(_, far): &(usize, f64)| self.levels.at(*far) == least;
            let Some(place) = left.iter().position(is_next) else {
                return;
            };
            let (cluster, far) = left.remove(place);
            merges.push((first, cluster, far));
            fresh = std::mem::take(&mut self.members[cluster]);
        }
        self.join(first, fresh);
    }

    fn join(&mut self, first: usize, members: Vec<usize>) {
        for class in &members {
            self.first[*class] = first;
        }
        self.members[first].extend(members);
    }
}
