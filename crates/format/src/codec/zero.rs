//! Zero elimination (the "ZE" of LZ+ZE): eight bytes at a time, four little-endian words, become one
//! byte that tells which of them are not zero, followed by those. One last byte tells how many words
//! of the last group count; the others are padding.
//!
//! ```text
//!  words    1 0 2 0          8                        of the last group, 1 word counts
//!  bytes    01 00 00 00 02 00 00 00   08 (00 ...)     │
//!  written  11 01 02                  01 08           01
//! ```

use super::{DecodeError, Sink, Source};

/// Words in a group.
const WORDS: u32 = 4;

/// A group that is being filled.
#[derive(Debug, Clone, Copy, Default)]
pub struct Writer {
    group: u64,
    words: u32,
}

impl Writer {
    /// Appends a word; writes the group when it is full.
    #[inline]
    pub fn put(&mut self, word: u16, sink: &mut impl Sink) {
        self.group |= u64::from(word) << (16 * self.words);
        self.words += 1;
        if self.words == WORDS {
            self.write(sink);
            *self = Self::default();
        }
    }

    /// What ends a stream to which at least one word was put: the open group and the last byte.
    pub fn end(&self, sink: &mut impl Sink) {
        if self.words > 0 {
            self.write(sink);
            sink.put(self.words as u8);
        } else {
            sink.put(WORDS as u8);
        }
    }

    fn write(&self, sink: &mut impl Sink) {
        let bytes = self.group.to_le_bytes();
        let mut present = 0u8;
        for (bit, byte) in bytes.iter().enumerate() {
            present |= u8::from(*byte != 0) << bit;
        }
        sink.put(present);
        for byte in bytes {
            if byte != 0 {
                sink.put(byte);
            }
        }
    }
}

/// Gives the words back. Its initial state is all zeros.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    group: u64,
    left: u32,
}

impl Reader {
    /// The next word; `None` behind the last.
    ///
    /// # Errors
    /// Where the bytes end within a group or without the last byte, or the last byte is none.
    pub fn next(&mut self, source: &mut impl Source) -> Result<Option<u16>, DecodeError> {
        if self.left == 0 {
            if source.left() == 0 {
                return Ok(None);
            }
            self.read(source)?;
        }
        let word = self.group as u16;
        self.group >>= 16;
        self.left -= 1;
        Ok(Some(word))
    }

    fn read(&mut self, source: &mut impl Source) -> Result<(), DecodeError> {
        let mut take = || source.take().ok_or(DecodeError::CutOff);
        let present = take()?;
        let mut bytes = [0; 8];
        for (bit, byte) in bytes.iter_mut().enumerate() {
            if present >> bit & 1 == 1 {
                *byte = take()?;
            }
        }
        let words = match source.left() {
            0 => return Err(DecodeError::CutOff),
            1 => match source.take() {
                Some(words @ 1..=4) => u32::from(words),
                other => return Err(DecodeError::LastByte(other.unwrap_or(0))),
            },
            _ => WORDS,
        };
        self.group = u64::from_le_bytes(bytes);
        self.left = words;
        Ok(())
    }
}
