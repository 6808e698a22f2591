//! A tree to read: loops once, with their counts.

use crate::forest::Forest;
use crate::node::{Label, NodeId};
use lockstep_loops::{BodyId, Names};
use schemars::JsonSchema;
use serde::Serialize;

/// One line of a call tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutlineLine {
    /// Indentation level, from 0.
    pub depth: usize,
    /// `call`, `open` (a call that never returned), `loop`, or `return` (a return without a call).
    pub kind: &'static str,
    /// Name of the function or of the loop.
    pub name: String,
    /// Whether the function around it made this call as a tail call.
    pub tail: bool,
    /// How often this line occurs, over all iterations of the loops around it.
    pub occurrences: u64,
    /// Numbers of iterations, if the line is a loop; null otherwise.
    pub trips: Option<Trips>,
    /// Number of events in it, over all occurrences.
    pub events: u64,
}

/// Numbers of iterations of a loop that the trace enters once or several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trips {
    /// Smallest number of iterations.
    pub least: u64,
    /// Largest number of iterations.
    pub greatest: u64,
    /// Sum over all occurrences.
    pub total: u64,
}

/// Lines that are deeper are not indented further: nobody could read them, and a recursion may be of any depth.
const DEEPEST: usize = 200;

impl std::fmt::Display for OutlineLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:indent$}", "", indent = 2 * self.depth.min(DEEPEST))?;
        if self.tail {
            write!(f, "~> ")?;
        }
        write!(f, "{}", self.name)?;
        match self.trips {
            Some(trips) if trips.least == trips.greatest => write!(f, "^{}", trips.least)?,
            Some(trips) => write!(f, "^{}..{}", trips.least, trips.greatest)?,
            None => {}
        }
        if self.kind == "open" {
            write!(f, "  (open)")?;
        }
        Ok(())
    }
}

/// Nodes of one shape that stand at the same place of different iterations, and how often each.
type Alike = Vec<(NodeId, u64)>;

impl Forest {
    /// The tree as lines: each loop once, whatever its iterations' trip counts. `names` must know the
    /// loops ([`Forest::name_loops`]).
    #[must_use]
    pub fn outline(&self, root: NodeId, names: &Names) -> Vec<OutlineLine> {
        let mut lines = Vec::new();
        let mut open: Vec<(usize, Alike)> = vec![(0, vec![(root, 1)])];
        while let Some((depth, alike)) = open.pop() {
            let Some((first, _)) = alike.first().copied() else {
                continue;
            };
            let label = self.node(first).label;
            let depth = match self.line(label, depth, &alike, names) {
                Some(line) => {
                    lines.push(line);
                    depth + 1
                }
                None => depth,
            };
            let children = match label {
                Label::Loop(_) => vec![self.iterations(&alike)],
                _ => self.columns(first, &alike),
            };
            open.extend(children.into_iter().rev().map(|child| (depth, child)));
        }
        lines
    }

    fn line(
        &self,
        label: Label,
        depth: usize,
        alike: &Alike,
        names: &Names,
    ) -> Option<OutlineLine> {
        let (kind, name, tail) = match label {
            Label::Call(call) => {
                let kind = if call.open { "open" } else { "call" };
                (kind, self.function(call.function).name.clone(), call.tail)
            }
            Label::Loop(body) => ("loop", names.label(body), false),
            Label::Return => ("return", "return".to_owned(), false),
            Label::Trace | Label::Iteration => return None,
        };
        Some(OutlineLine {
            depth,
            kind,
            name,
            tail,
            occurrences: alike.iter().map(|(_, times)| times).sum(),
            trips: matches!(label, Label::Loop(_)).then(|| self.trips(alike)),
            events: alike
                .iter()
                .map(|(id, times)| self.node(*id).events.saturating_mul(*times))
                .fold(0, u64::saturating_add),
        })
    }

    /// How often a loop is run through.
    #[must_use]
    pub fn trip_count(&self, id: NodeId) -> u64 {
        self.nodes.items(id).iter().map(|item| item.times).sum()
    }

    fn trips(&self, alike: &Alike) -> Trips {
        let counts = alike
            .iter()
            .map(|(id, times)| (self.trip_count(*id), *times));
        let mut trips = Trips {
            least: u64::MAX,
            greatest: 0,
            total: 0,
        };
        for (count, times) in counts {
            trips.least = trips.least.min(count);
            trips.greatest = trips.greatest.max(count);
            trips.total = trips.total.saturating_add(count.saturating_mul(times));
        }
        trips
    }

    /// All iterations of loops of one body.
    fn iterations(&self, alike: &Alike) -> Alike {
        let all = alike.iter().flat_map(|(id, times)| {
            let items = self.nodes.items(*id).iter();
            items.map(move |item| (item.node, item.times.saturating_mul(*times)))
        });
        unite(all)
    }

    /// The children of nodes of one shape, place by place.
    fn columns(&self, first: NodeId, alike: &Alike) -> Vec<Alike> {
        (0..self.nodes.items(first).len())
            .map(|index| {
                let column = alike.iter().filter_map(|(id, times)| {
                    let item = self.nodes.items(*id).get(index)?;
                    Some((item.node, item.times.saturating_mul(*times)))
                });
                unite(column)
            })
            .collect()
    }

    /// The elements of a loop body as text, functions and loops by name.
    #[must_use]
    pub fn body_names(&self, loop_node: NodeId, names: &Names) -> Vec<String> {
        let Some(item) = self.nodes.items(loop_node).first() else {
            return Vec::new();
        };
        let element = |id: NodeId| match self.nodes.label(id) {
            Label::Call(call) => self.function(call.function).name.clone(),
            Label::Loop(body) => names.label(body),
            Label::Return => "return".to_owned(),
            Label::Trace | Label::Iteration => String::new(),
        };
        match self.nodes.label(item.node) {
            Label::Iteration => self
                .nodes
                .items(item.node)
                .iter()
                .map(|item| element(item.node))
                .collect(),
            _ => vec![element(item.node)],
        }
    }

    /// The loop body of a node that is a loop.
    #[must_use]
    pub fn body(&self, id: NodeId) -> Option<BodyId> {
        match self.nodes.label(id) {
            Label::Loop(body) => Some(body),
            _ => None,
        }
    }
}

/// Each node once.
fn unite(nodes: impl Iterator<Item = (NodeId, u64)>) -> Alike {
    let mut sums: rustc_hash::FxHashMap<NodeId, u64> = rustc_hash::FxHashMap::default();
    let mut order = Vec::new();
    for (id, times) in nodes {
        let sum = sums.entry(id).or_insert_with(|| {
            order.push(id);
            0
        });
        *sum = sum.saturating_add(times);
    }
    order.into_iter().map(|id| (id, sums[&id])).collect()
}
