//! The codec of this process, as one type that fits into zeroed memory. Most of the room is never
//! touched: an encoder uses the pages of its own kind, as its stream grows.

use crate::syscall::{self, MADV_POPULATE_WRITE};
use lockstep_format::codec::{AnyEncoder, Kind, Sink, Tail};

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
        for words in self.encoder.early(self.kind) {
            make(words.as_ptr().cast(), size_of_val(words));
        }
    }

    /// The bytes that would end the stream here.
    pub fn tail(&self) -> Tail {
        self.encoder.tail(self.kind)
    }
}
