//! What symbols did to a stack the last time that it was as it is, so that a loop that goes round is not folded anew in each
//! iteration.
//!
//! The rules ask for the elements and for nothing else (in [`crate::Mode::Shape`], where counts are no part of them). So the
//! same symbol on the same stack has the same outcome, and a stack above one of its loops, the root, is a node of a tree:
//!
//! ```text
//!  .-----------> ... L ---- a ----> ... L a ---- b ----.     L, the root, is a loop of a b:
//!  |               |                                   |     b on top of a is one iteration more
//!  '---------------|-----------------------------------'
//!                  '------- x ----> ... L x ---- a ----> ... L x a
//! ```
//!
//! Where the next symbol has led somewhere before, the way is gone without a look at the elements; the stack proper follows when
//! it is asked for. All that is remembered is forgotten with the root, or when it has been of no use for a while.

use crate::body::BodyId;
use crate::standing::Round;

/// So many iterations must have come before a loop is worth it: where there is nothing but accidents, most loops end sooner.
pub(crate) const WORTH: u64 = 4;

/// At most so many nodes are remembered, and as many edges.
const NODES: usize = 1 << 14;

/// So many edges of a node are looked at, its first and the newest, and so many loops on top of it. More would take as long as the
/// rules.
const EDGES: usize = 8;

/// At first, for each element of the root's body, and at most: what is remembered costs one of them, what is of use gives one.
const CREDIT: usize = 8;
const MOST_CREDIT: usize = 4096;

const NONE: u32 = u32::MAX;

/// A rule as it was applied: how many elements, of which so many are loops, became what.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Applied {
    Create {
        length: u32,
        loops: u32,
        round: Round,
    },
    Extend {
        length: u32,
        loops: u32,
    },
    Merge,
}

impl Applied {
    /// How many elements end, and how many come.
    fn change(self) -> (usize, usize) {
        match self {
            Self::Create { length, .. } => (crate::COPIES * length as usize, 1),
            Self::Extend { length, .. } => (length as usize, 0),
            Self::Merge => (1, 0),
        }
    }
}

/// Where a symbol leads.
#[derive(Debug, Clone, Copy)]
struct Edge {
    symbol: u32,
    to: u32,
    /// The step with which it goes there, plus one; none where the symbol is one more element.
    step: u32,
    /// The next of the same node.
    next: u32,
}

const NOWHERE: Edge = Edge {
    symbol: 0,
    to: NONE,
    step: 0,
    next: NONE,
};

/// What comes of a symbol to which rules are applied.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// So many elements of the path end, and whether `to` is a new one or what is on top then.
    drop: u32,
    grows: bool,
    /// The rules, as a range.
    start: u32,
    end: u32,
}

/// What an element is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    Symbol(u32),
    Loop(Round),
}

/// A stack, by its top and by what is below it.
#[derive(Debug, Clone, Copy)]
struct Node {
    part: Part,
    /// The first of the nodes that are this one and a loop on top, and the next of those that share what is below.
    looped: u32,
    sibling: u32,
}

impl Node {
    fn is_loop_of(&self, body: BodyId) -> bool {
        matches!(self.part, Part::Loop(round) if round.body == body)
    }
}

/// What has become of a symbol.
pub(crate) enum Followed<'a> {
    /// It has not come here before.
    No,
    Pushed,
    Applied {
        rules: &'a [Applied],
        /// So many elements are as they were.
        untouched: usize,
    },
}

/// The memory of one stack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Habits {
    /// Where the root is.
    root: usize,
    /// The nodes of the elements from the root on. None: nothing is remembered.
    path: Vec<u32>,
    nodes: Vec<Node>,
    /// The first edge of each node, and then the others.
    first: Vec<Edge>,
    edges: Vec<Edge>,
    steps: Vec<Step>,
    rules: Vec<Applied>,
    /// The node on which the rules are at work, and the first of them.
    from: Option<(u32, usize)>,
    credit: usize,
    /// So many elements of the stack proper are those of the path.
    pub(crate) settled: usize,
}

impl Habits {
    pub(crate) fn forget(&mut self) {
        self.path.clear();
        self.from = None;
    }

    #[inline]
    pub(crate) fn is_at_work(&self) -> bool {
        !self.path.is_empty()
    }

    /// Whether the stack proper, which has this height, is what the path tells.
    #[inline]
    pub(crate) fn is_settled(&self, height: usize) -> bool {
        height == self.settled && height == self.root + self.path.len()
    }

    /// The elements from `index` on, above the root.
    pub(crate) fn parts(&self, index: usize) -> impl Iterator<Item = Part> + '_ {
        let path = &self.path[index - self.root..];
        path.iter().map(|node| self.nodes[*node as usize].part)
    }

    /// Goes where this symbol led before.
    #[inline]
    pub(crate) fn follow(&mut self, symbol: u32) -> Followed<'_> {
        let Some(edge) = self.edge(symbol) else {
            return Followed::No;
        };
        self.credit += 1;
        if edge.step == 0 {
            self.path.push(edge.to);
            return Followed::Pushed;
        }
        let step = self.steps[edge.step as usize - 1];
        let left = self.path.len() - step.drop as usize;
        self.path.truncate(left);
        if step.grows {
            self.path.push(edge.to);
        }
        let untouched = self.root + left;
        self.settled = self.settled.min(untouched);
        Followed::Applied {
            rules: &self.rules[step.start as usize..step.end as usize],
            untouched,
        }
    }

    #[inline]
    fn edge(&self, symbol: u32) -> Option<Edge> {
        let top = self.path.last()?;
        let mut edge = &self.first[*top as usize];
        for _ in 0..EDGES {
            if edge.symbol == symbol && edge.to != NONE {
                return Some(*edge);
            }
            edge = self.edges.get(edge.next as usize)?;
        }
        None
    }

    /// A symbol has been pushed that was not followed.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if let Some(top) = self.path.last() {
            self.from = Some((*top, self.rules.len()));
            // Its own node is known when no rule has been applied.
            self.path.push(NONE);
        }
    }

    /// A rule has been applied.
    #[inline]
    pub(crate) fn apply(&mut self, rule: Applied) {
        if !self.path.is_empty() {
            self.change(rule);
        }
    }

    fn change(&mut self, rule: Applied) {
        let (drop, _) = rule.change();
        if drop >= self.path.len() {
            // What the root has become part of has not been seen yet.
            return self.forget();
        }
        self.path.truncate(self.path.len() - drop);
        if let Applied::Create { round, .. } = rule {
            let top = self.path[self.path.len() - 1];
            let made = self.with_loop(top, round);
            self.path.push(made);
        }
        if self.from.is_some() {
            self.rules.push(rule);
        }
    }

    /// The node that has this loop on top.
    fn with_loop(&mut self, below: u32, round: Round) -> u32 {
        let first = self.nodes[below as usize].looped;
        let mut next = first;
        for _ in 0..EDGES {
            let Some(node) = self.nodes.get(next as usize) else {
                break;
            };
            if node.is_loop_of(round.body) {
                return next;
            }
            next = node.sibling;
        }
        let made = self.add(Part::Loop(round), first);
        self.nodes[below as usize].looped = made;
        made
    }

    fn add(&mut self, part: Part, sibling: u32) -> u32 {
        self.nodes.push(Node {
            part,
            looped: NONE,
            sibling,
        });
        self.first.push(NOWHERE);
        (self.nodes.len() - 1) as u32
    }

    /// No more rule applies; the stack proper has this height.
    #[inline]
    pub(crate) fn end(&mut self, symbol: u32, height: usize) {
        if self.is_at_work() {
            self.settled = height;
            if let Some((from, rules)) = self.from.take() {
                self.remember(symbol, from, rules);
            }
        }
    }

    fn remember(&mut self, symbol: u32, from: u32, rules: usize) {
        self.credit = self.credit.min(MOST_CREDIT) - 1;
        let most = self.nodes.len().max(self.edges.len()).max(self.steps.len());
        if self.credit == 0 || most >= NODES {
            return self.forget();
        }
        let mut step = 0;
        let top = self.path.len() - 1;
        if rules == self.rules.len() {
            self.path[top] = self.add(Part::Symbol(symbol), NONE);
        } else {
            let (drop, grows) = self.shrunk(rules);
            self.steps.push(Step {
                drop,
                grows,
                start: rules as u32,
                end: self.rules.len() as u32,
            });
            step = self.steps.len() as u32;
        }
        let to = self.path[top];
        let edge = Edge {
            symbol,
            to,
            step,
            next: NONE,
        };
        let first = &mut self.first[from as usize];
        if first.to == NONE {
            *first = edge;
        } else {
            let next = std::mem::replace(&mut first.next, self.edges.len() as u32);
            self.edges.push(Edge { next, ..edge });
        }
    }

    /// By how many elements the path shrinks before it grows by one, if it does, when a symbol comes and these rules are applied.
    fn shrunk(&self, rules: usize) -> (u32, bool) {
        let (mut least, mut now) = (0i64, 1i64);
        for rule in &self.rules[rules..] {
            let (drop, more) = rule.change();
            now -= drop as i64;
            least = least.min(now);
            now += more as i64;
        }
        (-least as u32, now > least)
    }

    /// The loop on top, at `index`, has come so often that it is worth it.
    pub(crate) fn take_root(&mut self, index: usize, round: Round) {
        self.nodes.clear();
        self.first.clear();
        self.edges.clear();
        self.steps.clear();
        self.rules.clear();
        self.from = None;
        self.root = index;
        let root = self.add(Part::Loop(round), NONE);
        self.path.clear();
        self.path.push(root);
        self.credit = CREDIT * round.length as usize + 1;
    }
}
