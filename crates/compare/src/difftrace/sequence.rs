//! What a filter leaves of traces, as sequences with their loops recognised.

use super::filter::Filter;
use crate::{Error, ObjectName, Options};
use lockstep_calltree::{Forest, NodeId, Projection, Token, fold_tokens};
use lockstep_loops::{Bodies, BodyId, Element, Key, Mode, expand};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

/// What is looked at: a filter, what becomes of returns and `@plt` names, and how far loops are
/// recognised.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lens {
    pub(crate) filter: Filter,
    pub(crate) keep_returns: bool,
    pub(crate) keep_plt: bool,
    pub(crate) k: usize,
}

impl Lens {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            filter: options.filter.clone(),
            keep_returns: options.keep_returns,
            keep_plt: options.keep_plt,
            k: options.k,
        }
    }

    /// In the papers' form.
    pub(crate) fn paper(&self) -> String {
        self.filter.paper(self.keep_returns, self.keep_plt, self.k)
    }

    pub(crate) fn keeps_nothing(&self) -> Error {
        let custom = match &self.filter.custom {
            Some(pattern) => format!(" with --custom `{pattern}`"),
            None => String::new(),
        };
        Error::Nothing(format!(
            "--filter: expected a filter that keeps a function that was called, found `{}`{custom}, which keeps none",
            self.paper()
        ))
    }
}

/// Sequences with their loops folded, each distinct one once, over one table of bodies.
#[derive(Default)]
pub(crate) struct Folding {
    pub(crate) bodies: Bodies,
    pub(crate) sequences: Vec<Vec<Element>>,
    /// Those of equal hash.
    numbers: FxHashMap<u64, Vec<usize>>,
    /// Equal trees need not be looked at again.
    trees: FxHashMap<NodeId, usize>,
}

impl Folding {
    fn add(&mut self, sequence: Vec<Element>) -> usize {
        let same = self
            .numbers
            .entry(FxBuildHasher.hash_one(&sequence))
            .or_default();
        if let Some(number) = same
            .iter()
            .find(|number| self.sequences[**number] == sequence)
        {
            return *number;
        }
        same.push(self.sequences.len());
        self.sequences.push(sequence);
        self.sequences.len() - 1
    }

    /// The sequence of a tree.
    pub(crate) fn add_tree(
        &mut self,
        forest: &Forest,
        root: NodeId,
        lens: &Lens,
        kept: &Projection,
    ) -> usize {
        if let Some(number) = self.trees.get(&root) {
            return *number;
        }
        let sequence = forest.flat(
            root,
            kept,
            lens.keep_returns,
            lens.k,
            Mode::Shape,
            &mut self.bodies,
        );
        let number = self.add(sequence);
        self.trees.insert(root, number);
        number
    }

    /// The sequence of tokens.
    pub(crate) fn add_tokens(&mut self, tokens: &[u32], k: usize) -> usize {
        let tokens = tokens.iter().copied().map(Token::from_symbol);
        let sequence = fold_tokens(tokens, k, Mode::Shape, &mut self.bodies);
        self.add(sequence)
    }

    /// The open calls of a sequence, outermost first.
    pub(crate) fn open(&self, sequence: usize) -> Vec<u32> {
        let mut open = Vec::new();
        let is_open = |symbol: u32| matches!(Token::from_symbol(symbol), Token::Open(_));
        for element in &self.sequences[sequence] {
            match element {
                Element::Symbol(symbol) if is_open(*symbol) => open.push(*symbol),
                Element::Loop(looped) if self.has(looped.body(), &is_open) => {
                    expand(std::slice::from_ref(element), &self.bodies, &mut |symbol| {
                        if is_open(symbol) {
                            open.push(symbol);
                        }
                    });
                }
                _ => {}
            }
        }
        open
    }

    /// Whether a loop body contains such a token.
    fn has(&self, body: BodyId, wanted: &impl Fn(u32) -> bool) -> bool {
        self.bodies.keys(body).iter().any(|key| match key {
            Key::Symbol(symbol) => wanted(*symbol),
            Key::Loop(inner) | Key::Times(inner, _) => self.has(*inner, wanted),
        })
    }
}

/// A trace, or a piece of one, as attributes are made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) sequence: usize,
    pub(crate) root: NodeId,
    /// Which of the sets in `Trees::own`.
    pub(crate) own: Option<usize>,
}

/// One run under one lens.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) names: Vec<ObjectName>,
    /// What each is.
    pub(crate) items: Vec<Item>,
}

impl Objects {
    /// # Errors
    /// No object, or nothing in any of them.
    pub(crate) fn refuse_nothing(&self, folding: &Folding, lens: &Lens) -> Result<(), Error> {
        if self.names.is_empty() {
            return Err(Error::Nothing(
                "expected a trace to look at, found none".into(),
            ));
        }
        if self
            .items
            .iter()
            .all(|item| folding.sequences[item.sequence].is_empty())
        {
            return Err(lens.keeps_nothing());
        }
        Ok(())
    }
}
