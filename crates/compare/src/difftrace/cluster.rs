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

/// A binary tree over traces: the merges that build it, in order.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Dendrogram {
    /// Number of traces. They are the nodes 0 to `leaves` - 1.
    pub leaves: usize,
    /// The merges. Merge `i`, from 0, makes node `leaves + i`.
    pub merges: Vec<Merge>,
}

/// Two nodes that become one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Merge {
    /// The node that contains the smallest leaf.
    pub left: usize,
    /// The other node.
    pub right: usize,
    /// Distance at which they merge. With centroid and median linkage it may be smaller than the height of `left` or
    /// `right`.
    pub height: f64,
    /// Number of leaves below the new node.
    pub size: usize,
}

#[cfg(test)]
pub(crate) mod tests;
