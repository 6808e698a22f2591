//! Codecs of an event stream: symbols in, bytes out, and back.
//!
//! An encoder lives on the probe's slow path: fixed size, valid when its memory is all zeros, no
//! allocation, bounded work a symbol. A codec must be decodable after any prefix of symbols: what an
//! encoder holds back is its *tail*, bytes which end the stream if they are put behind what was
//! emitted so far ([`Encoder::tail`]). Decoders are pulled, allocate nothing, do bounded work a symbol and
//! take any bytes: of a stream that is cut off they give a prefix of its symbols, and then the error.

use crate::process::state::TAIL_ROOM;

mod any;
mod chances;
mod coder;
mod history;
pub mod lockstep;
pub mod memory;
pub mod model;
pub mod none;
pub mod seed;
pub mod zero;

pub use any::{AnyDecoder, AnyEncoder};

/// The codecs, by the number that stands in a process file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// Every symbol as 4 bytes.
    None = 0,
    /// The paper's LZ+ZE with a hash of the last four values as key (v1).
    Seed = 1,
    /// The paper's LZ+ZE with the current value as key, its literal reading.
    SeedV0 = 2,
    /// The original tool's own variant, as its real files show it.
    SeedParlot = 3,
    /// Runs of predicted symbols, and where they end; 4.4 MB a thread at most: the default.
    Lockstep = 4,
    /// The same in at most 0.4 MB a thread.
    LockstepLow = 5,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Seed,
        Self::SeedV0,
        Self::SeedParlot,
        Self::Lockstep,
        Self::LockstepLow,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Seed => "seed",
            Self::SeedV0 => "seed-v0",
            Self::SeedParlot => "seed-parlot",
            Self::Lockstep => "lockstep",
            Self::LockstepLow => "lockstep-low",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of this family that takes little memory, where there is one.
    #[must_use]
    pub const fn low(self) -> Self {
        match self {
            Self::Lockstep => Self::LockstepLow,
            other => other,
        }
    }

    /// The largest symbol that it can express.
    #[must_use]
    pub const fn largest(self) -> u32 {
        match self {
            Self::Seed | Self::SeedV0 | Self::SeedParlot => 0xffff,
            Self::None | Self::Lockstep | Self::LockstepLow => u32::MAX,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// More bytes than any encoder makes of `symbols` symbols, wherever in a stream.
#[must_use]
pub const fn most_bytes(symbols: usize) -> usize {
    // Of `lockstep`: the run that the first of them ends may have begun long before, and each symbol of it be a decision;
    // behind it symbols after runs of none whose length is told. Every decision takes at most a byte.
    20 * symbols + 16 + lockstep::MOST_WALKED as usize
}

/// How many symbols an encoder can be given so that no more bytes come out.
#[must_use]
pub const fn most_symbols(bytes: usize) -> usize {
    bytes.saturating_sub(most_bytes(0)) / (most_bytes(1) - most_bytes(0))
}

/// Where an encoder puts its bytes.
pub trait Sink {
    /// Appends one byte. A sink that is full drops it and remembers that it did.
    fn put(&mut self, byte: u8);
}

/// The bytes that end a stream at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The bytes, [`Tail::length`] of them in use.
    pub bytes: [u8; TAIL_ROOM],
    /// How many are in use.
    pub length: usize,
}

impl Tail {
    /// No bytes.
    pub const EMPTY: Self = Self {
        bytes: [0; TAIL_ROOM],
        length: 0,
    };
}

impl Sink for Tail {
    fn put(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

/// One direction of a codec. `Default`-constructed and all-zero memory are the same valid state.
pub trait Encoder {
    /// Encodes one symbol. False, and nothing changed, where the codec cannot express it.
    fn push(&mut self, symbol: u32, sink: &mut impl Sink) -> bool;
    /// The bytes that would end the stream here; the encoder goes on as if not asked.
    fn tail(&self) -> Tail;
}

/// Where a decoder takes its bytes from.
pub trait Source {
    /// The next byte, or `None` at the end.
    fn take(&mut self) -> Option<u8>;
    /// How many bytes there still are.
    fn left(&self) -> u64;
}

impl Source for &[u8] {
    fn take(&mut self) -> Option<u8> {
        let (byte, rest) = self.split_first()?;
        *self = rest;
        Some(*byte)
    }

    fn left(&self) -> u64 {
        self.len() as u64
    }
}

/// Why bytes do not go on as a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// They end where more must come.
    CutOff,
    /// The last byte must tell how many words of the last group count, 1 to 4, and is this.
    LastByte(u8),
    /// A number is larger than any that is written.
    TooLarge,
    /// A run goes on where it must have ended.
    Endless,
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::CutOff => f.write_str("the stream ends in the middle of a code"),
            Self::LastByte(byte) => write!(f, "expected 1 to 4 as the last byte, found {byte}"),
            Self::TooLarge => f.write_str("a number in the stream is too large"),
            Self::Endless => f.write_str("a run goes on where it must have ended"),
        }
    }
}

/// Where symbols go round and round: those that come are the last `symbols` ones, `times` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Symbols of a round.
    pub symbols: u64,
    /// Rounds that are sure to come.
    pub times: u64,
}

/// The other direction.
pub trait Decoder {
    /// The next symbol; `None` where the stream ends.
    ///
    /// # Errors
    /// Where the bytes do not go on as a stream. What was decoded before is right; what comes after
    /// an error means nothing.
    fn next(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError>;

    /// The next symbols, as many as there is room for unless the stream or its sense ends before, and
    /// how many they are.
    fn fill(
        &mut self,
        source: &mut impl Source,
        into: &mut [u32],
    ) -> (usize, Result<(), DecodeError>) {
        for (index, place) in into.iter_mut().enumerate() {
            match self.next(source) {
                Ok(Some(symbol)) => *place = symbol,
                Ok(None) => return (index, Ok(())),
                Err(error) => return (index, Err(error)),
            }
        }
        (into.len(), Ok(()))
    }
}

#[cfg(test)]
impl Sink for std::vec::Vec<u8> {
    fn put(&mut self, byte: u8) {
        self.push(byte);
    }
}

#[cfg(test)]
mod lockstep_tests;
#[cfg(test)]
mod tests;
