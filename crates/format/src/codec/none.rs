//! No compression: every symbol as 4 bytes, little endian.

use super::{DecodeError, Decoder, Encoder, Sink, Source, Tail};

/// Both directions; it holds nothing back.
#[derive(Debug, Clone, Default)]
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

impl Decoder for Plain {
    fn next(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        if source.left() == 0 {
            return Ok(None);
        }
        let mut bytes = [0; 4];
        for byte in &mut bytes {
            *byte = source.take().ok_or(DecodeError::CutOff)?;
        }
        Ok(Some(u32::from_le_bytes(bytes)))
    }
}
