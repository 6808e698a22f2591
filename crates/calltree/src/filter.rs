//! Filters: a tree without the functions that do not pass.

use crate::K;
use crate::forest::Forest;
use crate::function::{Function, FunctionKey};
use crate::node::{Item, Label, NodeId, Nodes};
use crate::pieces::{Piece, Pieces, finish};
use crate::walk::{Visitor, walk};
use lockstep_loops::{Bodies, Mode, Repeat, Stack};
use rustc_hash::FxHashMap;

/// Which functions are kept, and what is known of the forest under that filter.
///
/// Made by [`Forest::projection`] and good for that forest alone. Trees that are added later can be
/// projected too; functions that are added later are dropped.
#[derive(Debug, Clone)]
pub struct Projection {
    keep: Vec<bool>,
    /// Functions whose calls are closed, and those that are kept in a closed call; none where nothing is closed.
    closed: Vec<bool>,
    shown: Vec<bool>,
    /// For each node the number of its events that are kept, outside of a closed call and inside.
    kept: [Vec<u64>; 2],
    projected: FxHashMap<NodeId, NodeId>,
}

impl Projection {
    /// Whether a function is kept.
    #[must_use]
    pub fn keeps(&self, function: FunctionKey) -> bool {
        self.keep.get(function.0 as usize).copied().unwrap_or(false)
    }

    /// Whether its calls are closed.
    fn closes(&self, function: FunctionKey) -> bool {
        let place = function.0 as usize;
        self.closed.get(place).copied().unwrap_or(false)
    }

    /// Whether its calls are kept at such a place.
    fn keeps_at(&self, function: FunctionKey, inside: bool) -> bool {
        let is_shown = || self.shown.get(function.0 as usize).copied() == Some(true);
        self.keeps(function) && (!inside || is_shown())
    }

    fn kept_at(&self, id: NodeId, inside: bool) -> u64 {
        self.kept[usize::from(inside)][id.0 as usize]
    }

    /// Whether what is below a node is inside a closed call, where the node stands at such a place.
    fn is_inside(&self, label: Label, inside: bool) -> bool {
        match label {
            Label::Call(call) => self.closes(call.function),
            _ => inside,
        }
    }

    /// Whether there may be kept events in a node.
    pub(crate) fn touches(&self, id: NodeId) -> bool {
        self.touches_at(id, false)
    }

    fn touches_at(&self, id: NodeId, inside: bool) -> bool {
        let kept = &self.kept[usize::from(inside)];
        kept.get(id.0 as usize).is_none_or(|kept| *kept > 0)
    }

    /// Counts the kept events of the nodes that are new.
    fn update(&mut self, nodes: &Nodes) {
        let places = if self.closed.is_empty() { 1 } else { 2 };
        for index in self.kept[0].len()..nodes.len() {
            let id = NodeId(index as u32);
            let label = nodes.label(id);
            for inside in [false, true].into_iter().take(places) {
                let own = match label {
                    Label::Call(call) if !self.keeps_at(call.function, inside) => 0,
                    Label::Call(call) if call.open => 1,
                    Label::Call(_) => 2,
                    Label::Return => 1,
                    Label::Trace | Label::Loop(_) | Label::Iteration => 0,
                };
                let below = self.is_inside(label, inside);
                let kept = nodes.items(id).iter().fold(own, |sum: u64, item| {
                    let each = self.kept_at(item.node, below);
                    sum.saturating_add(each.saturating_mul(item.times))
                });
                self.kept[usize::from(inside)].push(kept);
            }
        }
    }

    /// The same with calls that are `closed`: of what such a call makes, and what that makes in turn, only calls of functions that
    /// are `shown` are kept, up to the next call of a function that is not closed. For trees alone ([`Forest::project`],
    /// [`Forest::origin`]): flat sequences know nothing of it.
    #[must_use]
    pub fn close(self, closed: Vec<bool>, shown: Vec<bool>) -> Self {
        Self {
            keep: self.keep,
            closed,
            shown,
            kept: Default::default(),
            projected: FxHashMap::default(),
        }
    }
}

impl Forest {
    /// The filter that keeps the functions for which `keep` holds. Linear in the number of nodes.
    pub fn projection(&self, keep: impl FnMut(&Function) -> bool) -> Projection {
        let mut projection = Projection {
            keep: self.functions().iter().map(keep).collect(),
            closed: Vec::new(),
            shown: Vec::new(),
            kept: Default::default(),
            projected: FxHashMap::default(),
        };
        projection.update(&self.nodes);
        projection
    }

    /// Number of events of a node that are kept.
    pub fn kept_events(&self, id: NodeId, projection: &mut Projection) -> u64 {
        projection.update(&self.nodes);
        projection.kept_at(id, false)
    }

    /// The tree that `root` would be had the other functions never been traced: what they called is
    /// their caller's, and loops are folded anew. Each kept call is done once, however often it stands
    /// in the trees that are projected. Returns without a call are kept.
    pub fn project(&mut self, root: NodeId, projection: &mut Projection) -> NodeId {
        projection.update(&self.nodes);
        for id in self.affected(root, projection) {
            let node = self.refold(id, projection);
            projection.projected.insert(id, node);
        }
        projection.projected.get(&root).copied().unwrap_or(root)
    }

    /// The kept calls in `root`, and itself, that contain something that is dropped; inner before
    /// outer.
    fn affected(&self, root: NodeId, projection: &Projection) -> Vec<NodeId> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut found = Vec::new();
        let mut open = vec![(root, false)];
        while let Some((id, inside)) = open.pop() {
            let whole = projection.kept_at(id, inside) == self.nodes.get(id).events;
            if whole || projection.projected.contains_key(&id) || !seen.insert((id, inside)) {
                continue;
            }
            let label = self.nodes.label(id);
            match label {
                Label::Call(call) if projection.keeps_at(call.function, inside) => found.push(id),
                _ if id == root => found.push(id),
                _ => {}
            }
            let below = projection.is_inside(label, inside);
            open.extend(self.nodes.items(id).iter().map(|item| (item.node, below)));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// One kept call or trace, once the kept calls in it are done.
    fn refold(&mut self, id: NodeId, projection: &Projection) -> NodeId {
        let mut visitor = Refold {
            nodes: &mut self.nodes,
            bodies: &mut self.bodies,
            items: Vec::new(),
            projection,
            top: id,
            inside: Vec::new(),
            stack: Stack::new(K, Mode::Shape),
        };
        walk(id, &mut visitor);
        let mut stack = visitor.stack;
        let mut items: Vec<Item> = Vec::new();
        finish(stack.items(), &mut self.nodes, &mut items);
        match self.nodes.label(id) {
            label @ (Label::Call(_) | Label::Trace) => self.close(label, &items, stack.keys()),
            // Somebody projects a loop by itself: it is a row of elements now.
            _ => self.close(Label::Trace, &items, stack.keys()),
        }
    }

    /// Which event of the tree `root` is event `event` of its projection. Both count from 0; the end
    /// of one is the end of the other.
    #[must_use]
    pub fn origin(&self, root: NodeId, projection: &mut Projection, event: u64) -> u64 {
        projection.update(&self.nodes);
        let kept = |id: NodeId, inside: bool| projection.kept_at(id, inside);
        if event >= kept(root, false) {
            return self.node(root).events;
        }
        let (mut id, mut left, mut passed) = (root, event, 0);
        let mut inside = false;
        'descend: loop {
            let node = self.node(id);
            if let Label::Call(call) = node.label {
                if projection.keeps_at(call.function, inside) {
                    if left == 0 {
                        return passed;
                    }
                    if !call.open && left == kept(id, inside) - 1 {
                        return passed + node.events - 1;
                    }
                    left -= 1;
                }
                passed += 1;
            }
            inside = projection.is_inside(node.label, inside);
            for item in node.items {
                let (each, events) = (kept(item.node, inside), self.node(item.node).events);
                if left < each.saturating_mul(item.times) {
                    passed += left / each * events;
                    left %= each;
                    id = item.node;
                    continue 'descend;
                }
                left -= each * item.times;
                passed += events * item.times;
            }
            return passed;
        }
    }
}

/// Folds the elements of one kept node anew.
struct Refold<'a> {
    nodes: &'a mut Nodes,
    bodies: &'a mut Bodies,
    items: Vec<Item>,
    projection: &'a Projection,
    top: NodeId,
    /// For each node that is being walked through whether what is below it is inside a closed call.
    inside: Vec<bool>,
    stack: Stack<Piece>,
}

impl Refold<'_> {
    fn push(&mut self, node: NodeId) {
        let shape = self.nodes.shape(node);
        let mut pieces = Pieces {
            nodes: self.nodes,
            items: &mut self.items,
        };
        self.stack
            .push(shape.0, Piece::Node(node), self.bodies, &mut pieces);
    }
}

impl Visitor for Refold<'_> {
    type Repeat = Repeat<(usize, u64)>;

    fn nodes(&self) -> &Nodes {
        self.nodes
    }

    fn enter(&mut self, id: NodeId, label: Label) -> bool {
        let inside = self.inside.last().copied().unwrap_or(false);
        let enters = match label {
            _ if id == self.top => true,
            Label::Call(call) if !self.projection.keeps_at(call.function, inside) => {
                self.projection.touches_at(id, inside)
            }
            Label::Call(_) | Label::Return => {
                let projected = self.projection.projected.get(&id);
                self.push(projected.copied().unwrap_or(id));
                false
            }
            Label::Trace | Label::Loop(_) | Label::Iteration => {
                self.projection.touches_at(id, inside)
            }
        };
        if enters {
            self.inside.push(self.projection.is_inside(label, inside));
        }
        enters
    }

    fn leave(&mut self, _: Label) {
        self.inside.pop();
    }

    fn start(&mut self) -> Self::Repeat {
        self.stack.start()
    }

    fn repeat(&mut self, repeat: &mut Self::Repeat, left: u64) -> u64 {
        let mut pieces = Pieces {
            nodes: self.nodes,
            items: &mut self.items,
        };
        self.stack.repeat(repeat, left, &mut pieces)
    }
}
