//! The codec of this process, as one type that fits into zeroed memory. Most of the room is never
//! touched: an encoder uses the pages of its own kind, as its stream grows.

use crate::syscall::{self, MADV_POPULATE_WRITE};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::codec::{AnyEncoder, Kind, Sink, Tail};
use lockstep_format::symbol::SYMBOLS;

/// Bytes that a thread's encoder takes, in whole pages.
pub const ENCODER_ROOM: usize = size_of::<AnyEncoder>().next_multiple_of(4096);

/// Has pages of private memory made, in whose place an event would wait otherwise.
pub fn make(at: *const u8, length: usize) {
    const PAGE: usize = 4096;
    let start = at as usize & !(PAGE - 1);
    let end = (at as usize + length).next_multiple_of(PAGE);
    if length > 0 {
        // SAFETY: changes nothing that is mapped.
        let _ = unsafe { syscall::advise(start as *mut u8, end - start, MADV_POPULATE_WRITE) };
    }
}

/// Makes pages of zeros by writing to each. A page that is read first costs two faults: the kernel gives the shared page of zeros,
/// and at the first write takes it away from all processors and gives another. For a few pages this is less work than a system call.
pub fn touch(at: usize, length: usize) {
    const PAGE: usize = 4096;
    let mut page = at & !7;
    while page < at + length {
        // SAFETY: aligned, in memory of ours, and what stands there stays. On this processor this writes, whatever it finds.
        let word = unsafe { AtomicU64::from_ptr(page as *mut u64) };
        let _ = word.compare_exchange(0, 0, Ordering::Relaxed, Ordering::Relaxed);
        page = (page & !(PAGE - 1)) + PAGE;
    }
}

/// A thread's encoder at work.
pub struct Encoding<'a> {
    kind: Kind,
    encoder: &'a mut AnyEncoder,
}

impl<'a> Encoding<'a> {
    /// The encoder of `kind` whose state lies in `room`, which is page-aligned; zeros are its
    /// beginning.
    pub fn new(kind: Kind, room: &'a mut [u8; ENCODER_ROOM]) -> Self {
        let at = room.as_mut_ptr().cast::<AnyEncoder>();
        debug_assert!(at.is_aligned());
        // SAFETY: aligned, large enough, and all-zero memory is a valid encoder (its contract).
        let encoder = unsafe { &mut *at };
        Self { kind, encoder }
    }

    /// The largest symbol that the codec can express.
    pub fn largest(&self) -> u32 {
        self.kind.largest()
    }

    /// Encodes symbols that are not larger than that. At most `lockstep_format::codec::most_bytes`
    /// come out.
    pub fn push_batch(&mut self, symbols: &[u32], sink: &mut impl Sink) {
        self.encoder.push_batch(self.kind, symbols, sink);
    }

    /// Has the memory made that the first symbols go to.
    pub fn warm(&self) {
        for part in self.encoder.early(self.kind) {
            touch(part.start, part.len());
        }
    }

    /// The bytes that would end the stream here.
    pub fn tail(&self) -> Tail {
        self.encoder.tail(self.kind)
    }
}

/// The symbols of staging words, those that the codec cannot express left out: how many there are,
/// and how many of them are leaves. The words are our own: their checks are for readers.
pub fn symbols_of(words: &[u64], largest: u32, symbols: &mut [u32]) -> (usize, u64) {
    const SYMBOL: u32 = SYMBOLS - 1;
    let is_leaf = |word: u32| (word / SYMBOLS) & 1;
    if largest >= SYMBOL {
        // By fours, as processors take them: a third less time than one after the other.
        let (fours, rest) = words.as_chunks::<4>();
        let mut leaves = [0; 4];
        for (places, words) in symbols.as_chunks_mut::<4>().0.iter_mut().zip(fours) {
            let low = words.map(|word| word as u32);
            *places = low.map(|word| word & SYMBOL);
            for (sum, word) in leaves.iter_mut().zip(low) {
                *sum += is_leaf(word);
            }
        }
        let mut leaves: u32 = leaves.iter().sum();
        let places = symbols.get_mut(4 * fours.len()..).unwrap_or(&mut []);
        for (place, word) in places.iter_mut().zip(rest) {
            *place = *word as u32 & SYMBOL;
            leaves += is_leaf(*word as u32);
        }
        return (words.len(), u64::from(leaves));
    }
    let (mut known, mut leaves) = (0, 0);
    for word in words {
        let symbol = *word as u32 & SYMBOL;
        if symbol <= largest
            && let Some(place) = symbols.get_mut(known)
        {
            *place = symbol;
            known += 1;
            leaves += u64::from(is_leaf(*word as u32));
        }
    }
    (known, leaves)
}
