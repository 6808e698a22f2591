//! From events to a tree, one event at a time.

use crate::K;
use crate::forest::{Forest, FunctionMap};
use crate::function::FunctionKey;
use crate::node::{Call, Item, Label, NodeId};
use crate::pieces::{Piece, Pieces, finish};
use lockstep_loops::{Mode, Stack};
use lockstep_trace::Event;

/// Builds the tree of one trace. Memory: the open calls and their folded child lists.
#[derive(Debug)]
pub struct Builder<'f> {
    forest: &'f mut Forest,
    /// Outermost first; the first is the trace itself.
    frames: Vec<Frame>,
    /// Child lists of frames that are gone.
    spare: Vec<Stack<Piece>>,
    items: Vec<Item>,
    /// Closed calls without children, by function: most calls are these.
    leaves: Vec<Option<NodeId>>,
}

#[derive(Debug)]
struct Frame {
    call: Option<Call>,
    /// Whether it will end with the call that comes next.
    handed_over: bool,
    children: Stack<Piece>,
}

impl<'f> Builder<'f> {
    /// An empty trace.
    pub fn new(forest: &'f mut Forest) -> Self {
        let root = Frame {
            call: None,
            handed_over: false,
            children: Stack::new(K, Mode::Shape),
        };
        Self {
            forest,
            frames: vec![root],
            spare: Vec::new(),
            items: Vec::new(),
            leaves: Vec::new(),
        }
    }

    /// How many children the nodes of the forest have, and the lists that are under way.
    pub(crate) fn size(&self) -> usize {
        let open: usize = self.frames.iter().map(|it| it.children.items().len()).sum();
        self.forest.nodes.size() + open
    }

    /// Adds an event of a run.
    pub fn event(&mut self, event: Event, functions: &FunctionMap) {
        match event {
            Event::Call(function) => self.call(functions.key(function)),
            Event::Return => self.ret(),
            Event::Tail => self.tail(),
        }
    }

    /// Adds a call.
    pub fn call(&mut self, function: FunctionKey) {
        let tail = self.frames.last().is_some_and(|frame| frame.handed_over);
        let children = self
            .spare
            .pop()
            .unwrap_or_else(|| Stack::new(K, Mode::Shape));
        self.frames.push(Frame {
            call: Some(Call {
                function,
                open: false,
                tail,
            }),
            handed_over: false,
            children,
        });
    }

    /// Adds a return: of the innermost open call, and of those that had handed over to it.
    pub fn ret(&mut self) {
        if self.frames.len() == 1 {
            let node = self.forest.close(Label::Return, &[], &[]);
            self.push(node);
            return;
        }
        loop {
            self.pop(false);
            match self.frames.last() {
                Some(frame) if frame.handed_over => {}
                _ => return,
            }
        }
    }

    /// The innermost open call hands over to the next.
    pub fn tail(&mut self) {
        if let [_, .., top] = self.frames.as_mut_slice() {
            top.handed_over = true;
        }
    }

    /// The tree; calls that have not returned are open.
    #[must_use]
    pub fn finish(mut self) -> NodeId {
        while self.frames.len() > 1 {
            self.pop(true);
        }
        let Some(frame) = self.frames.pop() else {
            return self.forest.close(Label::Trace, &[], &[]);
        };
        finish(
            frame.children.items(),
            &mut self.forest.nodes,
            &mut self.items,
        );
        self.forest
            .close(Label::Trace, &self.items, frame.children.keys())
    }

    /// Closes the innermost call, and adds it to the one around it.
    fn pop(&mut self, open: bool) {
        let Some(mut frame) = self.frames.pop() else {
            return;
        };
        let Some(call) = frame.call else { return };
        let leaf = !open && !call.tail && frame.children.items().is_empty();
        let function = call.function.0 as usize;
        let node = match self.leaves.get(function) {
            Some(Some(node)) if leaf => *node,
            _ => {
                finish(
                    frame.children.items(),
                    &mut self.forest.nodes,
                    &mut self.items,
                );
                let label = Label::Call(Call { open, ..call });
                let keys = frame.children.keys();
                let node = self.forest.close(label, &self.items, keys);
                if leaf {
                    let length = self.leaves.len().max(function + 1);
                    self.leaves.resize(length, None);
                    self.leaves[function] = Some(node);
                }
                node
            }
        };
        frame.children.clear();
        self.spare.push(frame.children);
        self.push(node);
    }

    fn push(&mut self, node: NodeId) {
        let shape = self.forest.nodes.shape(node);
        if let Some(frame) = self.frames.last_mut() {
            let mut pieces = Pieces {
                nodes: &mut self.forest.nodes,
                items: &mut self.items,
            };
            let bodies = &mut self.forest.bodies;
            frame
                .children
                .push(shape.0, Piece::Node(node), bodies, &mut pieces);
        }
    }
}
