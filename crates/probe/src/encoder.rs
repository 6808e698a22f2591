//! The codec of this process, as one type that fits into zeroed memory.

use lockstep_format::codec::{AnyEncoder, Kind, Sink, Tail};

/// Bytes that a thread's encoder takes, in whole pages.
pub const ENCODER_ROOM: usize = size_of::<AnyEncoder>().next_multiple_of(4096);

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

    /// Encodes one symbol; false where the codec cannot express it.
    pub fn push(&mut self, symbol: u32, sink: &mut impl Sink) -> bool {
        self.encoder.push(self.kind, symbol, sink)
    }

    /// The bytes that would end the stream here.
    pub fn tail(&self) -> Tail {
        self.encoder.tail(self.kind)
    }
}
