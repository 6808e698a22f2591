//! Numbers for things, in the order of their first occurrence.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// Different items, each with its number.
#[derive(Debug, Clone)]
pub(crate) struct Numbered<K> {
    numbers: FxHashMap<K, usize>,
    /// The items, by their numbers.
    pub(crate) items: Vec<K>,
}

impl<K> Default for Numbered<K> {
    fn default() -> Self {
        Self {
            numbers: FxHashMap::default(),
            items: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Numbered<K> {
    /// The number of an item, from 0.
    pub(crate) fn number(&mut self, item: K) -> usize {
        if let Some(number) = self.numbers.get(&item) {
            return *number;
        }
        self.numbers.insert(item.clone(), self.items.len());
        self.items.push(item);
        self.items.len() - 1
    }
}
