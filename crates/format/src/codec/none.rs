//! No compression: every symbol as 4 bytes, little endian.

use super::{Encoder, Sink, Tail};

/// The encoder; it holds nothing back.
#[derive(Debug, Default)]
pub struct Plain;

impl Encoder for Plain {
    fn push(&mut self, symbol: u32, sink: &mut impl Sink) -> bool {
        for byte in symbol.to_le_bytes() {
            sink.put(byte);
        }
        true
    }

    fn tail(&self) -> Tail {
        Tail::EMPTY
    }
}
