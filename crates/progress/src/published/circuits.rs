//! All elementary circuits of a graph (Johnson 1975), up to a bound.

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};

/// Circuits, each from its first state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Circuits {
    /// The states of each, in the order of a walk.
    pub list: Vec<Vec<u32>>,
    /// Whether these are all; else the bound was reached.
    pub complete: bool,
}

/// Edges that are looked at, at most: a ladder of 30 conditionals has 2^30 circuits.
pub const MOST_STEPS: usize = 2_000_000;
/// States of circuits that are kept, at most.
const MOST_STATES: usize = 2_000_000;

type Graph = DiGraphMap<u32, ()>;

/// What Johnson's search knows while it looks for circuits through one state.
#[derive(Default)]
struct Search {
    blocked: BTreeSet<u32>,
    /// Who is to be unblocked with a state.
    with: BTreeMap<u32, BTreeSet<u32>>,
    /// States that lie on a circuit that was found.
    closed: BTreeSet<u32>,
}

impl Search {
    fn unblock(&mut self, state: u32) {
        let mut next = vec![state];
        while let Some(state) = next.pop() {
            if self.blocked.remove(&state) {
                next.extend(self.with.remove(&state).into_iter().flatten());
            }
        }
    }
}

/// Every circuit that visits no state twice, looking at no more than `most` edges.
#[must_use]
pub fn circuits(edges: impl IntoIterator<Item = (u32, u32)>, most: usize) -> Circuits {
    let mut found = Circuits {
        list: Vec::new(),
        complete: true,
    };
    let mut graph = Graph::new();
    for (from, to) in edges {
        if from == to {
            found.list.push(vec![from]);
        } else {
            graph.add_edge(from, to, ());
        }
    }
    let (mut left, mut states) = (most, 0);
    let mut parts = parts(&graph);
    while let Some(part) = parts.pop() {
        let Some(&start) = part.first() else { continue };
        let inside: BTreeSet<u32> = part.iter().copied().collect();
        let successors = |state: u32| -> Vec<u32> {
            let all = graph.neighbors(state);
            all.filter(|to| inside.contains(to)).collect()
        };
        let mut search = Search::default();
        search.blocked.insert(start);
        let mut path = vec![start];
        let mut stack = vec![(start, successors(start))];
        while let Some((state, next)) = stack.last_mut() {
            let state = *state;
            let Some(to) = next.pop() else {
                match search.closed.contains(&state) {
                    true => search.unblock(state),
                    false => {
                        for to in successors(state) {
                            search.with.entry(to).or_default().insert(state);
                        }
                    }
                }
                stack.pop();
                path.pop();
                continue;
            };
            if left == 0 || states > MOST_STATES {
                found.complete = false;
                return found;
            }
            left -= 1;
            if to == start {
                states += path.len();
                found.list.push(path.clone());
                search.closed.extend(path.iter().copied());
            } else if !search.blocked.contains(&to) {
                path.push(to);
                search.closed.remove(&to);
                search.blocked.insert(to);
                stack.push((to, successors(to)));
            }
        }
        // What remains without the state that was searched from.
        let mut rest = Graph::new();
        for &from in &part[1..] {
            for to in graph.neighbors(from) {
                if to != start && inside.contains(&to) {
                    rest.add_edge(from, to, ());
                }
            }
        }
        parts.extend(self::parts(&rest));
    }
    found
}

/// Strongly connected parts of more than one state, each in order.
fn parts(graph: &Graph) -> Vec<Vec<u32>> {
    let mut parts = kosaraju_scc(graph);
    parts.retain(|part| part.len() > 1);
    for part in &mut parts {
        part.sort_unstable();
    }
    parts
}
