//! The first event in which two trees differ, trip counts included.
//!
//! Equal nodes are passed in one step, and so are iterations that are equal on both sides. Where the
//! lists have been cut into loops differently, both are gone through element by element.

use crate::calls::function;
use crate::structure::list::{List, Next, first, last, own};
use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};
use lockstep_loops::BodyId;

/// The first event of a faulty trace that is not explained by the normal one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// What the normal trace does there.
    pub(super) normal: Next,
    pub(super) faulty: Next,
    pub(super) normal_event: u64,
    pub(super) faulty_event: u64,
    /// The calls around it.
    pub(super) stack: Vec<FunctionKey>,
    /// The loops of the normal tree around it, and the iteration from 1.
    pub(super) loops: Vec<(BodyId, u64)>,
}

/// The first event that differs.
pub(super) struct Exact {
    pub(super) mismatch: Mismatch,
    /// The innermost frame of the faulty tree around it, and how many of its events are before it, its own call included.
    pub(super) frame: NodeId,
    pub(super) within: u64,
}

/// The first event of `faulty` that is not that of `normal`; `None` if they are equal.
pub(super) fn first_mismatch(forest: &Forest, normal: NodeId, faulty: NodeId) -> Option<Exact> {
    let faulty_root = faulty;
    let cursor = |root| Cursor {
        forest,
        places: vec![Place::Frame(root, 0)],
    };
    let (mut a, mut b) = (cursor(normal), cursor(faulty));
    loop {
        let is_loop = |node| matches!(forest.node(node).label, Label::Loop(_));
        let (normal, faulty) = match (a.at(), b.at()) {
            (At::Boundary(x), At::Boundary(y)) if x.0 == y.0 => {
                let both = x.1.min(y.1);
                a.skip(both);
                b.skip(both);
                continue;
            }
            (At::Element(x), At::Element(y)) if x == y => {
                a.pass();
                b.pass();
                continue;
            }
            // Loops are entered before iterations are begun: then equal ones are seen.
            (At::Element(x), _) if is_loop(x) => {
                a.places.push(Place::Loop(x, 0, 0));
                continue;
            }
            (_, At::Element(y)) if is_loop(y) => {
                b.places.push(Place::Loop(y, 0, 0));
                continue;
            }
            (At::Boundary(x), _) => {
                a.begin(x.0);
                continue;
            }
            (_, At::Boundary(y)) => {
                b.begin(y.0);
                continue;
            }
            (At::Element(x), At::Element(y)) => match (first(forest, x), first(forest, y)) {
                (Next::Call { function: f, .. }, Next::Call { function: g, .. }) if f == g => {
                    a.places.push(Place::Frame(x, 0));
                    b.places.push(Place::Frame(y, 0));
                    continue;
                }
                different => different,
            },
            (At::End(Next::Return), At::End(Next::Return)) => {
                a.leave();
                b.leave();
                continue;
            }
            (At::End(Next::End), At::End(Next::End)) => return None,
            (At::Element(x), At::End(end)) => (first(forest, x), end),
            (At::End(end), At::Element(y)) => (end, first(forest, y)),
            (At::End(x), At::End(y)) => (x, y),
        };
        let (frame, within) = b.frame().unwrap_or((faulty_root, 0));
        return Some(Exact {
            mismatch: Mismatch {
                normal,
                faulty,
                normal_event: a.event(),
                faulty_event: b.event(),
                stack: b.stack(),
                loops: a.loops(),
            },
            frame,
            within,
        });
    }
}

/// A place in a tree, with the next element in it.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A call or a trace, and which of its children.
    Frame(NodeId, usize),
    /// An iteration, and which of its elements.
    Iteration(List, usize),
    /// A loop: which run of equal iterations, and how many of that run are over.
    Loop(NodeId, usize, u64),
}

/// What a cursor stands before.
#[derive(Debug, Clone, Copy)]
enum At {
    Element(NodeId),
    /// An iteration of a loop, and how often it comes in a row.
    Boundary((NodeId, u64)),
    End(Next),
}

struct Cursor<'f> {
    forest: &'f Forest,
    places: Vec<Place>,
}

impl Cursor<'_> {
    /// What comes next, once what is finished is left.
    fn at(&mut self) -> At {
        let forest = self.forest;
        loop {
            match self.places.last() {
                None => return At::End(Next::End),
                Some(Place::Frame(node, index)) => {
                    return match List::Of(*node).get(forest, *index) {
                        Some(element) => At::Element(element),
                        None => At::End(last(forest, *node)),
                    };
                }
                Some(Place::Iteration(list, index)) => {
                    if let Some(element) = list.get(forest, *index) {
                        return At::Element(element);
                    }
                    self.places.pop();
                    self.skip(1);
                }
                Some(Place::Loop(node, run, over)) => {
                    if let Some(item) = forest.node(*node).items.get(*run) {
                        return At::Boundary((item.node, item.times - over));
                    }
                    self.leave();
                }
            }
        }
    }

    fn pass(&mut self) {
        if let Some(Place::Frame(_, index) | Place::Iteration(_, index)) = self.places.last_mut() {
            *index += 1;
        }
    }

    /// Leaves a frame or loop and passes it.
    fn leave(&mut self) {
        self.places.pop();
        self.pass();
    }

    fn begin(&mut self, iteration: NodeId) {
        let list = List::of_iteration(self.forest, iteration);
        self.places.push(Place::Iteration(list, 0));
    }

    /// Passes iterations of one run.
    fn skip(&mut self, iterations: u64) {
        if let Some(Place::Loop(node, run, over)) = self.places.last_mut() {
            *over += iterations;
            let items = self.forest.node(*node).items;
            if items.get(*run).is_some_and(|item| *over >= item.times) {
                *run += 1;
                *over = 0;
            }
        }
    }

    /// The event before which the cursor stands.
    fn event(&self) -> u64 {
        self.events(&self.places)
    }

    /// The innermost frame, and how many of its events are over.
    fn frame(&self) -> Option<(NodeId, u64)> {
        let frames = self.places.iter().enumerate().rev();
        let mut frames = frames.filter_map(|(depth, place)| match place {
            Place::Frame(node, _) => Some((depth, *node)),
            _ => None,
        });
        let (depth, node) = frames.next()?;
        Some((node, self.events(&self.places[depth..])))
    }

    fn events(&self, places: &[Place]) -> u64 {
        let forest = self.forest;
        let places = places.iter().map(|place| match place {
            Place::Frame(node, index) => {
                own(forest, *node) + List::Of(*node).before(forest, *index)
            }
            Place::Iteration(list, index) => list.before(forest, *index),
            Place::Loop(node, run, over) => {
                let item = forest.node(*node).items.get(*run);
                let of_run = item.map_or(0, |item| forest.node(item.node).events * over);
                List::Of(*node).before(forest, *run) + of_run
            }
        });
        places.sum()
    }

    fn stack(&self) -> Vec<FunctionKey> {
        let functions = self.places.iter().filter_map(|place| match place {
            Place::Frame(node, _) => function(self.forest, *node),
            _ => None,
        });
        functions.collect()
    }

    fn loops(&self) -> Vec<(BodyId, u64)> {
        let loops = self.places.iter().filter_map(|place| match place {
            Place::Loop(node, run, over) => {
                let items = &self.forest.node(*node).items[..*run];
                let before: u64 = items.iter().map(|item| item.times).sum();
                Some((self.forest.body(*node)?, before + over + 1))
            }
            _ => None,
        });
        loops.collect()
    }
}
