//! ParLOT's LZ+ZE (the paper's section on incremental compression), made implementable.
//!
//! Words are 16 bits: symbols up to 65,535. The LZ stage looks up the place where the last words
//! stood before and counts how far the new words repeat what followed there; its output, a sequence
//! of words again, goes through zero elimination ([`super::zero`]).
//!
//! ```text
//!  output = item*      item = [length] literal
//! ```
//! A length stands where, after the words so far, the table names a place in front of which the same
//! words stand; the decoder makes the same look-up, so nothing marks it. It may be 0. At most 65,535
//! words repeat at once; a literal follows every length, except where the stream ends.
//!
//! The paper says that the place is looked up by the current value, which a decoder does not have
//! before it is written. The readings that can be decoded differ in their [`Key`]:
//!
//! | kind | table slot | words compared | place in an empty table |
//! |---|---|---|---|
//! | [`LastFour`] (v1) | hash of the last four words | 4 | none |
//! | [`LastOne`] (v0) | the last word | 4 | none |
//! | [`Original`] | last three words, each shifted 4 bits further, XOR | 3 | the beginning |
//!
//! The table is updated at every word, repeated or not. The original tool's source is not ours; its
//! variant is what its real files show (they re-encode to the same bytes).

use super::history::History;
use super::{DecodeError, Decoder, Encoder, Sink, Source, Tail, zero};
use core::marker::PhantomData;

/// How the table of places is addressed and checked.
pub trait Key {
    /// Slot, of which the low 12 bits count, for the last four words (the newest in the low 16 bits).
    fn slot(last: u64) -> usize;
    /// Which bits of the last four words must be equal at both places.
    const COMPARED: u64 = u64::MAX;
    /// Whether the zeros of an empty table are places too, and places that left the ring are not
    /// told apart.
    const ORIGINAL: bool = false;
}

/// v1: the key is a hash of the last four words.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastFour;
/// v0: the key is the last word.
#[derive(Debug, Clone, Copy, Default)]
pub struct LastOne;
/// The original tool's.
#[derive(Debug, Clone, Copy, Default)]
pub struct Original;

impl Key for LastFour {
    #[inline]
    fn slot(last: u64) -> usize {
        (last.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize
    }
}

impl Key for LastOne {
    #[inline]
    fn slot(last: u64) -> usize {
        last as usize
    }
}

impl Key for Original {
    #[inline]
    fn slot(last: u64) -> usize {
        (last ^ (last >> 16 << 4) ^ (last >> 32 << 8)) as usize
    }
    const COMPARED: u64 = u64::MAX >> 16;
    const ORIGINAL: bool = true;
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// A look-up. An encoder looks up at once; in it only the very beginning is in this phase.
    #[default]
    LookUp,
    /// A literal.
    Literal,
    /// Words that repeat what stands at `from`.
    Repeat,
}

/// The encoder's memory, about 148 kB; all zeros is the valid initial state.
#[derive(Debug, Clone, Default)]
pub struct EncoderState {
    history: History,
    phase: u32,
    from: u32,
    length: u32,
    writer: zero::Writer,
}

/// [`EncoderState::phase`], as numbers because any zeroed memory must be valid.
mod phase {
    pub const BEGINNING: u32 = 0;
    pub const LITERAL: u32 = 1;
    pub const REPEAT: u32 = 2;
}

impl EncoderState {
    /// [`Encoder::push`] under the key `K`, which must be the same at every call.
    #[inline]
    pub fn push<K: Key>(&mut self, symbol: u32, sink: &mut impl Sink) -> bool {
        let Ok(word) = u16::try_from(symbol) else {
            return false;
        };
        if self.phase == phase::BEGINNING {
            self.look_up::<K>();
        }
        if self.phase == phase::REPEAT {
            if self.history.at(self.from) == word && self.length < u32::from(u16::MAX) {
                self.length += 1;
                self.from = self.from.wrapping_add(1);
                self.history.append(word);
                self.history.mark::<K>();
                return true;
            }
            self.writer.put(self.length as u16, sink);
        }
        self.writer.put(word, sink);
        self.history.append(word);
        self.look_up::<K>();
        true
    }

    fn look_up<K: Key>(&mut self) {
        self.phase = phase::LITERAL;
        if let Some(place) = self.history.find::<K>() {
            self.phase = phase::REPEAT;
            self.from = place;
            self.length = 0;
        }
    }

    /// [`Encoder::tail`].
    #[must_use]
    pub fn tail(&self) -> Tail {
        let mut tail = Tail::EMPTY;
        let mut writer = self.writer;
        if self.phase == phase::REPEAT {
            writer.put(self.length as u16, &mut tail);
        }
        if self.phase != phase::BEGINNING {
            writer.end(&mut tail);
        }
        tail
    }
}

/// The encoder under the key `K`.
#[derive(Debug, Clone, Default)]
pub struct Seed<K> {
    state: EncoderState,
    key: PhantomData<K>,
}

impl<K: Key> Encoder for Seed<K> {
    fn push(&mut self, symbol: u32, sink: &mut impl Sink) -> bool {
        self.state.push::<K>(symbol, sink)
    }

    fn tail(&self) -> Tail {
        self.state.tail()
    }
}

/// The decoder's memory, about 148 kB.
#[derive(Debug, Clone, Default)]
pub struct DecoderState {
    history: History,
    phase: Phase,
    from: u32,
    length: u16,
    reader: zero::Reader,
}

impl DecoderState {
    /// [`Decoder::next`] under the key `K`, which must be the same at every call.
    ///
    /// # Errors
    /// See [`DecodeError`].
    #[inline]
    pub fn next<K: Key>(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        if self.phase == Phase::LookUp {
            self.phase = Phase::Literal;
            if let Some(place) = self.history.find::<K>() {
                // A length is due: only before the very first symbol may the stream end instead.
                match self.reader.next(source)? {
                    Some(length) => self.length = length,
                    None if self.history.is_empty() => return Ok(None),
                    None => return Err(DecodeError::CutOff),
                }
                self.from = place;
                self.phase = Phase::Repeat;
            }
        }
        if self.phase == Phase::Repeat {
            if self.length > 0 {
                self.length -= 1;
                let word = self.history.at(self.from);
                self.from = self.from.wrapping_add(1);
                self.history.append(word);
                self.history.mark::<K>();
                return Ok(Some(u32::from(word)));
            }
            self.phase = Phase::Literal;
        }
        match self.reader.next(source)? {
            Some(word) => {
                self.history.append(word);
                self.phase = Phase::LookUp;
                Ok(Some(u32::from(word)))
            }
            None => Ok(None),
        }
    }
}

/// The decoder under the key `K`.
#[derive(Debug, Clone, Default)]
pub struct Unseed<K> {
    state: DecoderState,
    key: PhantomData<K>,
}

impl<K: Key> Decoder for Unseed<K> {
    fn next(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        self.state.next::<K>(source)
    }
}
