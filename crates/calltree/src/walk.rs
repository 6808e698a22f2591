//! Through a tree in the order of events, without recursion.

use crate::filter::Projection;
use crate::forest::Forest;
use crate::function::FunctionKey;
use crate::node::{Label, NodeId, Nodes};
use lockstep_loops::{Bodies, CountsMark, Element, Folding, Mode, Repeat};

/// An entry of a flat sequence: a call, a call that never returned, or a return.
///
/// The symbol of a call is its function's number, so that a loop over calls means the same in all
/// traces of a forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Token {
    /// A call that returned.
    Call(FunctionKey),
    /// A call that was open at the end.
    Open(FunctionKey),
    /// A return.
    Return,
}

const OPEN: u32 = 1 << 31;
const RETURN: u32 = u32::MAX;

impl Token {
    /// As a symbol for loop recognition.
    #[must_use]
    #[inline]
    pub const fn symbol(self) -> u32 {
        match self {
            Self::Call(function) => function.0,
            Self::Open(function) => function.0 | OPEN,
            Self::Return => RETURN,
        }
    }

    /// From a symbol.
    #[must_use]
    pub const fn from_symbol(symbol: u32) -> Self {
        match symbol {
            RETURN => Self::Return,
            _ if symbol & OPEN != 0 => Self::Open(FunctionKey(symbol & !OPEN)),
            _ => Self::Call(FunctionKey(symbol)),
        }
    }

    /// Its function, unless it is a return.
    #[must_use]
    pub const fn function(self) -> Option<FunctionKey> {
        match self {
            Self::Call(function) | Self::Open(function) => Some(function),
            Self::Return => None,
        }
    }
}

/// What a walk does at the nodes it meets.
pub(crate) trait Visitor {
    /// What it remembers of an item that stands several times in a row.
    type Repeat;

    /// Where the nodes are; a visitor may add to them.
    fn nodes(&self) -> &Nodes;

    /// Before the children of a node; whether to go through them.
    fn enter(&mut self, id: NodeId, label: Label) -> bool;

    /// After them, where it went through them.
    fn leave(&mut self, label: Label);

    /// An item that stands several times in a row comes next.
    fn start(&mut self) -> Self::Repeat;

    /// It has been walked through, and would have to be `left` times more: how often really.
    fn repeat(&mut self, repeat: &mut Self::Repeat, left: u64) -> u64;
}

/// A node that is being walked through.
struct Step<R> {
    node: NodeId,
    label: Label,
    /// Which item is next, or under way.
    item: usize,
    /// How often the item is still to come, the time under way included; 0 before it.
    left: u64,
    repeat: Option<R>,
}

/// Walks through `root` and everything in it that `visitor` enters.
pub(crate) fn walk<V: Visitor>(root: NodeId, visitor: &mut V) {
    let mut steps: Vec<Step<V::Repeat>> = Vec::new();
    let mut next = Some(root);
    loop {
        if let Some(node) = next.take() {
            let label = visitor.nodes().label(node);
            if visitor.enter(node, label) {
                steps.push(Step {
                    node,
                    label,
                    item: 0,
                    left: 0,
                    repeat: None,
                });
            }
        }
        let Some(step) = steps.last_mut() else { return };
        let Some(item) = visitor.nodes().items(step.node).get(step.item).copied() else {
            visitor.leave(step.label);
            steps.pop();
            continue;
        };
        if step.left == 0 {
            step.left = item.times;
            step.repeat = (item.times > 1).then(|| visitor.start());
        } else {
            step.left -= 1;
            if let Some(repeat) = &mut step.repeat {
                step.left = visitor.repeat(repeat, step.left);
            }
            if step.left == 0 {
                step.item += 1;
                continue;
            }
        }
        next = Some(item.node);
    }
}

impl Forest {
    /// Gives the calls of a tree that `projection` keeps to `each`, in order, with their returns or
    /// without. An open call has none. Linear in the number of kept events.
    pub fn tokens(
        &self,
        root: NodeId,
        projection: &Projection,
        returns: bool,
        each: &mut dyn FnMut(Token),
    ) {
        let mut visitor = Tokens {
            nodes: &self.nodes,
            projection,
            returns,
            each,
        };
        walk(root, &mut visitor);
    }

    /// The same sequence with its loops folded: what [`fold_tokens`] makes of it, in time that follows the folded tree and the result, not the number of events.
    #[must_use]
    pub fn flat(
        &self,
        root: NodeId,
        projection: &Projection,
        returns: bool,
        k: usize,
        mode: Mode,
        bodies: &mut Bodies,
    ) -> Vec<Element> {
        let mut visitor = Flat {
            nodes: &self.nodes,
            projection,
            returns,
            folding: Folding::new(k, mode),
            bodies,
        };
        walk(root, &mut visitor);
        visitor.folding.finish()
    }
}

/// The token before the children of a node.
fn before(label: Label, projection: &Projection, returns: bool) -> Option<Token> {
    match label {
        Label::Call(call) if projection.keeps(call.function) => Some(if call.open {
            Token::Open(call.function)
        } else {
            Token::Call(call.function)
        }),
        Label::Return if returns => Some(Token::Return),
        _ => None,
    }
}

/// The token after them.
fn after(label: Label, projection: &Projection, returns: bool) -> Option<Token> {
    match label {
        Label::Call(call) if returns && !call.open && projection.keeps(call.function) => {
            Some(Token::Return)
        }
        _ => None,
    }
}

struct Tokens<'a> {
    nodes: &'a Nodes,
    projection: &'a Projection,
    returns: bool,
    each: &'a mut dyn FnMut(Token),
}

impl Visitor for Tokens<'_> {
    type Repeat = ();

    fn nodes(&self) -> &Nodes {
        self.nodes
    }

    fn enter(&mut self, id: NodeId, label: Label) -> bool {
        if let Some(token) = before(label, self.projection, self.returns) {
            (self.each)(token);
        }
        self.projection.touches(id)
    }

    fn leave(&mut self, label: Label) {
        if let Some(token) = after(label, self.projection, self.returns) {
            (self.each)(token);
        }
    }

    fn start(&mut self) {}

    fn repeat(&mut self, (): &mut (), left: u64) -> u64 {
        left
    }
}

/// Folds a sequence of tokens. An open call stays visible: it is part of no loop.
pub fn fold_tokens(
    tokens: impl IntoIterator<Item = Token>,
    k: usize,
    mode: Mode,
    bodies: &mut Bodies,
) -> Vec<Element> {
    let mut folding = Folding::new(k, mode);
    for token in tokens {
        push(&mut folding, token, bodies);
    }
    folding.finish()
}

#[inline]
fn push(folding: &mut Folding, token: Token, bodies: &mut Bodies) {
    if let Token::Open(_) = token {
        folding.seal();
        folding.push(token.symbol(), bodies);
        folding.seal();
    } else {
        folding.push(token.symbol(), bodies);
    }
}

struct Flat<'a> {
    nodes: &'a Nodes,
    projection: &'a Projection,
    returns: bool,
    folding: Folding,
    bodies: &'a mut Bodies,
}

impl Flat<'_> {
    fn push(&mut self, token: Option<Token>) {
        if let Some(token) = token {
            push(&mut self.folding, token, self.bodies);
        }
    }
}

impl Visitor for Flat<'_> {
    type Repeat = Repeat<CountsMark>;

    fn nodes(&self) -> &Nodes {
        self.nodes
    }

    fn enter(&mut self, id: NodeId, label: Label) -> bool {
        self.push(before(label, self.projection, self.returns));
        self.projection.touches(id)
    }

    fn leave(&mut self, label: Label) {
        self.push(after(label, self.projection, self.returns));
    }

    fn start(&mut self) -> Self::Repeat {
        self.folding.start()
    }

    fn repeat(&mut self, repeat: &mut Self::Repeat, left: u64) -> u64 {
        self.folding.repeat(repeat, left)
    }
}
