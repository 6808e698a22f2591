//! Rows and maps in memory that grows.

use super::bits::spread;
use crate::codec::memory::Memory;

/// A row of words.
#[derive(Debug, Clone, Default)]
pub struct Row<M> {
    words: M,
    length: usize,
}

impl<M: Memory> Row<M> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The word at `index`, 0 where there is none.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        if index < self.length {
            self.words.present().get(index).copied().unwrap_or(0)
        } else {
            0
        }
    }

    /// All of them.
    pub fn words(&self) -> &[u32] {
        self.words.present().get(..self.length).unwrap_or(&[])
    }

    /// Adds a word.
    #[inline]
    pub fn push(&mut self, word: u32) {
        let index = self.length;
        self.length += 1;
        if let Some(place) = self.words.words(index + 1).get_mut(index) {
            *place = word;
        }
    }

    /// Changes a word.
    pub fn set(&mut self, index: usize, word: u32) {
        if let Some(place) = self.words.words(self.length).get_mut(index) {
            *place = word;
        }
    }

    /// Drops what is behind `length`.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

/// A map from two words to one; what is in it stays.
#[derive(Debug, Clone, Default)]
pub struct Map<M> {
    /// Four words an entry: the key, the value, and 1 + the next entry of the bucket.
    entries: Row<M>,
    /// 1 + the first entry.
    buckets: M,
    bits: u32,
}

impl<M: Memory> Map<M> {
    fn place(&self, a: u32, b: u32) -> usize {
        (spread(a, b) >> (32 - self.bits)) as usize
    }

    fn find(&self, a: u32, b: u32) -> Option<usize> {
        if self.bits == 0 {
            return None;
        }
        let mut next = self.buckets.present().get(self.place(a, b)).copied()?;
        while let Some(entry) = next.checked_sub(1) {
            let at = 4 * entry as usize;
            if (self.entries.get(at), self.entries.get(at + 1)) == (a, b) {
                return Some(at);
            }
            next = self.entries.get(at + 3);
        }
        None
    }

    /// The value of a key.
    pub fn get(&self, a: u32, b: u32) -> Option<u32> {
        self.find(a, b).map(|at| self.entries.get(at + 2))
    }

    /// Sets the value of a key.
    pub fn set(&mut self, a: u32, b: u32, value: u32) {
        if let Some(at) = self.find(a, b) {
            self.entries.set(at + 2, value);
            return;
        }
        for word in [a, b, value, 0] {
            self.entries.push(word);
        }
        let count = self.entries.len() / 4;
        if self.bits == 0 || count > 1 << self.bits {
            self.bits = (self.bits + 1).max(8);
            self.buckets.words(1 << self.bits).fill(0);
            for entry in 0..count {
                self.link(entry);
            }
        } else {
            self.link(count - 1);
        }
    }

    fn link(&mut self, entry: usize) {
        let at = 4 * entry;
        let place = self.place(self.entries.get(at), self.entries.get(at + 1));
        if let Some(first) = self.buckets.words(1 << self.bits).get_mut(place) {
            let next = core::mem::replace(first, entry as u32 + 1);
            self.entries.set(at + 3, next);
        }
    }
}
