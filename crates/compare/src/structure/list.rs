//! Lists of elements: the children of a frame, and those of an iteration.

use lockstep_calltree::{Forest, FunctionKey, Label, NodeId};

/// What comes next in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Call {
        function: FunctionKey,
        open: bool,
    },
    Return,
    /// Nothing: the trace ends here.
    End,
}

/// A list of elements: calls, loops, and returns without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// The children of a call or of a trace, or of an iteration of several elements.
    Of(NodeId),
    /// An iteration that is one element.
    Single(NodeId),
}

impl List {
    pub fn of_iteration(forest: &Forest, node: NodeId) -> Self {
        match forest.node(node).label {
            Label::Iteration => Self::Of(node),
            _ => Self::Single(node),
        }
    }

    pub fn get(self, forest: &Forest, index: usize) -> Option<NodeId> {
        match self {
            Self::Of(node) => forest.node(node).items.get(index).map(|item| item.node),
            Self::Single(node) => (index == 0).then_some(node),
        }
    }

    /// Number of events in the elements before `index`.
    pub fn before(self, forest: &Forest, index: usize) -> u64 {
        match self {
            _ if index == 0 => 0,
            Self::Of(node) => forest.node(node).ends.get(index - 1).copied().unwrap_or(0),
            Self::Single(node) => forest.node(node).events,
        }
    }

    pub fn elements(self, forest: &Forest) -> impl Iterator<Item = NodeId> + '_ {
        (0..).map_while(move |index| self.get(forest, index))
    }
}

/// Iteration `round` of a loop, from 0, and the number of events in those before it. After the last,
/// the last.
pub(super) fn iteration(forest: &Forest, looped: NodeId, round: u64) -> Option<(List, u64)> {
    let node = forest.node(looped);
    let mut first = 0;
    let mut found = None;
    for (item, end) in node.items.iter().zip(node.ends) {
        let events = forest.node(item.node).events;
        let over = round.saturating_sub(first).min(item.times);
        let before = end - events * (item.times - over);
        found = Some((List::of_iteration(forest, item.node), before));
        if over < item.times {
            break;
        }
        first += item.times;
    }
    found
}

/// The first event of an element.
pub(super) fn first(forest: &Forest, mut node: NodeId) -> Next {
    loop {
        let found = forest.node(node);
        match found.label {
            Label::Call(call) => {
                return Next::Call {
                    function: call.function,
                    open: call.open,
                };
            }
            Label::Return => return Next::Return,
            Label::Trace | Label::Loop(_) | Label::Iteration => match found.items.first() {
                Some(item) => node = item.node,
                None => return Next::End,
            },
        }
    }
}

/// What comes after the last element of a frame.
pub(super) fn last(forest: &Forest, frame: NodeId) -> Next {
    match forest.node(frame).label {
        Label::Call(call) if !call.open => Next::Return,
        _ => Next::End,
    }
}

/// Number of events of a frame before its first element.
pub(super) fn own(forest: &Forest, frame: NodeId) -> u64 {
    u64::from(matches!(forest.node(frame).label, Label::Call(_)))
}
