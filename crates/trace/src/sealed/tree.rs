//! The trees of a sealed run in memory, and the events of one of them, from any event on.

use crate::frames::Frames;
use crate::model::{Event, FunctionId};
use crate::stream::Growing;
use lockstep_format::sealed::grammar::{Grammar, label};

/// The nodes of a store. Children have smaller numbers than their parents.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    items: Vec<(u32, u64)>,
    /// For each item the events in it and in those before it.
    ends: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    label: u32,
    start: u32,
    length: u32,
    /// Its last child ended it: no return of its own.
    ends_with_child: bool,
    /// As they are recorded, its own included.
    events: u64,
}

impl Tree {
    /// The nodes of a grammar.
    pub(crate) fn new(grammar: &Grammar<Growing>) -> Self {
        let mut tree = Self::default();
        for number in 0..grammar.len() {
            let start = tree.items.len();
            let mut events = 0u64;
            for index in 0..grammar.count(number) {
                let Some((child, times)) = grammar.item(number, index) else {
                    break;
                };
                let each = tree.events(child);
                events = events.saturating_add(each.saturating_mul(times));
                tree.items.push((child, times));
                tree.ends.push(events);
            }
            let label = grammar.label(number);
            let ends_with_child = tree.items[start..].last().is_some_and(|(child, _)| {
                let inner = tree.label(*child);
                is_call(inner) && inner & label::TAIL != 0 && inner & label::OPEN == 0
            });
            let own = match label::kind(label) {
                label::CALL => {
                    let returns = label & label::OPEN == 0 && !ends_with_child;
                    1 + u64::from(label & label::TAIL != 0) + u64::from(returns)
                }
                label::RETURN => 1,
                _ => 0,
            };
            tree.nodes.push(Node {
                label,
                start: start as u32,
                length: (tree.items.len() - start) as u32,
                ends_with_child,
                events: events.saturating_add(own),
            });
        }
        tree
    }

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What a node is: [`lockstep_format::sealed::grammar::label`].
    #[must_use]
    pub fn label(&self, node: u32) -> u32 {
        self.nodes
            .get(node as usize)
            .map_or(label::TRACE, |node| node.label)
    }

    /// Its children, and how many times each comes in a row.
    #[must_use]
    pub fn items(&self, node: u32) -> &[(u32, u64)] {
        self.range(node)
            .and_then(|range| self.items.get(range))
            .unwrap_or(&[])
    }

    fn range(&self, node: u32) -> Option<std::ops::Range<usize>> {
        let node = self.nodes.get(node as usize)?;
        let start = node.start as usize;
        Some(start..start + node.length as usize)
    }

    fn ends(&self, node: u32) -> &[u64] {
        self.range(node)
            .and_then(|range| self.ends.get(range))
            .unwrap_or(&[])
    }

    /// How many events a node stands for, as they are recorded.
    #[must_use]
    pub fn events(&self, node: u32) -> u64 {
        self.nodes.get(node as usize).map_or(0, |node| node.events)
    }
}

fn is_call(label: u32) -> bool {
    label::kind(label) == label::CALL
}

fn is_open(label: u32) -> bool {
    is_call(label) && label & label::OPEN != 0
}

/// Functions by the number of their name in labels, and whether the symbol of a call was its return too.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    pub rows: Vec<(FunctionId, bool)>,
}

impl Names {
    /// A function of another run that shares the store.
    pub const OTHER: FunctionId = FunctionId(u32::MAX);

    /// The function of a name.
    pub fn function(&self, name: u32) -> FunctionId {
        self.row(name as usize).0
    }

    pub fn of(&self, label: u32) -> (FunctionId, bool) {
        self.row((label >> label::NAME) as usize)
    }

    fn row(&self, name: usize) -> (FunctionId, bool) {
        match self.rows.get(name) {
            Some(row) if row.0 != Self::OTHER => *row,
            // In no file that we wrote.
            _ => (FunctionId(0), false),
        }
    }
}

/// A list on the way down to the next event.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: u32,
    /// The item that comes next, and how many times of it are left; 0 where it has not begun.
    item: u32,
    left: u64,
}

/// The events of a tree, in order.
#[derive(Debug, Clone)]
pub(crate) struct Walk<'a> {
    tree: &'a Tree,
    names: &'a Names,
    path: Vec<Step>,
    /// A call whose handing over was given.
    ready: Option<FunctionId>,
    /// Where frames hand over to nothing.
    strays: &'a [u64],
    /// Number of the next event.
    index: u64,
    /// Symbols of the events so far.
    pub symbols: u64,
}

impl<'a> Walk<'a> {
    pub fn new(tree: &'a Tree, names: &'a Names, root: u32, strays: &'a [u64]) -> Self {
        Self {
            tree,
            names,
            path: vec![Step {
                node: root,
                item: 0,
                left: 0,
            }],
            ready: None,
            strays,
            index: 0,
            symbols: 0,
        }
    }

    /// From event `index` on: O(depth x log list). Symbols are not counted from the beginning.
    pub fn skip_to(&mut self, index: u64) {
        let Some(root) = self.path.first().map(|step| step.node) else {
            return;
        };
        let before = self.strays.partition_point(|stray| *stray < index);
        self.strays = &self.strays[before..];
        self.index = index;
        self.path.clear();
        let mut left = index - before as u64;
        let mut node = root;
        loop {
            let label = self.tree.label(node);
            let mut step = Step {
                node,
                item: 0,
                left: 0,
            };
            if is_call(label) {
                let tail = u64::from(label & label::TAIL != 0);
                if left == 1 && tail == 1 {
                    self.ready = Some(self.names.of(label).0);
                    self.path.push(step);
                    return;
                }
                left -= 1 + tail;
            }
            let items = self.tree.items(node);
            let ends = self.tree.ends(node);
            let item = ends.partition_point(|end| *end <= left);
            step.item = item as u32;
            let Some((child, times)) = items.get(item).copied() else {
                let whole = ends.last().copied().unwrap_or(0);
                if left > whole {
                    return;
                }
                // Its return comes next, or nothing.
                self.path.push(step);
                match items.last() {
                    Some((last, _)) if is_open(self.tree.label(*last)) => {
                        node = *last;
                        left = self.tree.events(node);
                        continue;
                    }
                    _ => return,
                }
            };
            left -= item.checked_sub(1).map_or(0, |before| ends[before]);
            let each = self.tree.events(child).max(1);
            step.left = times - left / each;
            left %= each;
            if left == 0 {
                self.path.push(step);
                return;
            }
            step.left -= 1;
            step.item += u32::from(step.left == 0);
            self.path.push(step);
            node = child;
        }
    }

    /// The open calls before the next event.
    pub fn frames(&self, last_was_stray: bool) -> Frames {
        let mut frames = Frames::default();
        for (depth, step) in self.path.iter().enumerate() {
            let label = self.tree.label(step.node);
            if !is_call(label) {
                continue;
            }
            if label & label::TAIL != 0 {
                frames.apply(Event::Tail);
            }
            let is_next = self.ready.is_some() && depth + 1 == self.path.len();
            if !is_next {
                frames.apply(Event::Call(self.names.of(label).0));
            }
        }
        if last_was_stray {
            frames.apply(Event::Tail);
        }
        frames
    }
}

impl Iterator for Walk<'_> {
    type Item = Event;

    #[inline]
    fn next(&mut self) -> Option<Event> {
        if let Some((stray, rest)) = self.strays.split_first()
            && *stray == self.index
        {
            self.strays = rest;
            self.index += 1;
            self.symbols += 1;
            return Some(Event::Tail);
        }
        if let Some(function) = self.ready.take() {
            self.index += 1;
            self.symbols += 1;
            return Some(Event::Call(function));
        }
        loop {
            let step = self.path.last_mut()?;
            let node = self.tree.nodes.get(step.node as usize)?;
            if step.item >= node.length {
                let (label, ends_with_child) = (node.label, node.ends_with_child);
                self.path.pop();
                if is_call(label) && label & label::OPEN == 0 && !ends_with_child {
                    self.index += 1;
                    self.symbols += u64::from(!self.names.of(label).1);
                    return Some(Event::Return);
                }
                continue;
            }
            let (child, times) = *self.tree.items.get((node.start + step.item) as usize)?;
            if step.left == 0 {
                step.left = times;
            }
            step.left = step.left.saturating_sub(1);
            step.item += u32::from(step.left == 0);
            let label = self.tree.label(child);
            if label::kind(label) == label::RETURN {
                self.index += 1;
                self.symbols += 1;
                return Some(Event::Return);
            }
            self.path.push(Step {
                node: child,
                item: 0,
                left: 0,
            });
            if is_call(label) {
                self.index += 1;
                self.symbols += 1;
                let function = self.names.of(label).0;
                if label & label::TAIL != 0 {
                    self.ready = Some(function);
                    return Some(Event::Tail);
                }
                return Some(Event::Call(function));
            }
        }
    }
}

/// Of a row of events, which handings over are followed by nothing that was handed over to: what a tree
/// does not show.
#[derive(Debug, Default)]
pub struct Strays {
    /// Of each open call, whether it has handed over.
    open: Vec<bool>,
    /// Where the innermost did.
    latest: u64,
    index: u64,
    found: Vec<u64>,
}

impl Strays {
    /// The next event.
    pub fn event(&mut self, event: Event) {
        match event {
            Event::Call(_) => self.open.push(false),
            Event::Return => {
                if self.open.pop() == Some(true) {
                    self.found.push(self.latest);
                }
                while self.open.pop_if(|handed_over| *handed_over).is_some() {}
            }
            Event::Tail => match self.open.last_mut() {
                Some(handed_over) if !*handed_over => {
                    *handed_over = true;
                    self.latest = self.index;
                }
                _ => self.found.push(self.index),
            },
        }
        self.index += 1;
    }

    /// Their numbers, in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<u64> {
        if self.open.last() == Some(&true) {
            self.found.push(self.latest);
        }
        self.found.sort_unstable();
        self.found
    }
}
