//! Nodes, each content once.

use crate::function::{FunctionKey, Functions};
use lockstep_loops::{Bodies, BodyId, Hasher128, Key};
use rustc_hash::FxHashMap;

/// A node of a [`crate::Forest`]. Children have smaller ids than their parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Call {
    /// What was called.
    pub function: FunctionKey,
    /// Whether it had not returned when the trace ended.
    pub open: bool,
    /// Whether the frame around it had handed over to it (a tail call).
    pub tail: bool,
}

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Label {
    /// A whole trace.
    Trace,
    /// A call, with what happened in it.
    Call(Call),
    /// A loop; its items are its iterations. An iteration of one element is that element, a longer
    /// one is a [`Label::Iteration`].
    Loop(BodyId),
    /// Several elements in a row.
    Iteration,
    /// A return without a call.
    Return,
}

/// A child, `times` times in a row (more than once only in loops).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// The child.
    pub node: NodeId,
    /// How often it stands there.
    pub times: u64,
}

/// A node, to look at.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    /// What it is.
    pub label: Label,
    /// Its children in order.
    pub items: &'a [Item],
    /// For each child the number of events in it and those before it.
    pub ends: &'a [u64],
    /// Number of events in it, its own call and return included.
    pub events: u64,
}

/// What a node looks like when trip counts do not matter: equal for two calls, loops or traces that
/// are equal but for trip counts. An iteration of several elements has none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape(pub(crate) u64);

/// What a call looks like without its trip counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShapeId(pub u32);

#[derive(Debug, Clone)]
struct Record {
    label: Label,
    start: usize,
    end: usize,
    events: u64,
    shape: ShapeId,
    hash: u128,
}

/// The nodes of a forest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nodes {
    records: Vec<Record>,
    items: Vec<Item>,
    ends: Vec<u64>,
    by_hash: FxHashMap<u128, NodeId>,
}

/// The shape of what is neither call nor trace: those are told apart by their label.
pub(crate) const NO_SHAPE: ShapeId = ShapeId(u32::MAX);

impl Nodes {
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// How many items there are.
    pub fn size(&self) -> usize {
        self.items.len() + self.records.len()
    }

    pub fn get(&self, id: NodeId) -> Node<'_> {
        let record = &self.records[id.0 as usize];
        Node {
            label: record.label,
            items: &self.items[record.start..record.end],
            ends: &self.ends[record.start..record.end],
            events: record.events,
        }
    }

    pub fn label(&self, id: NodeId) -> Label {
        self.records[id.0 as usize].label
    }

    pub fn items(&self, id: NodeId) -> &[Item] {
        let record = &self.records[id.0 as usize];
        &self.items[record.start..record.end]
    }

    /// The elements of an iteration that stands in a loop as `item`.
    pub fn elements<'a>(&'a self, item: &'a Item) -> &'a [Item] {
        match self.label(item.node) {
            Label::Iteration => self.items(item.node),
            _ => std::slice::from_ref(item),
        }
    }

    /// What an element is when its list is folded.
    pub fn key(&self, id: NodeId) -> Key {
        match self.label(id) {
            Label::Loop(body) => Key::Loop(body),
            _ => Key::Symbol(self.shape(id).0),
        }
    }

    pub fn hash(&self, id: NodeId) -> u128 {
        self.records[id.0 as usize].hash
    }

    pub fn shape(&self, id: NodeId) -> ShapeId {
        self.records[id.0 as usize].shape
    }

    /// The node with this content; added if new. `own` is the hash of the label.
    pub fn intern(&mut self, label: Label, own: u128, items: &[Item], shape: ShapeId) -> NodeId {
        let mut hasher = Hasher128::new();
        hasher.hash(own);
        for item in items {
            hasher.hash(self.hash(item.node));
            hasher.number(item.times);
        }
        loop {
            let hash = hasher.finish();
            match self.by_hash.get(&hash) {
                Some(id) if self.label(*id) == label && self.items(*id) == items => return *id,
                // Another content with the same 128 bits: the next address is as good.
                Some(_) => hasher.number(0),
                None => return self.add(label, items, shape, hash),
            }
        }
    }

    fn add(&mut self, label: Label, items: &[Item], shape: ShapeId, hash: u128) -> NodeId {
        let start = self.items.len();
        let mut events = 0u64;
        for item in items {
            let each = self.records[item.node.0 as usize].events;
            events = events.saturating_add(each.saturating_mul(item.times));
            self.items.push(*item);
            self.ends.push(events);
        }
        let own = match label {
            Label::Call(call) if call.open => 1,
            Label::Call(_) => 2,
            Label::Return => 1,
            Label::Trace | Label::Loop(_) | Label::Iteration => 0,
        };
        let id = NodeId(self.records.len() as u32);
        self.records.push(Record {
            label,
            start,
            end: self.items.len(),
            events: events.saturating_add(own),
            shape,
            hash,
        });
        self.by_hash.insert(hash, id);
        id
    }
}

/// The shapes of a forest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    hashes: Vec<u128>,
    contents: Vec<(usize, usize, u128)>,
    keys: Vec<Key>,
    by_hash: FxHashMap<u128, ShapeId>,
    /// By [`BodyId`].
    bodies: Vec<u128>,
}

impl Shapes {
    /// The shape of something whose label hashes to `own`, with these children.
    pub fn intern(&mut self, own: u128, keys: &[Key], bodies: &Bodies) -> ShapeId {
        let mut hasher = Hasher128::new();
        hasher.hash(own);
        for key in keys {
            let hash = self.key_hash(*key, bodies);
            hasher.hash(hash);
        }
        loop {
            let hash = hasher.finish();
            match self.by_hash.get(&hash) {
                Some(id) if self.is(*id, own, keys) => return *id,
                Some(_) => hasher.number(0),
                None => {
                    let id = ShapeId(self.hashes.len() as u32);
                    let start = self.keys.len();
                    self.keys.extend_from_slice(keys);
                    self.contents.push((start, self.keys.len(), own));
                    self.hashes.push(hash);
                    self.by_hash.insert(hash, id);
                    return id;
                }
            }
        }
    }

    fn is(&self, id: ShapeId, own: u128, keys: &[Key]) -> bool {
        let (start, end, label) = self.contents[id.0 as usize];
        label == own && &self.keys[start..end] == keys
    }

    /// The content address of a loop body, once something around it is finished.
    pub fn body_hash(&self, body: BodyId) -> Option<u128> {
        self.bodies.get(body.0 as usize).copied()
    }

    /// Depends on contents alone, where the hashes of [`Bodies`] depend on our numbers.
    fn key_hash(&mut self, key: Key, bodies: &Bodies) -> u128 {
        match key {
            Key::Symbol(shape) => self.hashes[shape as usize],
            Key::Loop(body) | Key::Times(body, _) => {
                // A body consists of earlier bodies, and is met after them.
                while self.bodies.len() <= body.0 as usize {
                    let next = BodyId(self.bodies.len() as u32);
                    let mut hasher = Hasher128::new();
                    for key in bodies.keys(next) {
                        let hash = match key {
                            Key::Symbol(shape) => self.hashes[*shape as usize],
                            Key::Loop(inner) | Key::Times(inner, _) => {
                                self.bodies[inner.0 as usize]
                            }
                        };
                        hasher.hash(hash);
                    }
                    self.bodies.push(hasher.finish());
                }
                self.bodies[body.0 as usize]
            }
        }
    }
}

/// Hashes of labels. Those of shapes leave out what is no part of them.
pub(crate) mod own {
    use super::{Call, Functions, Hasher128};

    pub const TRACE: u128 = 1;
    pub const LOOP: u128 = 2;
    pub const ITERATION: u128 = 3;
    pub const RETURN: u128 = 4;

    pub fn call(functions: &Functions, call: Call) -> u128 {
        let mut hasher = Hasher128::new();
        hasher.hash(functions.hash(call.function));
        hasher.number(u64::from(call.open) << 1 | u64::from(call.tail));
        hasher.finish()
    }
}
