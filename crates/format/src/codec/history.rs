//! What both directions of the LZ stage remember: the last 65,536 words, and for 4,096 contexts the
//! place where each stood last.

use super::seed::Key;

const RING: usize = 1 << 16;
const SLOTS: usize = 1 << 12;
/// Farthest place that can be copied from: it and the four words before it are still in the ring.
const REACH: u32 = RING as u32 - 4;

/// All zeros at first. Only the original tool takes these zeros for words before the beginning; under
/// the other keys a place needs four real words before it (so 0 says that there is none).
///
/// A *place* is the number of words before it, modulo 2^32. Behind 2^32 words a forgotten place can
/// look like a near one; its words are compared all the same, by both directions alike.
#[derive(Debug, Clone)]
pub struct History {
    words: [u16; RING],
    places: [u32; SLOTS],
    next: u32,
    /// The last four words, the newest in the low 16 bits.
    last: u64,
}

impl Default for History {
    fn default() -> Self {
        Self {
            words: [0; RING],
            places: [0; SLOTS],
            next: 0,
            last: 0,
        }
    }
}

impl History {
    /// Whether no word came yet (or, of no consequence, exactly a multiple of 2^32).
    pub fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// The word at `place`.
    #[inline]
    pub fn at(&self, place: u32) -> u16 {
        self.words[usize::from(place as u16)]
    }

    /// Appends a word.
    #[inline]
    pub fn append(&mut self, word: u16) {
        self.words[usize::from(self.next as u16)] = word;
        self.next = self.next.wrapping_add(1);
        self.last = self.last << 16 | u64::from(word);
    }

    /// Remembers the place of the next word under the words before it.
    #[inline]
    pub fn mark<K: Key>(&mut self) {
        self.places[K::slot(self.last) & (SLOTS - 1)] = self.next;
    }

    /// Where the words before the next one stood last, if they did; marks the place too.
    #[inline]
    pub fn find<K: Key>(&mut self) -> Option<u32> {
        let slot = &mut self.places[K::slot(self.last) & (SLOTS - 1)];
        let place = core::mem::replace(slot, self.next);
        if !K::ORIGINAL && (place < 4 || self.next.wrapping_sub(place) > REACH) {
            return None;
        }
        let before = (1..=4).rev().fold(0, |words, distance| {
            words << 16 | u64::from(self.at(place.wrapping_sub(distance)))
        });
        ((before ^ self.last) & K::COMPARED == 0).then_some(place)
    }
}
