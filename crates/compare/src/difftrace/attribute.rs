//! Attributes of a trace: its entries or pairs of entries, perhaps with their frequency (thesis
//! table 3.5; `attr` or `attr:freq`), or those of a family beyond the papers ([`families`]), and what somebody knows of it
//! beside ([`crate::Options::own`]).
//!
//! The count of a function is how often it stands there as a plain entry, that of a loop the sum of its
//! trip counts, that of a pair how often it stands there. The papers leave this open.

use super::sequence::{Folding, Item, Lens, Objects};
use super::trees::Trees;
use crate::numbered::Numbered;
use crate::{Attributes, Error, Frequency, Options};
use lockstep_calltree::FunctionKey;
use lockstep_concepts::{BitMatrix, Context, and_count};
use lockstep_loops::{Element, Names};
use rustc_hash::FxHashMap;
use std::hash::Hash;

mod families;
pub(crate) mod what;

use what::{Entry, What};

#[derive(Debug)]
struct Attribute {
    what: What,
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

/// Each entry or pair of a sequence, in order of first occurrence, and how often.
fn entries(sequence: &[Element], attributes: Attributes) -> Vec<(What, u64)> {
    match attributes {
        Attributes::Double => {
            let pairs = sequence.windows(2);
            let pairs = pairs.map(|it| ((Entry::of(&it[0]), Entry::of(&it[1])), 1));
            let found = counted(pairs).into_iter();
            found
                .map(|((one, next), count)| (What::Pair(one, next), count))
                .collect()
        }
        _ => {
            let trips = |element: &Element| match element {
                Element::Symbol(_) => 1,
                Element::Loop(looped) => looped.count(),
            };
            let all = sequence.iter();
            let found = counted(all.map(|it| (Entry::of(it), trips(it)))).into_iter();
            found
                .map(|(entry, count)| (What::Entry(entry), count))
                .collect()
        }
    }
}

/// The sum of each, in order of first occurrence.
fn counted<T: Copy + Eq + Hash>(all: impl Iterator<Item = (T, u64)>) -> Vec<(T, u64)> {
    let mut items = Numbered::default();
    let mut sums: Vec<u64> = Vec::new();
    for (one, by) in all {
        let place = items.number(one);
        sums.resize(items.items.len(), 0);
        sums[place] = sums[place].saturating_add(by);
    }
    items.items.into_iter().zip(sums).collect()
}

/// The attributes of objects: a row for each distinct item.
pub(crate) struct Table {
    attributes: Vec<Attribute>,
    pub(crate) rows: BitMatrix,
    /// How many attributes each row has.
    sizes: Vec<usize>,
}

/// What the attributes of objects are about, whatever of their frequency they carry.
pub(crate) struct Subjects {
    whats: Vec<What>,
    /// For each distinct item what it has, and how often; of what somebody says of it, no number.
    sets: Vec<Vec<(usize, Option<u64>)>>,
    /// For each object its item.
    rows: Vec<usize>,
}

impl Subjects {
    /// Those of some objects.
    ///
    /// # Errors
    /// A family that cannot be had of these objects.
    pub(crate) fn new(
        trees: &Trees,
        lens: &Lens,
        folding: &Folding,
        attributes: Attributes,
        items: &[Item],
    ) -> Result<Self, Error> {
        let of_tree = !Attributes::PAPERS.contains(&attributes);
        if of_tree && trees.is_split() {
            return Err(Error::Value {
                option: "--attributes",
                expected: "single or double of the pieces of traces (--split-at)".to_owned(),
                found: attributes.to_string(),
            });
        }
        let projection = of_tree.then(|| trees.projection(Some(lens), &[]));
        let mut whats = Numbered::default();
        let mut sets = Vec::new();
        let mut known: FxHashMap<(usize, Option<usize>), usize> = FxHashMap::default();
        let mut rows = Vec::with_capacity(items.len());
        for item in items {
            let behaviour = match of_tree {
                true => item.root.0 as usize,
                false => item.sequence,
            };
            let key = (behaviour, item.own);
            if let Some(row) = known.get(&key) {
                rows.push(*row);
                continue;
            }
            let found = match &projection {
                Some(kept) => families::of_tree(&trees.forest, item.root, kept, attributes)?,
                None => entries(&folding.sequences[item.sequence], attributes),
            };
            let found = (found.into_iter()).map(|(what, count)| (what, Some(count)));
            let own = item.own.map_or(&[][..], |own| &trees.own[own]);
            let own = own.iter().map(|text| (What::Own(text.clone()), None));
            let number = |(what, count): (What, Option<u64>)| (whats.number(what), count);
            sets.push(found.chain(own).map(number).collect());
            known.insert(key, sets.len() - 1);
            rows.push(sets.len() - 1);
        }
        let whats = whats.items;
        Ok(Self { whats, sets, rows })
    }

    /// The table of the objects, and for each of them its row.
    pub(crate) fn table(&self, frequency: Frequency) -> (Table, Vec<usize>) {
        let carried = |count: u64| match frequency {
            Frequency::Actual => Some(count),
            Frequency::Log10 => Some(u64::from(count.max(1).ilog10())),
            Frequency::None => None,
        };
        let mut all: Numbered<(usize, Option<u64>)> = Numbered::default();
        let mut number =
            |(what, count): &(usize, Option<u64>)| all.number((*what, count.and_then(carried)));
        let sets: Vec<Vec<usize>> = (self.sets.iter())
            .map(|set| set.iter().map(&mut number).collect())
            .collect();
        let all = all.items;
        let mut rows = BitMatrix::new(sets.len(), all.len());
        for (row, set) in sets.iter().enumerate() {
            for attribute in set {
                rows.set(row, *attribute);
            }
        }
        let attribute = |(what, frequency): (usize, Option<u64>)| Attribute {
            what: self.whats[what].clone(),
            frequency,
        };
        let table = Table {
            attributes: all.into_iter().map(attribute).collect(),
            rows,
            sizes: sets.iter().map(Vec::len).collect(),
        };
        (table, self.rows.clone())
    }
}

impl Table {
    /// Of rows whose attributes have no meaning.
    #[cfg(test)]
    pub(crate) fn of_rows(rows: BitMatrix) -> Self {
        let size = |row| and_count(rows.row(row), rows.row(row));
        Self {
            attributes: Vec::new(),
            sizes: (0..rows.rows()).map(size).collect(),
            rows,
        }
    }

    /// Likeness (Jaccard) of two rows: common attributes over all, 0..1; 1 where neither has any.
    pub(crate) fn jaccard(&self, a: usize, b: usize) -> f64 {
        let both = and_count(self.rows.row(a), self.rows.row(b));
        let either = self.sizes[a] + self.sizes[b] - both;
        if either == 0 {
            1.0
        } else {
            both as f64 / either as f64
        }
    }

    /// The formal context of some objects, with names for people.
    pub(crate) fn context(
        &self,
        objects: &Objects,
        rows: &[usize],
        folding: &Folding,
        trees: &Trees,
    ) -> Context {
        let mut names = Names::new();
        for item in &objects.items {
            names.scan(&folding.sequences[item.sequence], &folding.bodies);
        }
        let entry = |entry: Entry| match entry {
            Entry::Function(symbol) => trees.name(symbol).to_owned(),
            Entry::Loop(body) => names.label(body),
        };
        let function = |key: FunctionKey| trees.forest.function(key).name.clone();
        let attributes = self
            .attributes
            .iter()
            .map(|attribute| {
                let mut text = match &attribute.what {
                    What::Entry(one) => entry(*one),
                    What::Pair(one, next) => format!("{} → {}", entry(*one), entry(*next)),
                    What::Call(None, callee) => function(*callee),
                    What::Call(Some(caller), callee) => {
                        format!("{} calls {}", function(*caller), function(*callee))
                    }
                    What::Path(path) => {
                        let path: Vec<String> = path.iter().map(|it| function(*it)).collect();
                        path.join(" > ")
                    }
                    What::Holding(held, callee) if held.is_empty() => function(*callee),
                    What::Holding(held, callee) => format!("{} in {held}", function(*callee)),
                    What::Own(text) => text.clone(),
                };
                if let Some(frequency) = attribute.frequency {
                    text.push_str(&format!(":{frequency}"));
                }
                text
            })
            .collect();
        Context::new(
            objects.names.iter().map(ToString::to_string).collect(),
            attributes,
            self.rows.permuted(rows),
        )
    }
}
