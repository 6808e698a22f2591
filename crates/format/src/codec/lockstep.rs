//! The codec `lockstep`: what [`super::model`] predicts costs nothing, but where such a prediction failed before.
//!
//! ```text
//!  symbols  ──►  runs as predicted, and the symbol behind each
//!                  │
//!                  ├─ in every open context that the run passes: a decision, no; where it ends: yes
//!                  └─ or, where it ends in a context that was not open, or is long: its length
//!                 what came instead: what did the last time there, or another symbol
//!  decisions ──►  arithmetic coder  ──►  bytes
//! ```
//!
//! Where and how probably predictions fail is learnt ([`super::chances`]), while the event path compares: a run is looked at
//! when it ends, by whoever encodes it.
//!
//! *Costs* to encode (`bench/README.md`): 0.1 ns a symbol in a long run, half a nanosecond in short ones, which are walked
//! over when they end; about 7 ns for each place where a prediction may fail and does not; 60 to 90 ns where it does. Half as
//! much more to decode. Memory grows with the stream up to the model's [`Size`]. *Not for*: the smallest file: sealing
//! knows the whole trace.

use super::chances::{Chances, Context, end};
use super::coder::{Coder, Position, Reader, Writer};
use super::memory::Memory;
use super::model::{MOST_STAGED, Model, Size};
use super::{DecodeError, Round, Sink, Source, Tail};
use crate::arithmetic::Interval;
use crate::side::{Broken, put_varint, read_varint};
use core::ops::Range;

/// The lengths of longer runs are told.
pub(super) const MOST_WALKED: u64 = 1024;
const fn most_walked<S: Size>() -> u64 {
    if S::KEPT < MOST_WALKED {
        S::KEPT
    } else {
        MOST_WALKED
    }
}

/// The encoder in memory that is zero at first.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct EncoderState<T, H> {
    chances: Chances<T>,
    interval: Interval,
    /// Whether there was a symbol.
    begun: bool,
    model: Model<T, H>,
}

impl<T: Default, H: Default> Default for EncoderState<T, H> {
    fn default() -> Self {
        Self {
            begun: false,
            interval: Interval::default(),
            chances: Chances::default(),
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
        self.begun = true;
        self.model.stage::<S>(part);
        let mut rest = part;
        loop {
            let equal = self.model.follow::<S>(rest);
            rest = rest.get(equal..).unwrap_or(&[]);
            let Some((symbol, behind)) = rest.split_first() else {
                return;
            };
            // Writing does not fail.
            let _ = self.write::<S>(*symbol, sink);
            self.model.miss::<S>(rest, true);
            rest = behind;
        }
    }

    /// Writes a symbol that was not as predicted, and the run before it.
    fn write<S: Size>(&mut self, symbol: u32, sink: &mut impl Sink) -> Result<(), DecodeError> {
        let Self {
            interval,
            chances,
            model,
            ..
        } = self;
        let coder = &mut Writer { interval, sink };
        if !model.is_aimed() {
            end(coder, false)?;
            chances.symbol(coder, symbol)?;
            return Ok(());
        }
        let predicted = model.predicted::<S>();
        model.settle::<S>();
        let run = model.run();
        let context = Context::new(model.last::<S>(), predicted);
        let is_told = run >= most_walked::<S>() || !chances.is_open(context, predicted);
        chances.told(coder, is_told)?;
        if is_told {
            end(coder, false)?;
            chances.run(coder, run)?;
            chances.failed::<S>(context, predicted);
        } else {
            let (place, parts) = model.followed::<S>();
            let mut last = model.before::<S>(place);
            for part in parts {
                last = chances.held(last, part, coder)?;
            }
            chances.fails(context, coder, true)?;
        }
        chances.instead::<S>(context, coder, symbol)?;
        Ok(())
    }

    /// The addresses of the memory that the first symbols go to.
    #[must_use]
    pub fn early(&self) -> [Range<usize>; 5] {
        let [slots, instead, rest] = self.chances.early();
        let [table, history] = self.model.early();
        [slots, instead, rest, table, history]
    }

    /// [`super::Encoder::tail`].
    #[must_use]
    pub fn tail(&self) -> Tail {
        let mut tail = Tail::EMPTY;
        if !self.begun {
            return tail;
        }
        let mut coder = Writer {
            interval: &mut self.interval.clone(),
            sink: &mut tail,
        };
        let is_aimed = self.model.is_aimed();
        if is_aimed {
            self.chances.told_now(&mut coder);
        }
        // Writing does not fail.
        let _ = end(&mut coder, true);
        coder.finish();
        if is_aimed {
            put_varint(&mut tail, self.model.run());
        }
        tail
    }
}

/// The number that `source` goes on with.
fn take_number(source: &mut impl Source) -> Result<u64, DecodeError> {
    read_varint(|| source.take().ok_or(Broken::CutOff)).map_err(|broken| match broken {
        Broken::CutOff => DecodeError::CutOff,
        Broken::Wrong => DecodeError::TooLarge,
    })
}

/// The decoder. Its memory grows with what was decoded.
#[derive(Debug, Clone)]
pub struct DecoderState<T, H> {
    position: Position,
    chances: Chances<T>,
    model: Model<T, H>,
    doing: Doing,
    /// Predicted symbols still to come.
    left: u64,
    /// Where the run that is going on began.
    began: Began,
}

/// What reading the end of a stream changes.
#[derive(Debug, Clone, Copy, Default)]
struct Began {
    position: Position,
    told: u32,
}

/// What comes behind the predicted symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// They are over: the next run begins.
    Nothing,
    /// Another symbol, in a context that may not be open yet.
    Told,
    /// Another symbol.
    Walked,
    /// The end.
    End,
}

impl<T: Default, H: Default> Default for DecoderState<T, H> {
    fn default() -> Self {
        Self {
            position: Position::default(),
            chances: Chances::default(),
            model: Model::default(),
            doing: Doing::Nothing,
            left: 0,
            began: Began::default(),
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
        if self.doing == Doing::Nothing {
            if !self.position.has_begun() && source.left() == 0 {
                return Ok(0);
            }
            self.began = Began {
                position: self.position,
                told: *self.chances.told_slot(),
            };
            if !self.model.is_aimed() {
                let symbol = self.unpredicted(source)?;
                return Ok(symbol.map_or(0, |symbol| self.miss::<S>(symbol, into)));
            }
            self.begin::<S>(source)?;
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
        if self.doing == Doing::End {
            return Ok(0);
        }
        let predicted = self.model.predicted::<S>();
        self.model.settle::<S>();
        let context = Context::new(self.model.last::<S>(), predicted);
        if self.doing == Doing::Told {
            self.chances.failed::<S>(context, predicted);
        }
        let coder = &mut Reader::new(&mut self.position, source)?;
        let symbol = self.chances.instead::<S>(context, coder, 0)?;
        Ok(self.miss::<S>(symbol, into))
    }

    /// The symbol where nothing is predicted; `None` at the end.
    fn unpredicted(&mut self, source: &mut impl Source) -> Result<Option<u32>, DecodeError> {
        let coder = &mut Reader::new(&mut self.position, source)?;
        if end(coder, false)? {
            self.doing = Doing::End;
            return Ok(None);
        }
        self.chances.symbol(coder, 0).map(Some)
    }

    /// How long the run is, and what comes then.
    fn begin<S: Size>(&mut self, source: &mut impl Source) -> Result<(), DecodeError> {
        let Self {
            position,
            chances,
            model,
            ..
        } = self;
        let coder = &mut Reader::new(position, source)?;
        let (doing, run) = if !chances.told(coder, false)? {
            (Doing::Walked, walked::<S, _, _>(model, chances, coder)?)
        } else if !end(coder, false)? {
            (Doing::Told, chances.run(coder, 0)?)
        } else {
            (Doing::End, take_number(source)?)
        };
        // What was handed out before the stream went on is part of the run.
        self.left = run.checked_sub(model.run()).ok_or(DecodeError::Endless)?;
        self.doing = doing;
        Ok(())
    }

    /// [`super::AnyDecoder::round`].
    pub fn round<S: Size>(&self) -> Option<Round> {
        let symbols = u64::from(self.model.goes_round::<S>()?);
        Some(Round {
            symbols,
            times: self.left / symbols,
        })
        .filter(|it| it.times > 0)
    }

    /// [`super::AnyDecoder::pass`].
    pub fn pass(&mut self, symbols: u64) {
        self.left -= symbols;
        self.model.pass(symbols);
    }

    /// [`super::AnyDecoder::go_on`].
    pub fn go_on(&mut self) -> Option<u64> {
        let is_at_end = match self.doing {
            Doing::End => self.left == 0,
            Doing::Nothing => !self.position.has_begun(),
            Doing::Told | Doing::Walked => false,
        };
        if !is_at_end {
            return None;
        }
        let place = match self.doing {
            Doing::End => {
                *self.chances.told_slot() = self.began.told;
                self.doing = Doing::Nothing;
                self.began.position
            }
            _ => self.position,
        };
        let (position, taken) = place.again();
        self.position = position;
        Some(taken)
    }

    fn miss<S: Size>(&mut self, symbol: u32, into: &mut [u32]) -> usize {
        self.doing = Doing::Nothing;
        self.model.miss::<S>(&[symbol], false);
        into.first_mut().map_or(0, |place| {
            *place = symbol;
            1
        })
    }
}

/// The length of a run that ends where a prediction fails in an open context.
fn walked<S: Size, T: Memory, H: Memory>(
    model: &Model<T, H>,
    chances: &mut Chances<T>,
    coder: &mut impl Coder,
) -> Result<u64, DecodeError> {
    let (last, parts) = model.ahead_of::<S>();
    chances.fails_behind(last, parts, most_walked::<S>(), coder)
}
