//! The goroutine tree, and who is who in different runs.
//!
//! Numbers of goroutines mean nothing in another run. Two goroutines are the same *node* if they were made by
//! the same node at the same `go` statement. A goroutine that makes its like at the statement that made itself
//! (or an ancestor) is that ancestor's node again, so that recursion does not make a node for each depth.
//! *Costs*: O(goroutines x depth of the tree).

use crate::execution::{Execution, GoroutineId, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Index into [`Tree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// A line of the source.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Place {
    /// The source file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl Place {
    /// Where `site` is.
    pub fn of(site: &Site) -> Self {
        Self {
            file: site.file.clone(),
            line: site.line,
        }
    }
}

/// Goroutines that were made by the same node at the same place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Who made them; `None` for the first goroutine of a program, and where that is not known.
    pub parent: Option<NodeId>,
    /// Where they were made.
    pub created_at: Option<Place>,
    /// What they run.
    pub entry: String,
    /// How many there were, in all executions.
    pub goroutines: u64,
}

/// The nodes of one or more executions; parents stand before their children.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// All nodes.
    pub nodes: Vec<Node>,
    #[serde(skip)]
    index: BTreeMap<Key, NodeId>,
}

/// What is the same of all goroutines of a node.
type Key = (Option<NodeId>, Option<Place>, Option<String>);

impl Tree {
    /// Adds an execution's goroutines, and says the node of each; `None` for those that are not the program's own.
    pub fn add(&mut self, execution: &Execution) -> Vec<Option<NodeId>> {
        let mut nodes: Vec<Option<NodeId>> = Vec::with_capacity(execution.goroutines.len());
        for goroutine in &execution.goroutines {
            if goroutine.is_system {
                nodes.push(None);
                continue;
            }
            let made = goroutine.created_at.and_then(|it| execution.site(it));
            let created_at = made.map(Place::of);
            // Parents stand before their children; one that does not is not known.
            let parent = goroutine
                .parent
                .and_then(|it| nodes.get(it.0 as usize).copied().flatten());
            let node = self.node(parent, created_at, &goroutine.entry);
            self.nodes[node.0 as usize].goroutines += 1;
            nodes.push(Some(node));
        }
        nodes
    }

    /// The node of what `parent` makes at `created_at`.
    pub(crate) fn node(
        &mut self,
        parent: Option<NodeId>,
        created_at: Option<Place>,
        entry: &str,
    ) -> NodeId {
        let again = parent.filter(|_| created_at.is_some()).and_then(|it| {
            self.upwards(it)
                .find(|above| self.nodes[above.0 as usize].created_at == created_at)
        });
        if let Some(again) = again {
            return again;
        }
        let next = NodeId(self.nodes.len() as u32);
        // A timer's functions are nobody's, as main is; what they run tells them apart.
        let is_root = parent.is_none() && created_at.is_none();
        let runs = is_root.then(|| entry.to_owned());
        let node = *self
            .index
            .entry((parent, created_at.clone(), runs))
            .or_insert(next);
        if node == next {
            self.nodes.push(Node {
                parent,
                created_at,
                entry: entry.to_owned(),
                goroutines: 0,
            });
        }
        node
    }

    fn upwards(&self, from: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(Some(from), |it| self.nodes[it.0 as usize].parent)
    }

    /// Where a node was made, from the root: a name that is the same in every run.
    pub fn path(&self, node: NodeId) -> Vec<Option<Place>> {
        let mut path: Vec<_> = self
            .upwards(node)
            .map(|it| self.nodes[it.0 as usize].created_at.clone())
            .collect();
        path.reverse();
        path
    }

    /// How deep a node stands; 0 for a root.
    pub fn depth(&self, node: NodeId) -> usize {
        self.upwards(node).count() - 1
    }

    /// The nodes in the order of a drawn tree: each before its children, siblings in order of appearance.
    pub fn in_order(&self) -> Vec<NodeId> {
        let mut children: BTreeMap<Option<NodeId>, Vec<NodeId>> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            children
                .entry(node.parent)
                .or_default()
                .push(NodeId(at as u32));
        }
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut todo: Vec<NodeId> = children.remove(&None).unwrap_or_default();
        todo.reverse();
        while let Some(node) = todo.pop() {
            order.push(node);
            todo.extend(
                children
                    .remove(&Some(node))
                    .unwrap_or_default()
                    .iter()
                    .rev(),
            );
        }
        order
    }
}

impl Execution {
    /// A place, if there is one of that number.
    pub fn site(&self, site: crate::execution::SiteId) -> Option<&Site> {
        self.sites.get(site.0 as usize)
    }

    /// All goroutines with their ids.
    pub fn with_ids(
        &self,
    ) -> impl Iterator<Item = (GoroutineId, &crate::execution::Goroutine)> + '_ {
        self.goroutines
            .iter()
            .enumerate()
            .map(|(at, it)| (GoroutineId(at as u32), it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{MAIN, Sample};

    #[test]
    fn the_same_statement_in_the_same_parent_is_one_node_in_every_run() {
        let mut first = Sample::new();
        let worker = first.go(MAIN, 10);
        first.go(worker, 20);
        first.go(MAIN, 10);
        let mut second = Sample::new();
        second.go(MAIN, 12);
        let again = second.go(MAIN, 10);
        second.go(again, 20);
        let mut tree = Tree::default();
        let one = tree.add(&first.execution);
        let two = tree.add(&second.execution);
        assert_eq!(one[1], one[3]);
        assert_eq!(one[1], two[2]);
        assert_eq!(one[2], two[3]);
        assert_ne!(two[1], two[2]);
        let lines: Vec<_> = tree
            .in_order()
            .iter()
            .map(|it| {
                let node = &tree.nodes[it.0 as usize];
                let line = node.created_at.as_ref().map_or(0, |it| it.line);
                (tree.depth(*it), line, node.goroutines)
            })
            .collect();
        assert_eq!(lines, [(0, 0, 2), (1, 10, 3), (2, 20, 2), (1, 12, 1)]);
    }

    #[test]
    fn recursion_is_one_node() {
        let mut sample = Sample::new();
        let mut parent = sample.go(MAIN, 10);
        for _ in 0..5 {
            parent = sample.go(parent, 30);
        }
        let mut tree = Tree::default();
        tree.add(&sample.execution);
        assert_eq!(tree.nodes.len(), 3);
        assert_eq!(tree.nodes[2].goroutines, 5);
    }

    #[test]
    fn the_runtime_s_own_are_left_out() {
        let mut sample = Sample::new();
        let collector = sample.go(MAIN, 10);
        sample.execution.goroutines[collector.0 as usize].is_system = true;
        let mut tree = Tree::default();
        assert_eq!(tree.add(&sample.execution), [Some(NodeId(0)), None]);
    }
}
