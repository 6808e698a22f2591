//! The codec of a run, chosen when it starts: one type of memory for all kinds.

use super::memory::Memory;
use super::model::{Low, Normal, Size};
use super::seed::{DecoderState, EncoderState, LastFour, LastOne, Original};
use super::{
    DecodeError, Decoder, Encoder, Kind, Round, Sink, Source, Tail, lockstep, none::Plain,
};
use core::ops::Range;

/// Words of the table of any kind.
pub const TABLE: usize = 2 * Normal::SLOTS as usize;
/// Words of the history of any kind.
pub const HISTORY: usize = Normal::WINDOW as usize;

/// An encoder of any kind, in 4.9 MB of which most are never touched. All-zero memory is its valid
/// initial state, whichever kind it serves; the kind comes with every call (the probe has one a
/// process) and must stay the same.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct AnyEncoder<T = [u32; TABLE], H = [u32; HISTORY]> {
    // Its arrays begin with pages, so that what a short stream touches lies in few of them.
    lockstep: lockstep::EncoderState<T, H>,
    seed: EncoderState,
}

impl<T: Default, H: Default> Default for AnyEncoder<T, H> {
    fn default() -> Self {
        Self {
            seed: EncoderState::default(),
            lockstep: lockstep::EncoderState::default(),
        }
    }
}

impl<T: Memory, H: Memory> AnyEncoder<T, H> {
    /// [`Encoder::push`] of this kind.
    #[inline]
    pub fn push(&mut self, kind: Kind, symbol: u32, sink: &mut impl Sink) -> bool {
        self.push_batch(kind, &[symbol], sink) == 1
    }

    /// Encodes symbols; how many, all but those that the codec cannot express. At most
    /// [`super::most_bytes`] come out, and it does not matter how a stream is cut into batches.
    pub fn push_batch(&mut self, kind: Kind, symbols: &[u32], sink: &mut impl Sink) -> usize {
        match kind {
            Kind::None => each(symbols, |symbol| Plain.push(symbol, sink)),
            Kind::Seed => each(symbols, |symbol| self.seed.push::<LastFour>(symbol, sink)),
            Kind::SeedV0 => each(symbols, |symbol| self.seed.push::<LastOne>(symbol, sink)),
            Kind::SeedParlot => each(symbols, |symbol| self.seed.push::<Original>(symbol, sink)),
            Kind::Lockstep => self.lockstep.push_batch::<Normal>(symbols, sink),
            Kind::LockstepLow => self.lockstep.push_batch::<Low>(symbols, sink),
        }
    }

    /// The addresses of the memory that the first symbols go to, so that it can be had in advance.
    #[must_use]
    pub fn early(&self, kind: Kind) -> [Range<usize>; 5] {
        match kind {
            Kind::Lockstep | Kind::LockstepLow => self.lockstep.early(),
            Kind::None | Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => [const { 0..0 }; 5],
        }
    }

    /// [`Encoder::tail`] of this kind.
    #[must_use]
    pub fn tail(&self, kind: Kind) -> Tail {
        match kind {
            Kind::None => Plain.tail(),
            Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => self.seed.tail(),
            Kind::Lockstep | Kind::LockstepLow => self.lockstep.tail(),
        }
    }
}

/// How many symbols `push` takes.
#[inline]
fn each(symbols: &[u32], mut push: impl FnMut(u32) -> bool) -> usize {
    symbols.iter().filter(|symbol| push(**symbol)).count()
}

/// A decoder of one kind, about 185 kB and what its memory grows to: 4.4 MB at most, of which a stream
/// of `lockstep` takes about as much as its encoder did.
#[derive(Debug, Clone)]
pub struct AnyDecoder<T, H> {
    kind: Kind,
    seed: DecoderState,
    lockstep: lockstep::DecoderState<T, H>,
}

impl<T: Memory + Default, H: Memory + Default> AnyDecoder<T, H> {
    /// At the beginning of a stream of this kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            seed: DecoderState::default(),
            lockstep: lockstep::DecoderState::default(),
        }
    }

    /// Whether what comes next is sure to go round, as at least 4,096 symbols before did. Told of long runs only.
    #[must_use]
    pub fn round(&self) -> Option<Round> {
        match self.kind {
            Kind::Lockstep => self.lockstep.round::<Normal>(),
            Kind::LockstepLow => self.lockstep.round::<Low>(),
            Kind::None | Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => None,
        }
    }

    /// Passes over the next rounds, no more of them than [`Self::round`] tells.
    pub fn pass(&mut self, round: Round) {
        self.lockstep.pass(round.symbols * round.times);
    }

    /// Where a stream was decoded to its end: makes the decoder ready for the same stream when it has gone on, and
    /// says how many of its bytes are to be passed over then. What was decoded does not come again. `None` where the
    /// end was not reached, and of the kinds that are decoded from the beginning only.
    pub fn go_on(&mut self) -> Option<u64> {
        match self.kind {
            Kind::Lockstep | Kind::LockstepLow => self.lockstep.go_on(),
            Kind::None | Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => None,
        }
    }
}

impl<T: Memory, H: Memory> Decoder for AnyDecoder<T, H> {
    #[inline]
    fn next(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        match self.kind {
            Kind::None => Plain.next(source),
            Kind::Seed => self.seed.next::<LastFour>(source),
            Kind::SeedV0 => self.seed.next::<LastOne>(source),
            Kind::SeedParlot => self.seed.next::<Original>(source),
            Kind::Lockstep | Kind::LockstepLow => {
                let mut symbol = [0];
                match self.fill(source, &mut symbol) {
                    (1, _) => Ok(Some(symbol[0])),
                    (_, Ok(())) => Ok(None),
                    (_, Err(error)) => Err(error),
                }
            }
        }
    }

    fn fill(
        &mut self,
        source: &mut impl Source,
        into: &mut [u32],
    ) -> (usize, Result<(), DecodeError>) {
        match self.kind {
            Kind::Lockstep => self.lockstep.fill::<Normal>(source, into),
            Kind::LockstepLow => self.lockstep.fill::<Low>(source, into),
            Kind::None => Plain.fill(source, into),
            Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => {
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
    }
}
