//! Protocol Buffers' wire format, as far as Perfetto's messages need it.

use lockstep_format::codec::Sink;
use lockstep_format::side::put_varint;

/// A message that is being written.
#[derive(Debug, Default)]
pub(crate) struct Message(pub Vec<u8>);

const VARINT: u64 = 0;
const FIXED: u64 = 1;
const LENGTH: u64 = 2;

impl Sink for Message {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

impl Message {
    /// An unsigned number, or an enumeration.
    pub fn number(&mut self, field: u64, value: u64) -> &mut Self {
        put_varint(self, field << 3 | VARINT);
        put_varint(self, value);
        self
    }

    /// A signed number (int64).
    pub fn signed(&mut self, field: u64, value: i64) -> &mut Self {
        self.number(field, value.cast_unsigned())
    }

    /// An unsigned number of eight bytes (fixed64).
    pub fn fixed(&mut self, field: u64, value: u64) -> &mut Self {
        put_varint(self, field << 3 | FIXED);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Bytes.
    fn bytes(&mut self, field: u64, value: &[u8]) -> &mut Self {
        put_varint(self, field << 3 | LENGTH);
        put_varint(self, value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// Text.
    pub fn text(&mut self, field: u64, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// A message within.
    pub fn message(&mut self, field: u64, value: &Message) -> &mut Self {
        self.bytes(field, &value.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_its_documentation() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, Message::default().number(1, 150));
        assert_eq!(outer.0, b"\x1a\x03\x08\x96\x01");
    }
}
