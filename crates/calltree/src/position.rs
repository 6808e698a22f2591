//! Where an event stands: call stack and loop coordinates.

use crate::K;
use crate::forest::Forest;
use crate::function::FunctionKey;
use crate::node::{Item, Label, NodeId};
use lockstep_loops::BodyId;

/// Where an event stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Position {
    /// The open calls at the event, outermost first. The call that is called or returns from in the
    /// event itself is the last of them.
    pub stack: Vec<StackFrame>,
    /// The loops around the event, outermost first.
    pub loops: Vec<LoopAt>,
    /// Whether the event is a return.
    pub is_return: bool,
}

/// A call of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackFrame {
    /// The function.
    pub function: FunctionKey,
    /// Whether the frame before it handed over to it (a tail call) and is no frame of the machine's
    /// stack any more.
    pub tail: bool,
}

/// A loop, and where in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopAt {
    /// Which loop; [`Forest::name_loops`] gives it a name.
    pub body: BodyId,
    /// The iteration, from 1.
    pub iteration: u64,
    /// How many there are; of a loop that the trace ends in, how many were begun.
    pub of: u64,
    /// How many calls of the stack are around the loop.
    pub depth: usize,
}

impl Forest {
    /// Where event `event` of `root` stands, from 0; `None` from the end on.
    #[must_use]
    pub fn position(&self, root: NodeId, event: u64) -> Option<Position> {
        if event >= self.node(root).events {
            return None;
        }
        let mut position = Position::default();
        let (mut id, mut left) = (root, event);
        loop {
            let node = self.node(id);
            match node.label {
                Label::Call(call) => {
                    position.stack.push(StackFrame {
                        function: call.function,
                        tail: call.tail,
                    });
                    if left == 0 {
                        return Some(position);
                    }
                    if !call.open && left == node.events - 1 {
                        position.is_return = true;
                        return Some(position);
                    }
                    left -= 1;
                }
                Label::Return => {
                    position.is_return = true;
                    return Some(position);
                }
                Label::Trace | Label::Loop(_) | Label::Iteration => {}
            }
            let index = node.ends.partition_point(|end| *end <= left);
            let item = node.items.get(index)?;
            if index > 0 {
                left -= node.ends[index - 1];
            }
            let events = self.node(item.node).events;
            if let Label::Loop(body) = node.label {
                let before: u64 = node.items[..index].iter().map(|item| item.times).sum();
                position.loops.push(LoopAt {
                    body,
                    iteration: before + left / events + 1,
                    of: before
                        + node.items[index..]
                            .iter()
                            .map(|item| item.times)
                            .sum::<u64>(),
                    depth: position.stack.len(),
                });
            }
            left %= events;
            id = item.node;
        }
    }

    /// The open calls at the end of a trace, outermost first.
    #[must_use]
    pub fn open(&self, root: NodeId) -> Vec<StackFrame> {
        self.end(root).stack
    }

    /// Where a trace ends: its open calls, and the loops that they stand in.
    ///
    /// An open call is part of no loop of the tree. It stands in iteration 8 of a loop if the loop ran
    /// 7 times just before, and what came since, the open call included, is how an iteration begins.
    #[must_use]
    pub fn end(&self, root: NodeId) -> Position {
        let mut position = Position::default();
        let mut id = root;
        while let Some((item, before)) = self.node(id).items.split_last() {
            let Label::Call(call) = self.node(item.node).label else {
                break;
            };
            if !call.open {
                break;
            }
            if let Some((body, over)) = self.begun(before, call.function) {
                position.loops.push(LoopAt {
                    body,
                    iteration: over + 1,
                    of: over + 1,
                    depth: position.stack.len(),
                });
            }
            position.stack.push(StackFrame {
                function: call.function,
                tail: call.tail,
            });
            id = item.node;
        }
        position
    }

    /// The loop that a list ends with, if what stands after it and then a call of `next` are how its
    /// body begins; and how often it ran.
    fn begun(&self, list: &[Item], next: FunctionKey) -> Option<(BodyId, u64)> {
        let after = list.iter().rev().take(K);
        let length = after
            .take_while(|item| self.body(item.node).is_none())
            .count();
        let (before, since) = list.split_at(list.len() - length);
        let looped = before.last()?.node;
        let body = self.body(looped)?;
        let first = self.node(looped).items.first()?;
        let elements = self.nodes.elements(first);
        let begins = elements.len() > since.len()
            && elements
                .iter()
                .zip(since)
                .all(|(a, b)| self.same_shape(a.node, b.node));
        let expected = match self.node(elements.get(since.len())?.node).label {
            Label::Call(call) => call.function,
            _ => return None,
        };
        (begins && expected == next).then(|| (body, self.trip_count(looped)))
    }

    /// The functions of a stack by name.
    #[must_use]
    pub fn stack_names(&self, stack: &[StackFrame]) -> Vec<&str> {
        stack
            .iter()
            .map(|frame| self.function(frame.function).name.as_str())
            .collect()
    }
}
