//! Hierarchical clustering of traces.
//!
//! Where the papers hand a matrix to a statistics library, three things stay open: how similarities
//! are read as distances, how ties are broken, and how trees with inversions (centroid and median
//! linkage) are cut. Here: [`crate::Distance`]; ties go to the clusters with the smallest members; a cut undoes
//! the last merges, whatever their heights.

use schemars::JsonSchema;
use serde::Serialize;

pub(crate) mod classes;
mod condensed;
mod nearest;
mod single;

/// A binary tree over objects, as the merges that build it, in order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Dendrogram {
    /// Number of objects: the leaves 0..leaves.
    pub leaves: usize,
    /// The merges; merge `i` makes node `leaves + i`.
    pub merges: Vec<Merge>,
}

/// Two nodes that become one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
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

#[cfg(test)]
pub(crate) mod tests;
