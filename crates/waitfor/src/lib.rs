//! Who waits for whom, and whose wait can never end: an and/or graph of waits.
//!
//! A node is somebody who waits (a rank, a thread, a goroutine), or a part of what somebody waits for.
//! It goes on when *all* of some other nodes go on, or when *any* of some does. Releasing who can go on, and then
//! who waits for those, until nothing changes, leaves exactly those who are stuck forever: the least fixpoint, whatever the
//! order of the releases.
//!
//! ```text
//!    rank 0 ── all ──► rank 1 ── any ─┬─► rank 0          stuck: 0 and 1, a knot
//!                                     └─► rank 2: never
//!    rank 3 ── any ─┬─► rank 0
//!                   └─► rank 4: now                       released
//! ```
//!
//! A *knot* is a set of stuck nodes that reach each other and wait for nothing else: what all other stuck nodes wait for in the end.
//! (Holt, *Some Deadlock Properties of Computer Systems*, 1972; Hilbrich et al., *MPI runtime error detection with MUST*, 2013.)
//!
//! ```
//! use lockstep_waitfor::{Graph, Need};
//!
//! let mut graph = Graph::default();
//! let [one, two] = [0, 1].map(|_| graph.add(Need::NOW));
//! graph.set(one, Need::All(vec![two]));
//! graph.set(two, Need::Any(vec![one]));
//! let released = graph.release();
//! assert!(!released.goes_on(one) && !released.goes_on(two));
//! assert_eq!(graph.knots(&released), [[one, two]]);
//! ```
//!
//! *Guarantees*: no node is called stuck that some order of releases lets go on; no panic on any graph.
//! *Costs*: O(nodes + needs) in time and memory.
//! *Not for*: finding out what somebody waits for, nor saying it.
#![forbid(unsafe_code)]

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

/// A node's number, from 0 in the order of [`Graph::add`].
pub type NodeId = usize;

/// What a node needs to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// All of these go on first.
    All(Vec<NodeId>),
    /// Any of these goes on first.
    Any(Vec<NodeId>),
}

impl Need {
    /// Nothing: the node goes on at once.
    pub const NOW: Self = Self::All(Vec::new());
    /// What never comes.
    pub const NEVER: Self = Self::Any(Vec::new());

    /// All of these, or any of them.
    #[must_use]
    pub const fn of(all: bool, on: Vec<NodeId>) -> Self {
        match all {
            true => Self::All(on),
            false => Self::Any(on),
        }
    }

    /// The nodes that it names.
    #[must_use]
    pub fn on(&self) -> &[NodeId] {
        match self {
            Self::All(on) | Self::Any(on) => on,
        }
    }

    /// Whether it is nothing.
    #[must_use]
    pub fn is_now(&self) -> bool {
        matches!(self, Self::All(on) if on.is_empty())
    }

    /// How many of those that it names have to go on.
    fn number(&self) -> usize {
        match self {
            Self::All(on) => on.len(),
            Self::Any(_) => 1,
        }
    }
}

/// Who waits for whom.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    needs: Vec<Need>,
}

/// Who goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released(Vec<bool>);

impl Released {
    /// Whether a node goes on; one that is not in the graph does.
    #[must_use]
    pub fn goes_on(&self, node: NodeId) -> bool {
        self.0.get(node).copied().unwrap_or(true)
    }
}

impl Graph {
    /// So many nodes that go on at once.
    #[must_use]
    pub fn now(nodes: usize) -> Self {
        Self {
            needs: vec![Need::NOW; nodes],
        }
    }

    /// Adds a node.
    pub fn add(&mut self, need: Need) -> NodeId {
        self.needs.push(need);
        self.needs.len() - 1
    }

    /// Says what a node needs; nothing if there is no such node.
    pub fn set(&mut self, node: NodeId, need: Need) {
        if let Some(place) = self.needs.get_mut(node) {
            *place = need;
        }
    }

    /// What a node needs; [`Need::NOW`] if there is no such node.
    #[must_use]
    pub fn need(&self, node: NodeId) -> &Need {
        static NOW: Need = Need::NOW;
        self.needs.get(node).unwrap_or(&NOW)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.needs.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// Releases who can go on; what is left is stuck forever. A node that is needed and not there goes on.
    #[must_use]
    pub fn release(&self) -> Released {
        let mut waiting_for: Vec<Vec<NodeId>> = vec![Vec::new(); self.len()];
        let mut left: Vec<usize> = self.needs.iter().map(Need::number).collect();
        for (node, need) in self.needs.iter().enumerate() {
            for on in need.on() {
                match waiting_for.get_mut(*on) {
                    Some(others) => others.push(node),
                    None => left[node] = left[node].saturating_sub(1),
                }
            }
        }
        let mut ready: Vec<NodeId> = (0..self.len()).filter(|it| left[*it] == 0).collect();
        let mut released = vec![false; self.len()];
        while let Some(node) = ready.pop() {
            if std::mem::replace(&mut released[node], true) {
                continue;
            }
            for &other in &waiting_for[node] {
                left[other] = left[other].saturating_sub(1);
                if left[other] == 0 && !released[other] {
                    ready.push(other);
                }
            }
        }
        Released(released)
    }

    /// The knots among those who do not go on, each ascending, in order. Somebody for whom nothing can come is a knot by itself.
    #[must_use]
    pub fn knots(&self, released: &Released) -> Vec<Vec<NodeId>> {
        let is_stuck = |it: &NodeId| !released.goes_on(*it);
        let stuck: Vec<NodeId> = (0..self.len()).filter(is_stuck).collect();
        knots(&stuck, |node| self.need(node).on().to_vec())
    }
}

/// The sets of these nodes (ascending) that reach each other and no other of them, each ascending, in order.
///
/// O(nodes + successors); successors that are not among the nodes do not count.
#[must_use]
pub fn knots(nodes: &[NodeId], successors: impl Fn(NodeId) -> Vec<NodeId>) -> Vec<Vec<NodeId>> {
    let mut graph: DiGraph<NodeId, ()> = DiGraph::with_capacity(nodes.len(), nodes.len());
    for node in nodes {
        graph.add_node(*node);
    }
    for (at, node) in nodes.iter().enumerate() {
        for successor in successors(*node) {
            if let Ok(to) = nodes.binary_search(&successor) {
                graph.add_edge(NodeIndex::new(at), NodeIndex::new(to), ());
            }
        }
    }
    let parts = kosaraju_scc(&graph);
    let mut part_of = vec![0; nodes.len()];
    for (number, part) in parts.iter().enumerate() {
        part.iter().for_each(|it| part_of[it.index()] = number);
    }
    let is_last = |(number, part): &(usize, &Vec<NodeIndex>)| {
        let mut others = part.iter().flat_map(|it| graph.neighbors(*it));
        others.all(|other| part_of[other.index()] == *number)
    };
    let last = parts.iter().enumerate().filter(is_last);
    let mut knots: Vec<Vec<NodeId>> = last
        .map(|(_, part)| {
            let mut knot: Vec<NodeId> = part.iter().map(|it| graph[*it]).collect();
            knot.sort_unstable();
            knot
        })
        .collect();
    knots.sort();
    knots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Releases in rounds, as slowly as it is defined.
    fn slowly(graph: &Graph) -> Vec<bool> {
        let mut released = vec![false; graph.len()];
        loop {
            let goes = |it: &NodeId| released.get(*it).copied().unwrap_or(true);
            let next: Vec<bool> = (0..graph.len())
                .map(|node| match graph.need(node) {
                    Need::All(on) => on.iter().all(goes),
                    Need::Any(on) => on.iter().any(goes),
                })
                .collect();
            if next == released {
                return released;
            }
            released = next;
        }
    }

    /// Stuck nodes that reach only those that reach them.
    fn knots_slowly(graph: &Graph, released: &[bool]) -> BTreeSet<Vec<NodeId>> {
        let reached = |from: NodeId| {
            let mut all = BTreeSet::from([from]);
            let mut open = vec![from];
            while let Some(node) = open.pop() {
                let on = graph.need(node).on().iter();
                for it in on.filter(|it| released.get(**it) == Some(&false)) {
                    if all.insert(*it) {
                        open.push(*it);
                    }
                }
            }
            all
        };
        let stuck = (0..graph.len()).filter(|it| !released[*it]);
        let knots = stuck.filter_map(|node| {
            let all = reached(node);
            let is_knot = all.iter().all(|it| reached(*it) == all);
            is_knot.then(|| all.into_iter().collect())
        });
        knots.collect()
    }

    fn graphs() -> impl Strategy<Value = Graph> {
        let on = prop::collection::vec(0..14_usize, 0..4);
        let need = (any::<bool>(), on).prop_map(|(all, on)| match all {
            true => Need::All(on),
            false => Need::Any(on),
        });
        prop::collection::vec(need, 0..12).prop_map(|needs| Graph { needs })
    }

    proptest! {
        #[test]
        fn the_same_as_slowly(graph in graphs()) {
            let released = graph.release();
            let slowly = slowly(&graph);
            prop_assert_eq!(&released.0, &slowly);
            let knots: BTreeSet<Vec<NodeId>> = graph.knots(&released).into_iter().collect();
            prop_assert_eq!(knots, knots_slowly(&graph, &slowly));
        }
    }
}
