//! Attributes of a trace: its entries or pairs of entries, perhaps with their frequency (thesis
//! table 3.5; `attr` or `attr:freq`).
//!
//! The count of a function is how often it stands there as a plain entry, that of a loop the sum of its
//! trip counts, that of a pair how often it stands there. The papers leave this open.

use crate::sequence::{Folding, Objects, Trees};
use crate::{Attributes, Frequency, Options};
use lockstep_calltree::Token;
use lockstep_concepts::{BitMatrix, Context, and_count};
use lockstep_loops::{BodyId, Element, Names};
use rustc_hash::FxHashMap;

/// An entry, whether its call is open or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Function(u32),
    Loop(BodyId),
}

impl Entry {
    pub(crate) fn of(element: &Element) -> Self {
        match element {
            Element::Symbol(symbol) => Self::Function(plain(*symbol)),
            Element::Loop(looped) => Self::Loop(looped.body()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Attribute {
    entry: Entry,
    next: Option<Entry>,
    frequency: Option<u64>,
}

/// What attributes are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) attributes: Attributes,
    pub(crate) frequency: Frequency,
}

impl Kind {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            attributes: options.attributes,
            frequency: options.frequency,
        }
    }
}

fn attributes(sequence: &[Element], kind: Kind) -> Vec<Attribute> {
    let trips = |element: &Element| match element {
        Element::Symbol(_) => 1,
        Element::Loop(looped) => looped.count(),
    };
    let mut order = Vec::new();
    let mut counts: FxHashMap<(Entry, Option<Entry>), u64> = FxHashMap::default();
    let mut count = |key, by: u64| {
        let count = counts.entry(key).or_insert_with(|| {
            order.push(key);
            0
        });
        *count = count.saturating_add(by);
    };
    match kind.attributes {
        Attributes::Single => {
            for element in sequence {
                count((Entry::of(element), None), trips(element));
            }
        }
        Attributes::Double => {
            for pair in sequence.windows(2) {
                count((Entry::of(&pair[0]), Some(Entry::of(&pair[1]))), 1);
            }
        }
    }
    order
        .into_iter()
        .map(|key| Attribute {
            entry: key.0,
            next: key.1,
            frequency: match kind.frequency {
                Frequency::Actual => Some(counts[&key]),
                Frequency::Log10 => Some(u64::from(counts[&key].ilog10())),
                Frequency::None => None,
            },
        })
        .collect()
}

/// The symbol of a call, open or not.
fn plain(symbol: u32) -> u32 {
    Token::from_symbol(symbol)
        .function()
        .map_or(symbol, |function| Token::Call(function).symbol())
}

/// The attributes of each sequence of a folding: one row a sequence.
pub(crate) struct Table {
    attributes: Vec<Attribute>,
    pub(crate) rows: BitMatrix,
}

impl Table {
    pub(crate) fn new(folding: &Folding, kind: Kind) -> Self {
        let mut numbers: FxHashMap<Attribute, usize> = FxHashMap::default();
        let mut all = Vec::new();
        let sets: Vec<Vec<usize>> = folding
            .sequences
            .iter()
            .map(|sequence| {
                let number = |attribute| {
                    *numbers.entry(attribute).or_insert_with(|| {
                        all.push(attribute);
                        all.len() - 1
                    })
                };
                attributes(sequence, kind).into_iter().map(number).collect()
            })
            .collect();
        let mut rows = BitMatrix::new(sets.len(), all.len());
        for (row, set) in sets.iter().enumerate() {
            for attribute in set {
                rows.set(row, *attribute);
            }
        }
        Self {
            attributes: all,
            rows,
        }
    }

    /// Likeness (Jaccard) of two sequences: common attributes over all, 0..1; 1 where neither has any.
    pub(crate) fn jaccard(&self, a: usize, b: usize) -> f64 {
        let (a, b) = (self.rows.row(a), self.rows.row(b));
        let both = and_count(a, b);
        let either = and_count(a, a) + and_count(b, b) - both;
        if either == 0 {
            1.0
        } else {
            both as f64 / either as f64
        }
    }

    /// The formal context of some objects, with names for people.
    pub(crate) fn context(&self, objects: &Objects, folding: &Folding, trees: &Trees) -> Context {
        let mut names = Names::new();
        for index in &objects.sequences {
            names.scan(&folding.sequences[*index], &folding.bodies);
        }
        let entry = |entry: Entry| match entry {
            Entry::Function(symbol) => trees.name(symbol).to_owned(),
            Entry::Loop(body) => names.label(body),
        };
        let attributes = self
            .attributes
            .iter()
            .map(|attribute| {
                let mut text = entry(attribute.entry);
                if let Some(next) = attribute.next {
                    text.push_str(" → ");
                    text.push_str(&entry(next));
                }
                if let Some(frequency) = attribute.frequency {
                    text.push_str(&format!(":{frequency}"));
                }
                text
            })
            .collect();
        Context::new(
            objects.names.iter().map(ToString::to_string).collect(),
            attributes,
            self.rows.permuted(&objects.sequences),
        )
    }
}
