//! A child list while it is folded: what [`lockstep_loops::Stack`] carries for a call tree.

use crate::node::{Item, Label, NO_SHAPE, NodeId, Nodes, own};
use lockstep_loops::{BodyId, COPIES, Content};

/// An element of a child list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A call, or a return without one.
    Node(NodeId),
    /// A loop that may still grow: its iterations, as runs of equal ones.
    Loop(BodyId, Vec<Item>),
}

/// Puts pieces together.
pub(crate) struct Pieces<'a> {
    pub nodes: &'a mut Nodes,
    /// Scratch.
    pub items: &'a mut Vec<Item>,
}

/// The items of finished pieces, in `items`.
pub(crate) fn finish(pieces: &[Piece], nodes: &mut Nodes, items: &mut Vec<Item>) {
    items.clear();
    for piece in pieces {
        let node = match piece {
            Piece::Node(node) => *node,
            Piece::Loop(body, runs) => nodes.intern(Label::Loop(*body), own::LOOP, runs, NO_SHAPE),
        };
        items.push(Item { node, times: 1 });
    }
}

impl Pieces<'_> {
    /// Adds a block as one iteration to `runs`.
    fn enter(&mut self, runs: &mut Vec<Item>, block: &[Piece]) {
        finish(block, self.nodes, self.items);
        if let ([item], Some(last)) = (self.items.as_slice(), runs.last_mut())
            && last.node == item.node
        {
            last.times += 1;
            return;
        }
        if let Some(last) = runs.last_mut()
            && self.items.len() > 1
            && self.nodes.label(last.node) == Label::Iteration
            && self.nodes.items(last.node) == self.items.as_slice()
        {
            last.times += 1;
            return;
        }
        let node = match self.items.as_slice() {
            [item] => item.node,
            items => self
                .nodes
                .intern(Label::Iteration, own::ITERATION, items, NO_SHAPE),
        };
        add(runs, Item { node, times: 1 });
    }
}

/// Adds to runs of equal nodes.
fn add(runs: &mut Vec<Item>, item: Item) {
    match runs.last_mut() {
        Some(last) if last.node == item.node => last.times += item.times,
        _ => runs.push(item),
    }
}

impl Content for Pieces<'_> {
    type Item = Piece;

    fn create(&mut self, items: &mut Vec<Piece>, length: usize, _: usize, body: BodyId) {
        let start = items.len() - COPIES * length;
        let mut runs = Vec::new();
        for block in items[start..].chunks(length) {
            self.enter(&mut runs, block);
        }
        items.truncate(start);
        items.push(Piece::Loop(body, runs));
    }

    fn extend(&mut self, items: &mut Vec<Piece>, length: usize, _: usize) {
        let start = items.len() - length;
        if let Some((Piece::Loop(_, runs), block)) = items[start - 1..].split_first_mut() {
            self.enter(runs, block);
        }
        items.truncate(start);
    }

    fn merge(&mut self, items: &mut Vec<Piece>) {
        let later = items.pop();
        if let (Some(Piece::Loop(_, runs)), Some(Piece::Loop(_, later))) = (items.last_mut(), later)
        {
            later.into_iter().for_each(|item| add(runs, item));
        }
    }

    /// Number of runs, and the length of the last.
    type Mark = (usize, u64);

    fn mark(&self, looped: &Piece, _: usize) -> Self::Mark {
        match looped {
            Piece::Node(_) => (0, 0),
            Piece::Loop(_, runs) => (runs.len(), runs.last().map_or(0, |last| last.times)),
        }
    }

    fn again(&mut self, looped: &mut Piece, _: usize, (length, last): &Self::Mark, times: u64) {
        let Piece::Loop(_, runs) = looped else { return };
        let mut since: Vec<Item> = runs[length.saturating_sub(1)..].to_vec();
        if let Some(first) = since.first_mut() {
            first.times -= last;
        }
        since.retain(|item| item.times > 0);
        if let [item] = since.as_slice() {
            let more = item.times * times;
            add(
                runs,
                Item {
                    times: more,
                    ..*item
                },
            );
            return;
        }
        for _ in 0..times {
            since.iter().for_each(|item| add(runs, *item));
        }
    }
}
