//! The arithmetic coder of [`super::lockstep`]: decisions in, bytes out, and back.

use super::{DecodeError, Sink, Source};
use crate::arithmetic::{Interval, ONE};

/// One direction. Both make the same decisions in the same order.
pub(super) trait Coder {
    /// Codes a decision that is yes with probability `p` of 2^16; gives it. A reader ignores the one that it is given.
    fn bit(&mut self, p: u32, bit: bool) -> Result<bool, DecodeError>;

    /// Codes the low `count` bits of a number of which nothing is known.
    fn plain(&mut self, count: u32, number: u64) -> Result<u64, DecodeError> {
        let mut value = 0;
        for left in (0..count).rev() {
            let bit = self.bit(ONE / 2, number >> left & 1 == 1)?;
            value = value << 1 | u64::from(bit);
        }
        Ok(value)
    }
}

/// Writes.
pub(super) struct Writer<'a, S> {
    pub interval: &'a mut Interval,
    pub sink: &'a mut S,
}

impl<S: Sink> Coder for Writer<'_, S> {
    #[inline]
    fn bit(&mut self, p: u32, bit: bool) -> Result<bool, DecodeError> {
        let middle = self.interval.middle(p);
        self.interval.narrow(middle, bit);
        while let Some(byte) = self.interval.settled() {
            self.sink.put(byte);
        }
        Ok(bit)
    }
}

impl<S: Sink> Writer<'_, S> {
    /// What makes all decisions so far certain: as many bytes as a reader is ahead.
    pub fn finish(self) {
        for byte in self.interval.low().to_be_bytes() {
            self.sink.put(byte);
        }
    }
}

/// Where a reader stands: four bytes ahead of what is certain.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    interval: Interval,
    code: u32,
    begun: bool,
    /// Bytes taken so far.
    taken: u64,
}

/// How far a reader is ahead.
const AHEAD: u64 = 4;

impl Position {
    /// The same place in a stream that has other bytes from the next that is not certain on; how many bytes are
    /// before that.
    pub fn again(self) -> (Self, u64) {
        let ahead = if self.begun { AHEAD } else { 0 };
        let taken = self.taken.saturating_sub(ahead);
        let interval = self.interval;
        let again = Self {
            interval,
            taken,
            ..Self::default()
        };
        (again, taken)
    }

    /// Whether anything was read.
    pub fn has_begun(&self) -> bool {
        self.begun
    }
}

/// Reads. Of a stream that is cut off, every decision that it gives is right.
pub(super) struct Reader<'a, S> {
    position: &'a mut Position,
    source: &'a mut S,
}

impl<'a, S: Source> Reader<'a, S> {
    pub fn new(position: &'a mut Position, source: &'a mut S) -> Result<Self, DecodeError> {
        let begun = core::mem::replace(&mut position.begun, true);
        let mut reader = Self { position, source };
        if !begun {
            for _ in 0..AHEAD {
                reader.take()?;
            }
        }
        Ok(reader)
    }

    fn take(&mut self) -> Result<(), DecodeError> {
        let byte = self.source.take().ok_or(DecodeError::CutOff)?;
        self.position.code = self.position.code << 8 | u32::from(byte);
        self.position.taken += 1;
        Ok(())
    }
}

impl<S: Source> Coder for Reader<'_, S> {
    #[inline]
    fn bit(&mut self, p: u32, _: bool) -> Result<bool, DecodeError> {
        let middle = self.position.interval.middle(p);
        let bit = self.position.code <= middle;
        self.position.interval.narrow(middle, bit);
        while self.position.interval.settled().is_some() {
            self.take()?;
        }
        Ok(bit)
    }
}
