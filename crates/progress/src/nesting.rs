//! The loops of a control-flow graph, reducible or not, one within the other.
//!
//! A loop is a strongly connected part; its headers are the nodes through which it is entered. What
//! remains of it without the edges into its headers may hold loops again (Steensgaard's definition:
//! an irreducible loop is one loop with several headers).
//!
//! ```text
//!  for { for { a } b }     a a a b a a b     two loops, or one with a condition in it: which, nobody
//!  for { a; if (c) b }     a a a b a a b     can tell from the calls
//! ```
//!
//! Where circuits of fewer nodes lead back to the headers, they are taken for an inner loop
//! ([`Loop::inner`], [`Loop::is_shared`]); what leads back from one node is one circuit, to however many headers. A loop that is entered at several headers begins with a
//! condition ([`Loop::is_alternative`]: all its headers follow the same nodes), or a `goto` leads into it.
//! How often headers were passed stays known for each reading ([`crate::walk::Turn`]), so that one can ask whether all
//! readings agree. No circuit is ever enumerated, so a ladder of thirty conditionals costs thirty nodes
//! and not 2^30 circuits. O(edges x depth).

use petgraph::algo::kosaraju_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};

/// A node.
pub(crate) type Place = u32;
/// Where every walk begins.
pub(crate) const ENTRY: Place = 0;

/// A control-flow graph: nodes from 0, [`ENTRY`] first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    edges: BTreeSet<(Place, Place)>,
    successors: Vec<Vec<Place>>,
    before: BTreeMap<Place, Vec<Place>>,
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
    /// Loops within it that have a header in common with it: headers and nodes of each.
    pub inner: Vec<(Vec<Place>, Vec<Place>)>,
    /// Whether it is such an inner loop.
    pub is_shared: bool,
    /// Whether its headers are arms of one condition.
    pub is_alternative: bool,
}

impl Loop {
    pub fn contains(&self, place: Place) -> bool {
        self.members.binary_search(&place).is_ok()
    }

    /// Whether an edge begins an iteration: one into a header, but for those of an inner loop.
    fn is_back(&self, from: Place, to: Place) -> bool {
        let is_in = |list: &[Place], it| list.binary_search(&it).is_ok();
        let mut inner = self.inner.iter();
        self.is_header(to)
            && !inner.any(|(headers, nodes)| is_in(headers, to) && is_in(nodes, from))
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
        self.before.entry(to).or_default().push(from);
    }

    /// Whether a walk leads from one node to another (not by standing still) within one iteration of a
    /// loop (`flat`: passing its header begins another, whatever loop that is of). Everything is within
    /// where none is given.
    pub fn reaches(&self, from: Place, to: Place, within: Option<&Loop>, flat: bool) -> bool {
        let leaves = |it: &Loop, place: Place, successor: Place| {
            let again = match flat {
                true => it.is_header(successor),
                false => it.is_back(place, successor),
            };
            again || !it.contains(successor)
        };
        let is_way = |place, successor| !within.is_some_and(|it| leaves(it, place, successor));
        self.leads(from, to, is_way)
    }

    /// Whether a walk leads from one node to another that begins no other iteration of a loop.
    pub fn leads_on(&self, from: Place, to: Place, within: &Loop) -> bool {
        self.leads(from, to, |place, successor| {
            !within.is_back(place, successor)
        })
    }

    /// Whether a walk leads from one node to another, not by standing still, over these edges.
    fn leads(&self, from: Place, to: Place, is_way: impl Fn(Place, Place) -> bool) -> bool {
        let mut seen = vec![false; self.successors.len()];
        let mut next = vec![from];
        while let Some(place) = next.pop() {
            let successors = self.successors.get(place as usize).into_iter().flatten();
            for &successor in successors.filter(|it| is_way(place, **it)) {
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

    /// Whether a loop may be over behind one of its nodes: where an iteration begins, or begins next.
    pub fn may_end(&self, behind: Place, it: &Loop) -> bool {
        let mut next = self.successors.get(behind as usize).into_iter().flatten();
        it.is_header(behind) || next.any(|to| it.is_back(behind, *to))
    }

    /// The nodes from which one of these can be reached, and these.
    pub fn leading_to(&self, to: impl Iterator<Item = Place>) -> BTreeSet<Place> {
        let mut next: Vec<Place> = to.collect();
        let mut found: BTreeSet<Place> = next.iter().copied().collect();
        while let Some(place) = next.pop() {
            let before = self.before.get(&place).into_iter().flatten();
            next.extend(before.copied().filter(|it| found.insert(*it)));
        }
        found
    }

    /// Whether a loop is nothing but one circuit.
    pub fn is_circuit(&self, it: &Loop) -> bool {
        let inside = |from: &Place| -> usize {
            let all = self.successors.get(*from as usize).into_iter().flatten();
            all.filter(|to| it.contains(**to)).count()
        };
        it.members.iter().all(|from| inside(from) == 1)
    }

    /// Its loops.
    pub fn nesting(&self) -> Nesting {
        self.nest(|headers, _| headers)
    }

    /// Its loops if other nodes begin iterations, too, if there are such: nodes that follow all that a header of a loop
    /// follows. A condition may come first, of which nobody took that arm the first time.
    ///
    /// ```text
    ///  for { if (c) a else b; d }     a d b d     one loop with an arm to either side
    ///  for { for { a d }; b d }       a d b d     in which a begins an iteration, and b none
    /// ```
    pub fn otherwise(&self) -> Option<Nesting> {
        let mut is_other = false;
        let nesting = self.nest(|headers, members| {
            let begun = self.beginnings(&headers, members);
            is_other |= begun != headers;
            begun
        });
        is_other.then_some(nesting)
    }

    /// Its loops, with nodes that begin iterations in place of headers.
    fn nest(&self, mut begun: impl FnMut(Vec<Place>, &[Place]) -> Vec<Place>) -> Nesting {
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
                let headers = begun(headers, &members);
                self.add(&mut nesting, &mut parts, parent, headers, members);
            }
        }
        nesting
    }

    /// The headers of a loop, and what follows all that one of them follows.
    fn beginnings(&self, headers: &[Place], members: &[Place]) -> Vec<Place> {
        let sources = |place: &Place| -> BTreeSet<Place> {
            let before = self.before.get(place).into_iter().flatten().copied();
            let is_in = |it: &Place| members.binary_search(it).is_ok();
            before.filter(is_in).collect()
        };
        let of_headers: BTreeSet<BTreeSet<Place>> = headers.iter().map(sources).collect();
        // What else one follows is of loops that begin with it: no way leads there but by it.
        let is_own = |at: Place, from: Place| {
            let is_way = |_, to: Place| to != at && members.binary_search(&to).is_ok();
            let mut headers = headers.iter();
            !headers.any(|it| *it == from || self.leads(*it, from, is_way))
        };
        let is_alike = |it: Place| {
            let own = sources(&it);
            let as_one = |of: &BTreeSet<Place>| {
                let mut others = own.difference(of);
                of.is_subset(&own) && (headers.len() > 1 || others.all(|from| is_own(it, *from)))
            };
            of_headers.iter().any(as_one)
        };
        let is_one = |it: &&Place| headers.contains(it) || is_alike(**it);
        members.iter().filter(is_one).copied().collect()
    }

    /// Adds a loop, and those within it that share headers with it; what is to be looked into next.
    fn add(
        &self,
        nesting: &mut Nesting,
        parts: &mut Vec<(Option<usize>, Vec<Place>)>,
        parent: Option<usize>,
        headers: Vec<Place>,
        members: Vec<Place>,
    ) {
        let mut next = vec![(parent, headers, members, false)];
        while let Some((parent, headers, members, is_shared)) = next.pop() {
            let index = nesting.loops.len();
            let inner = self.inner(&headers, &members);
            for &member in &members {
                nesting.around[member as usize].push(index);
            }
            let is_inner = |it: &Place| inner.iter().any(|(_, nodes)| nodes.contains(it));
            let rest = members.iter().copied().filter(|it| !is_inner(it));
            parts.push((Some(index), rest.collect()));
            for (headers, nodes) in &inner {
                next.push((Some(index), headers.clone(), nodes.clone(), true));
            }
            let mut found = Loop {
                parent,
                headers,
                members,
                inner,
                is_shared,
                is_alternative: false,
            };
            found.is_alternative = self.is_alternative(&found);
            nesting.loops.push(found);
        }
    }

    /// Whether all headers of a loop follow the same of its nodes.
    fn is_alternative(&self, it: &Loop) -> bool {
        let sources = |header: &Place| -> BTreeSet<Place> {
            let before = self.before.get(header).into_iter().flatten().copied();
            let before = before.filter(|from| it.contains(*from) && it.is_back(*from, *header));
            before.collect()
        };
        let mut all = it.headers.iter().map(sources);
        let first = all.next();
        it.headers.len() > 1 && all.all(|other| Some(&other) == first.as_ref())
    }

    /// Parts of a loop that lie on circuits of fewer nodes than others through its headers.
    fn inner(&self, headers: &[Place], members: &[Place]) -> Vec<(Vec<Place>, Vec<Place>)> {
        // For each node that leads back: to which headers, and the nodes from which it can be reached, not by a header.
        let mut circuits: Vec<(BTreeSet<Place>, BTreeSet<Place>)> = Vec::new();
        let is_in = |list: &[Place], it: Place| list.binary_search(&it).is_ok();
        for &source in members {
            let next = self.successors[source as usize].iter().copied();
            let back: BTreeSet<Place> = next.filter(|it| is_in(headers, *it)).collect();
            if back.is_empty() {
                continue;
            }
            let mut circuit = back.clone();
            circuit.insert(source);
            let mut next = vec![source];
            while let Some(place) = next.pop() {
                if is_in(headers, place) {
                    continue;
                }
                for &before in self.before.get(&place).into_iter().flatten() {
                    if is_in(members, before) && circuit.insert(before) {
                        next.push(before);
                    }
                }
            }
            circuits.push((back, circuit));
        }
        let is_smaller = |(_, circuit): &&(BTreeSet<Place>, BTreeSet<Place>)| {
            let mut others = circuits.iter();
            others.any(|(_, other)| circuit.len() < other.len() && circuit.is_subset(other))
        };
        // Those that have nodes in common are one.
        let mut inner: Vec<(BTreeSet<Place>, BTreeSet<Place>)> = Vec::new();
        for (back, circuit) in circuits.iter().filter(is_smaller) {
            let (mut headers, mut nodes) = (back.clone(), circuit.clone());
            inner.retain(|(others, other)| {
                let apart = other.is_disjoint(&nodes);
                if !apart {
                    headers.extend(others);
                    nodes.extend(other);
                }
                apart
            });
            inner.push((headers, nodes));
        }
        inner.retain(|(_, nodes)| nodes.len() < members.len());
        let list = |set: BTreeSet<Place>| set.into_iter().collect::<Vec<Place>>();
        inner
            .into_iter()
            .map(|(headers, nodes)| (list(headers), list(nodes)))
            .collect()
    }
}

impl Nesting {
    /// Whether a loop is another, or within it.
    pub fn is_within(&self, mut inner: usize, outer: usize) -> bool {
        while inner != outer {
            match self.loops[inner].parent {
                Some(parent) => inner = parent,
                None => return false,
            }
        }
        true
    }

    /// The loops that a node is in, outermost first.
    pub fn around(&self, place: Place) -> &[usize] {
        self.around.get(place as usize).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::Walk;

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
            for to in path {
                walk.step(*to, &nesting);
            }
            walk.loops[0].iteration
        };
        // Both are in their first iteration, and then in their second.
        assert_eq!((turns(&[1, 2]), turns(&[2, 1])), (1, 1));
        assert_eq!((turns(&[1, 2, 1]), turns(&[2, 1, 2])), (2, 2));
    }

    #[test]
    fn loops_that_share_a_header_are_told_apart() {
        // 1 1 1 2 1 1 2: a loop of 1 in a loop of 1 and 2.
        let flow = flow(&[(0, 1), (1, 1), (1, 2), (2, 1), (2, 3)]);
        let nesting = flow.nesting();
        assert_eq!(nesting.around(1), [0, 1]);
        assert_eq!(nesting.around(2), [0]);
        let mut walk = Walk::new();
        for to in [1, 1, 1, 2, 1, 1] {
            walk.step(to, &nesting);
        }
        let counts: Vec<(u64, u64)> = walk
            .loops
            .iter()
            .map(|it| (it.iteration, it.total))
            .collect();
        assert_eq!(counts, [(2, 5), (2, 2)]);
        // Loops that begin with a loop entered in its middle: 1 2 1 2 3, 2 1 2 3, and 4 behind several.
        let tangle = [
            (1, 2),
            (2, 1),
            (2, 3),
            (3, 1),
            (3, 2),
            (3, 4),
            (4, 1),
            (4, 2),
            (0, 1),
            (0, 2),
        ];
        let nesting = self::flow(&tangle).nesting();
        let depths = [1, 2, 3, 4].map(|it| nesting.around(it).len());
        assert_eq!(depths, [3, 3, 2, 1]);
        // Two arms that lead back are no inner loops.
        let arms = self::flow(&[(0, 1), (1, 2), (1, 3), (2, 1), (3, 1), (2, 4)]);
        assert_eq!(arms.nesting().loops.len(), 1);
    }

    #[test]
    fn an_iteration_may_begin_with_what_was_not_first() {
        // 1 3 1 3 2 3 1 3: an iteration begins with 1 or, after the first, with 2.
        let flow = flow(&[(0, 1), (1, 3), (3, 1), (3, 2), (2, 3)]);
        assert_eq!(flow.nesting().loops[0].headers, [1]);
        let headers = |flow: &Flow| flow.otherwise().map(|it| it.loops[0].headers.clone());
        assert_eq!(headers(&flow), Some(vec![1, 2]));
        // The same where 2 is a loop; but not where the iteration ends with one.
        let begun = self::flow(&[(0, 1), (1, 3), (3, 1), (3, 2), (2, 2), (2, 3)]);
        assert_eq!(headers(&begun), Some(vec![1, 2]));
        let ended = self::flow(&[(0, 1), (1, 2), (2, 2), (2, 1)]);
        assert_eq!(headers(&ended), None);
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
        let reaches = |from, to| flow.reaches(from, to, around, false);
        assert!(reaches(2, 91) && !reaches(91, 2));
        assert!(!reaches(2, 3) && !reaches(3, 2));
    }
}
