//! The codec of this process, as one type that fits into zeroed memory.

use lockstep_format::codec::none::Plain;
use lockstep_format::codec::{Encoder, Kind, Sink, Tail};

/// Bytes that a thread's encoder may take.
pub const ENCODER_ROOM: usize = 4096;

/// A thread's encoder at work.
pub enum Encoding<'a> {
    Plain(&'a mut Plain),
}

impl<'a> Encoding<'a> {
    /// The encoder of `kind` whose state lies in `room`; zeros are its beginning.
    pub fn new(kind: Kind, room: &'a mut [u8; ENCODER_ROOM]) -> Self {
        let _ = kind;
        let at = room.as_mut_ptr();
        // SAFETY: the room is page-aligned, large enough (asserted below), used for one codec only,
        // and zeros are a valid encoder (`lockstep_format::codec`).
        unsafe { Self::Plain(&mut *at.cast()) }
    }

    /// Encodes one symbol; false where the codec cannot express it.
    pub fn push(&mut self, symbol: u32, sink: &mut impl Sink) -> bool {
        match self {
            Self::Plain(encoder) => encoder.push(symbol, sink),
        }
    }

    /// The bytes that would end the stream here.
    pub fn tail(&self) -> Tail {
        match self {
            Self::Plain(encoder) => encoder.tail(),
        }
    }
}

const _: () = assert!(size_of::<Plain>() <= ENCODER_ROOM);
