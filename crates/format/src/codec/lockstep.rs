//! The codec `lockstep`: what [`super::model`] predicts costs nothing but a count.
//!
//! ```text
//!  output  = item*
//!  item    = literal                       where nothing is predicted
//!          | code [run] [literal]          where something is: a run of symbols as predicted, and one that is not
//!  code    = one byte: 4 x min(run, 63) + kind
//!  run     = run - 63, where it is 63 or more
//! ```
//!
//! | kind | the symbol behind the run |
//! |---|---|
//! | 0 | a literal follows, or the end of the stream |
//! | 1 | what the second best place predicts; only where the run is 0 and there is such a place |
//! | 2 | what came last behind the symbol before it, where the prediction failed |
//! | 3 | 0, a return |
//!
//! Numbers are LEB128. The encoder takes the first of 1, 2, 3, 0 that holds.
//!
//! *Costs*: about 0.3 ns a symbol in a predicted run, 20 to 50 ns a symbol that is not predicted (cache
//! misses in the table, mispredicted branches; on a busy machine on which `seed` took 5 to 15 ns for any
//! symbol). Memory grows with the stream up to the model's [`Size`]. *Not for*: the smallest file. No bit
//! is coded by its probability: that would cost every symbol something.

use super::memory::Memory;
use super::model::{MOST_STAGED, Model, Size};
use super::{DecodeError, Sink, Source, Tail};
use crate::symbol::RETURN;

/// Longest run in the code byte itself, plus one.
const LONG_RUN: u64 = 63;

/// What a code byte says of the symbol behind the run.
mod kind {
    pub const LITERAL: u8 = 0;
    pub const OTHER: u8 = 1;
    pub const FOLLOWER: u8 = 2;
    pub const RETURN: u8 = 3;
}

/// The encoder in memory that is zero at first.
#[derive(Debug, Clone)]
pub struct EncoderState<T, H> {
    model: Model<T, H>,
}

impl<T: Default, H: Default> Default for EncoderState<T, H> {
    fn default() -> Self {
        Self {
            model: Model::default(),
        }
    }
}

impl<T: Memory, H: Memory> EncoderState<T, H> {
    /// Encodes symbols. It does not matter how a stream is cut into batches.
    #[inline]
    pub fn push_batch<S: Size>(&mut self, symbols: &[u32], sink: &mut impl Sink) -> usize {
        for part in symbols.chunks(MOST_STAGED) {
            self.push_part::<S>(part, sink);
        }
        symbols.len()
    }

    fn push_part<S: Size>(&mut self, part: &[u32], sink: &mut impl Sink) {
        self.model.stage::<S>(part);
        let mut rest = part;
        loop {
            let equal = self.model.follow::<S>(rest);
            rest = rest.get(equal..).unwrap_or(&[]);
            let Some((symbol, behind)) = rest.split_first() else {
                return;
            };
            self.write::<S>(*symbol, sink);
            self.model.miss::<S>(rest, true);
            rest = behind;
        }
    }

    /// Writes a symbol that was not as predicted.
    #[inline]
    fn write<S: Size>(&mut self, symbol: u32, sink: &mut impl Sink) {
        if !self.model.is_aimed() {
            put_number(u64::from(symbol), sink);
            return;
        }
        self.model.settle::<S>();
        let kind = if self.model.other::<S>() == Some(symbol) {
            kind::OTHER
        } else if self.model.follower::<S>() == symbol {
            kind::FOLLOWER
        } else if symbol == RETURN {
            kind::RETURN
        } else {
            kind::LITERAL
        };
        put_code(self.model.run(), kind, sink);
        if kind == kind::LITERAL {
            put_number(u64::from(symbol), sink);
        }
    }

    /// [`super::Encoder::tail`].
    #[must_use]
    pub fn tail(&self) -> Tail {
        let mut tail = Tail::EMPTY;
        if self.model.is_aimed() && self.model.run() > 0 {
            put_code(self.model.run(), kind::LITERAL, &mut tail);
        }
        tail
    }
}

#[inline]
fn put_code(run: u64, kind: u8, sink: &mut impl Sink) {
    sink.put((run.min(LONG_RUN) as u8) << 2 | kind);
    if run >= LONG_RUN {
        put_number(run - LONG_RUN, sink);
    }
}

#[inline]
fn put_number(mut number: u64, sink: &mut impl Sink) {
    while number >= 0x80 {
        sink.put(number as u8 | 0x80);
        number >>= 7;
    }
    sink.put(number as u8);
}

/// The number that `source` goes on with, at most `most`.
fn take_number(source: &mut impl Source, most: u64) -> Result<u64, DecodeError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = source.take().ok_or(DecodeError::CutOff)?;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << shift;
        if shifted >> shift != bits {
            return Err(DecodeError::TooLarge);
        }
        number |= shifted;
        if byte < 0x80 {
            return if number <= most {
                Ok(number)
            } else {
                Err(DecodeError::TooLarge)
            };
        }
    }
    Err(DecodeError::TooLarge)
}

/// The decoder. Its memory grows with what was decoded.
#[derive(Debug, Clone)]
pub struct DecoderState<T, H> {
    model: Model<T, H>,
    /// Whether a code was read that is not used up.
    inside: bool,
    /// Predicted symbols still to come of that code.
    left: u64,
    kind: u8,
}

impl<T: Default, H: Default> Default for DecoderState<T, H> {
    fn default() -> Self {
        Self {
            model: Model::default(),
            inside: false,
            left: 0,
            kind: 0,
        }
    }
}

impl<T: Memory, H: Memory> DecoderState<T, H> {
    /// [`super::Decoder::fill`].
    pub fn fill<S: Size>(
        &mut self,
        source: &mut impl Source,
        into: &mut [u32],
    ) -> (usize, Result<(), DecodeError>) {
        let mut done = 0;
        while let Some(room) = into.get_mut(done..)
            && !room.is_empty()
        {
            match self.some::<S>(source, room) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// At least one symbol, unless the stream ends.
    #[inline]
    fn some<S: Size>(
        &mut self,
        source: &mut impl Source,
        into: &mut [u32],
    ) -> Result<usize, DecodeError> {
        if !self.inside && self.model.is_aimed() {
            let Some(code) = source.take() else {
                return Ok(0);
            };
            self.kind = code & 3;
            self.left = u64::from(code >> 2);
            if self.left == LONG_RUN {
                self.left += take_number(source, u64::MAX - LONG_RUN)?;
            }
            self.inside = true;
        }
        if self.left > 0 {
            let most = into
                .len()
                .min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let count = self
                .model
                .hand_out::<S>(into.get_mut(..most).unwrap_or(&mut []));
            self.left -= count as u64;
            return Ok(count);
        }
        if !self.inside || self.kind == kind::LITERAL {
            if source.left() == 0 {
                return Ok(0);
            }
            let symbol = take_number(source, u64::from(u32::MAX))? as u32;
            self.model.settle::<S>();
            return Ok(self.miss::<S>(symbol, into));
        }
        self.model.settle::<S>();
        let symbol = match self.kind {
            kind::OTHER => self.model.other::<S>().ok_or(DecodeError::NoOther)?,
            kind::FOLLOWER => self.model.follower::<S>(),
            _ => RETURN,
        };
        Ok(self.miss::<S>(symbol, into))
    }

    fn miss<S: Size>(&mut self, symbol: u32, into: &mut [u32]) -> usize {
        self.inside = false;
        self.model.miss::<S>(&[symbol], false);
        into.first_mut().map_or(0, |place| {
            *place = symbol;
            1
        })
    }
}
