//! The loops of a control-flow graph, reducible or not, one within the other.
//!
//! A loop is a strongly connected part; its headers are the nodes through which it is entered. What
//! remains of it without the edges into its headers may hold loops again (Steensgaard's definition:
//! an irreducible loop is one loop with several headers). No circuit is ever enumerated, so a ladder
//! of thirty conditionals costs thirty nodes and not 2^30 circuits. O(edges x depth).

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::BTreeSet;

/// A node.
pub(crate) type Place = u32;
/// Where every walk begins.
pub(crate) const ENTRY: Place = 0;

/// A control-flow graph: nodes from 0, [`ENTRY`] first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    edges: BTreeSet<(Place, Place)>,
    successors: Vec<Vec<Place>>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loop {
    /// The loop around it.
    pub parent: Option<usize>,
    /// The nodes through which it is entered, in order.
    pub headers: Vec<Place>,
    /// Its nodes, in order, those of loops within it included.
    pub members: Vec<Place>,
}

impl Loop {
    pub fn contains(&self, place: Place) -> bool {
        self.members.binary_search(&place).is_ok()
    }

    pub fn is_header(&self, place: Place) -> bool {
        self.headers.binary_search(&place).is_ok()
    }
}

/// The loops of a graph; a loop comes before those within it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Nesting {
    pub loops: Vec<Loop>,
    /// For each node the loops that it is in, outermost first.
    around: Vec<Vec<usize>>,
}

impl Flow {
    /// Adds an edge, and its nodes.
    pub fn edge(&mut self, from: Place, to: Place) {
        if !self.edges.insert((from, to)) {
            return;
        }
        let needed = from.max(to) as usize + 1;
        if self.successors.len() < needed {
            self.successors.resize(needed, Vec::new());
        }
        self.successors[from as usize].push(to);
    }

    /// Whether a walk leads from one node to another (not by standing still), by nodes of `within`
    /// and not by an edge into `without`. Everything is within where nothing is given.
    pub fn reaches(&self, from: Place, to: Place, within: Option<&Loop>) -> bool {
        let mut seen = vec![false; self.successors.len()];
        let mut next = vec![from];
        while let Some(place) = next.pop() {
            for &successor in self.successors.get(place as usize).into_iter().flatten() {
                if within.is_some_and(|it| !it.contains(successor) || it.is_header(successor)) {
                    continue;
                }
                if successor == to {
                    return true;
                }
                if !std::mem::replace(&mut seen[successor as usize], true) {
                    next.push(successor);
                }
            }
        }
        false
    }

    /// Its loops.
    pub fn nesting(&self) -> Nesting {
        let mut nesting = Nesting {
            loops: Vec::new(),
            around: vec![Vec::new(); self.successors.len().max(1)],
        };
        let all = (0..self.successors.len() as Place).collect();
        // Parts to look into: the loop they are the inside of, their nodes.
        let mut parts: Vec<(Option<usize>, Vec<Place>)> = vec![(None, all)];
        while let Some((parent, nodes)) = parts.pop() {
            let cut = |to: Place| parent.is_some_and(|it: usize| nesting.loops[it].is_header(to));
            let mut graph: DiGraphMap<Place, ()> = DiGraphMap::new();
            for &node in &nodes {
                graph.add_node(node);
            }
            for &node in &nodes {
                for &to in &self.successors[node as usize] {
                    if !cut(to) && nodes.binary_search(&to).is_ok() {
                        graph.add_edge(node, to, ());
                    }
                }
            }
            let mut found: Vec<Vec<Place>> = kosaraju_scc(&graph)
                .into_iter()
                .filter(|part| part.len() > 1 || graph.contains_edge(part[0], part[0]))
                .collect();
            for part in &mut found {
                part.sort_unstable();
            }
            found.sort();
            for members in found {
                let inside = |place: Place| members.binary_search(&place).is_ok();
                let entered: BTreeSet<Place> = self
                    .edges
                    .iter()
                    .filter(|(from, to)| inside(*to) && !inside(*from))
                    .map(|(_, to)| *to)
                    .collect();
                // What nothing leads into is entered where it is first.
                let headers = if entered.is_empty() {
                    vec![members[0]]
                } else {
                    entered.into_iter().collect()
                };
                let index = nesting.loops.len();
                for &member in &members {
                    nesting.around[member as usize].push(index);
                }
                nesting.loops.push(Loop {
                    parent,
                    headers,
                    members: members.clone(),
                });
                parts.push((Some(index), members));
            }
        }
        nesting
    }
}

impl Nesting {
    /// The loops that a node is in, outermost first.
    pub fn around(&self, place: Place) -> &[usize] {
        self.around.get(place as usize).map_or(&[], Vec::as_slice)
    }
}

/// Where a walk over a graph is, and in which iteration of the loops around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Walk {
    pub at: Place,
    /// The loops around `at`, outermost first.
    pub loops: Vec<Turn>,
}

/// An activation of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Turn {
    pub index: usize,
    /// The iteration, from 1.
    pub iteration: u64,
    /// Through which header it was entered: an iteration begins there. (A task that does `b a` where
    /// another does `a b` enters by `b`; both are then in the same iteration.)
    pub entered: Place,
}

impl Walk {
    pub fn new() -> Self {
        Self {
            at: ENTRY,
            loops: Vec::new(),
        }
    }

    /// One step. Counters of loops that are left or entered anew begin again.
    pub fn step(&mut self, to: Place, nesting: &Nesting) {
        let around = nesting.around(to);
        let common = self
            .loops
            .iter()
            .zip(around)
            .take_while(|(turn, index)| turn.index == **index)
            .count();
        self.loops.truncate(common);
        if let Some(turned) = self.loops.iter().position(|turn| turn.entered == to) {
            self.loops[turned].iteration += 1;
            self.loops.truncate(turned + 1);
        }
        for &index in &around[self.loops.len()..] {
            self.loops.push(Turn {
                index,
                iteration: 1,
                entered: to,
            });
        }
        self.at = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(edges: &[(Place, Place)]) -> Flow {
        let mut flow = Flow::default();
        for (from, to) in edges {
            flow.edge(*from, *to);
        }
        flow
    }

    #[test]
    fn nested_loops_count_from_their_entry() {
        // 0 → 1 → 2 ⟲ → 3 → 1: an inner loop of 2 within the loop 1 2 3.
        let flow = flow(&[(0, 1), (1, 2), (2, 2), (2, 3), (3, 1)]);
        let nesting = flow.nesting();
        assert_eq!(nesting.loops.len(), 2);
        assert_eq!(nesting.around(2), [0, 1]);
        let mut walk = Walk::new();
        for to in [1, 2, 2, 2, 3, 1, 2, 2] {
            walk.step(to, &nesting);
        }
        let iterations: Vec<u64> = walk.loops.iter().map(|turn| turn.iteration).collect();
        assert_eq!(iterations, [2, 2]);
    }

    #[test]
    fn a_loop_with_two_entries_is_one_loop() {
        let flow = flow(&[(0, 1), (0, 2), (1, 2), (2, 1), (2, 3)]);
        let nesting = flow.nesting();
        assert_eq!(nesting.loops.len(), 1);
        assert_eq!(nesting.loops[0].headers, [1, 2]);
        let turns = |path: &[Place]| {
            let mut walk = Walk::new();
            path.iter().for_each(|to| walk.step(*to, &nesting));
            walk.loops[0].iteration
        };
        // Both are in their first iteration, and then in their second.
        assert_eq!((turns(&[1, 2]), turns(&[2, 1])), (1, 1));
        assert_eq!((turns(&[1, 2, 1]), turns(&[2, 1, 2])), (2, 2));
    }

    #[test]
    fn a_ladder_of_conditionals_is_no_work() {
        // 30 times: one of two arms; 2^30 circuits.
        let mut edges = vec![(0, 1)];
        for rung in 0..30 {
            let head = 1 + 3 * rung;
            edges.extend([(head, head + 1), (head, head + 2)]);
            edges.extend([(head + 1, head + 3), (head + 2, head + 3)]);
        }
        edges.push((91, 1));
        let flow = flow(&edges);
        let nesting = flow.nesting();
        assert_eq!(nesting.loops.len(), 1);
        let around = Some(&nesting.loops[0]);
        assert!(flow.reaches(2, 91, around) && !flow.reaches(91, 2, around));
        assert!(!flow.reaches(2, 3, around) && !flow.reaches(3, 2, around));
    }
}
