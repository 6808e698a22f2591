//! The codec of a run, chosen when it starts: one type of memory for all kinds.

use super::seed::{DecoderState, EncoderState, LastFour, LastOne, Original};
use super::{DecodeError, Decoder, Encoder, Kind, Sink, Source, Tail, none::Plain};

/// An encoder of any kind. All-zero memory is its valid initial state, whichever kind it serves; the
/// kind comes with every call (the probe has one a process) and must stay the same.
#[derive(Debug, Clone, Default)]
pub struct AnyEncoder {
    seed: EncoderState,
}

impl AnyEncoder {
    /// [`Encoder::push`] of this kind.
    #[inline]
    pub fn push(&mut self, kind: Kind, symbol: u32, sink: &mut impl Sink) -> bool {
        match kind {
            Kind::None => Plain.push(symbol, sink),
            Kind::Seed => self.seed.push::<LastFour>(symbol, sink),
            Kind::SeedV0 => self.seed.push::<LastOne>(symbol, sink),
            Kind::SeedParlot => self.seed.push::<Original>(symbol, sink),
        }
    }

    /// [`Encoder::tail`] of this kind.
    #[must_use]
    pub fn tail(&self, kind: Kind) -> Tail {
        match kind {
            Kind::None => Plain.tail(),
            Kind::Seed | Kind::SeedV0 | Kind::SeedParlot => self.seed.tail(),
        }
    }
}

/// A decoder of one kind, about 148 kB.
#[derive(Debug, Clone)]
pub struct AnyDecoder {
    kind: Kind,
    seed: DecoderState,
}

impl AnyDecoder {
    /// At the beginning of a stream of this kind.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            seed: DecoderState::default(),
        }
    }
}

impl Decoder for AnyDecoder {
    #[inline]
    fn next(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        match self.kind {
            Kind::None => Plain.next(source),
            Kind::Seed => self.seed.next::<LastFour>(source),
            Kind::SeedV0 => self.seed.next::<LastOne>(source),
            Kind::SeedParlot => self.seed.next::<Original>(source),
        }
    }
}
