//! Hierarchical clustering of traces.

use serde::Serialize;

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
