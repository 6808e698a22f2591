//! Side streams: what is recorded beside the events of a thread, in chunks of their own, so that
//! threads that do the same have the same events whatever their arguments and times were.
//!
//! # Arguments
//!
//! A *tuple* is what a call was given, or what it gave back: a *key* (twice the function's symbol,
//! plus one for what was given back) and values, by [`crate::mpi`]. Tuples are numbered as they are
//! first seen. The stream is a sequence of *groups*: how often the predicted number came true, then a
//! number that was not predicted. The prediction is the number that followed the last time when the
//! three numbers before were the same.
//!
//! ```text
//! group    run  token                 varints; token 0: a new tuple follows, 1: a check, n + 2: tuple n
//! tuple    key  length  values        values: zigzag varints of the difference to the values of the
//!                                     last new tuple of this key (0 where there is none: see `last`)
//! check    u32                        CRC-32C of all bytes before it
//! ```
//! There is one record for each call of an MPI function in the thread's events, as long as there are
//! records; and behind it, in the order of the events, one for its return where the function gives
//! something back. Committing is one store: [`control::WORD`] has the bytes of all whole groups and
//! the run that is going on.
//!
//! # Times
//!
//! *Points*, each a reading of the processor's time stamp counter and what it says of the events ([`point`]): 4 times the
//! symbols that the thread had stored since the point before, plus the kind, and the ticks since then, both as varints.
//! [`control::WORD`] has the bytes of all whole points. A point is a *stamp* ([`crate::process::stamp`]) in the thread's
//! chunk first.
//!
//! # Inferred returns
//!
//! Returns that nobody saw: the frame was found gone at the thread's next event (a jump, an exception, a
//! stack that was left). For each a varint: how many symbols the thread had stored since the one before,
//! that one not counted.

use crate::capture::{MOST_ELEMENTS, MOST_PARAMETERS};
use crate::check;
use crate::codec::{Sink, Source};

/// Offsets in the first chunk of a side stream; later chunks are payload only.
pub mod control {
    /// `u64`: valid bytes in the low 40 bits; in the others, of arguments, the run that is going on.
    pub const WORD: usize = 64;
    /// First bytes of the stream, up to the chunk's end.
    pub const DATA: usize = 128;
    /// Bits for the bytes.
    pub const BYTES: u32 = 40;
}

/// What a point in time says. In each case no more than its symbols were stored before, and none of the later ones.
pub mod point {
    /// No more than that.
    pub const SEEN: u64 = 1;
    /// The last of these symbols was stored just then.
    pub const AFTER: u64 = 2;
    /// The next symbol was about to be stored.
    pub const BEFORE: u64 = 3;
    /// Bits of a kind in a stream, and in a stamp.
    pub const BITS: u32 = 2;
    /// Likewise, in a stamp: it counts in staging words.
    pub const STAMP_BITS: u32 = 3;
}

/// Where the side streams of a segment lie (`--keep last`): in its thread chunk, behind the events.
pub mod segment {
    /// Arguments, where there is an MPI library; else the events go on here.
    pub const ARGUMENTS: usize = TIMES - 12 * 1024;
    /// Times, where they are recorded; else what comes before goes on here.
    pub const TIMES: usize = INFERRED - 4 * 1024;
    /// Inferred returns, up to the chunk's end.
    pub const INFERRED: usize = END - 4 * 1024;
    /// The chunk's end.
    pub const END: usize = crate::process::DATA_CHUNK as usize;
}

/// Size of the first chunk of a side stream; the others are as large as data chunks.
pub const FIRST_CHUNK: u64 = 4096;

/// The word that commits `bytes` and a run.
#[must_use]
pub const fn word(bytes: u64, run: u32) -> u64 {
    bytes & ((1 << control::BYTES) - 1) | (run as u64) << control::BYTES
}

/// Bytes and run of a word.
#[must_use]
pub const fn from_word(word: u64) -> (u64, u32) {
    (
        word & ((1 << control::BYTES) - 1),
        (word >> control::BYTES) as u32,
    )
}

/// Values that a tuple may have.
pub const MOST_VALUES: usize = 2 * MOST_ELEMENTS + MOST_PARAMETERS + 2;
/// More bytes than one record takes.
pub const MOST_BYTES: usize = 11 * (MOST_VALUES + 4);
/// Longest run that a word has room for.
const MOST_RUN: u32 = (1 << (64 - control::BYTES)) - 1;
/// Bytes between checks, about.
const CHECK_EVERY: u32 = 1024;

const NEW: u32 = 0;
const CHECK: u32 = 1;
const FIRST_NUMBER: u32 = 2;

const CONTEXTS: usize = 4096;
const SETS: usize = 1024;
/// Places of a set: as many tuples as a cache line holds.
const WAYS: usize = 4;
const LASTS: usize = 64;

/// Records of a round.
const MOST_ROUND: usize = 64;

/// Records that come again and again in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    numbers: [u32; MOST_ROUND],
    length: usize,
}

impl Round {
    /// The numbers of their tuples, in order.
    #[must_use]
    pub fn numbers(&self) -> &[u32] {
        self.numbers.get(..self.length).unwrap_or(&[])
    }
}

/// Where a decoder stands in a run: where it predicts the same, it goes on in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    recent: [u32; 3],
    /// Records of the run that are still to come.
    pub left: u32,
}

impl Standing {
    /// Whether the same comes after both.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.recent == other.recent
    }
}

/// What both directions keep: predictions, and the last values of each key.
#[derive(Debug, Clone)]
struct Model {
    /// By context: the number that followed, plus one; 0 where none did.
    next: [u32; CONTEXTS],
    recent: [u32; 3],
    last: [Last; LASTS],
}

#[derive(Debug, Clone, Copy)]
struct Last {
    key: u32,
    length: u32,
    values: [i64; MOST_VALUES],
}

impl Model {
    const NEW: Self = Self {
        next: [0; CONTEXTS],
        recent: [0; 3],
        last: [Last {
            key: 0,
            length: 0,
            values: [0; MOST_VALUES],
        }; LASTS],
    };

    fn context(&self) -> usize {
        Self::context_of(self.recent)
    }

    fn context_of(recent: [u32; 3]) -> usize {
        let [a, b, c] = recent.map(u64::from);
        let mixed = (a ^ b << 21 ^ c << 42).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize
    }

    fn predicted(&self) -> Option<u32> {
        self.next.get(self.context())?.checked_sub(1)
    }

    fn see(&mut self, number: u32) {
        let context = self.context();
        if let Some(place) = self.next.get_mut(context) {
            *place = number + 1;
        }
        let [a, b, _] = self.recent;
        self.recent = [number + 1, a, b];
    }

    /// The numbers that are predicted until it comes back to where it is now.
    fn round(&self) -> Option<Round> {
        let mut round = Round {
            numbers: [0; MOST_ROUND],
            length: 0,
        };
        let mut recent = self.recent;
        for place in &mut round.numbers {
            let next = *self.next.get(Self::context_of(recent))?;
            *place = next.checked_sub(1)?;
            round.length += 1;
            recent = [next, recent[0], recent[1]];
            if recent == self.recent {
                return Some(round);
            }
        }
        None
    }

    /// The last values of `key`; of another key's place, or behind the end, zeros.
    fn last(&self, key: u32, index: usize) -> i64 {
        self.last
            .get(key as usize % LASTS)
            .filter(|last| last.key == key && index < last.length as usize)
            .and_then(|last| last.values.get(index).copied())
            .unwrap_or(0)
    }

    fn keep(&mut self, key: u32, values: &[i64]) {
        if let Some(last) = self.last.get_mut(key as usize % LASTS) {
            last.key = key;
            last.length = values.len() as u32;
            for (place, value) in last.values.iter_mut().zip(values) {
                *place = *value;
            }
        }
    }
}

/// A tuple that has a number; `hash` is 0 in an empty place.
#[derive(Debug, Clone, Copy)]
struct Known {
    hash: u64,
    number: u32,
}

/// Tuples whose hashes begin alike, that which was asked for last first: a new one takes the place of the last. With one
/// place each, two tuples of a loop that shared it would be announced anew in every round, with new numbers, which
/// no prediction knows.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Set([Known; WAYS]);

impl Set {
    fn find(&mut self, hash: u64) -> Option<u32> {
        let way = self.0.iter().position(|known| known.hash == hash)?;
        if let Some(until) = self.0.get_mut(..=way).filter(|_| way > 0) {
            until.rotate_right(1);
        }
        self.0.first().map(|known| known.number)
    }

    fn add(&mut self, known: Known) {
        self.0.rotate_right(1);
        if let Some(first) = self.0.first_mut() {
            *first = known;
        }
    }
}

/// The encoder of an argument stream; all zeros is its beginning. About 170 kB.
#[derive(Debug, Clone)]
pub struct Encoder {
    model: Model,
    tuples: [Set; SETS],
    count: u32,
    run: u32,
    check: u32,
    unchecked: u32,
}

impl Encoder {
    /// The beginning.
    pub const NEW: Self = Self {
        model: Model::NEW,
        tuples: [Set([Known { hash: 0, number: 0 }; WAYS]); SETS],
        count: 0,
        run: 0,
        check: 0,
        unchecked: 0,
    };

    /// Encodes one record, of at most [`MOST_VALUES`] values: bytes into `sink`, at most
    /// [`MOST_BYTES`], or none. Returns the run that is going on then.
    pub fn push(&mut self, key: u32, values: &[i64], sink: &mut impl Sink) -> u32 {
        let values = values.get(..MOST_VALUES).unwrap_or(values);
        let hash = hash(key, values);
        let set = (hash >> 54) as usize % SETS;
        let known = self.tuples.get_mut(set).and_then(|set| set.find(hash));
        if known.is_some() && known == self.model.predicted() && self.run < MOST_RUN {
            self.run += 1;
            self.model.see(known.unwrap_or(0));
            return self.run;
        }
        let mut sink = Checked {
            sink,
            check: &mut self.check,
            bytes: &mut self.unchecked,
        };
        put_varint(&mut sink, u64::from(self.run));
        self.run = 0;
        let number = if let Some(number) = known {
            put_varint(&mut sink, u64::from(number) + u64::from(FIRST_NUMBER));
            number
        } else {
            put_varint(&mut sink, u64::from(NEW));
            put_varint(&mut sink, u64::from(key));
            put_varint(&mut sink, values.len() as u64);
            for (index, value) in values.iter().enumerate() {
                let change = value.wrapping_sub(self.model.last(key, index));
                put_varint(&mut sink, zigzag(change));
            }
            self.model.keep(key, values);
            let number = self.count;
            self.count += 1;
            if let Some(set) = self.tuples.get_mut(set) {
                set.add(Known { hash, number });
            }
            number
        };
        if *sink.bytes >= CHECK_EVERY {
            put_varint(&mut sink, 0);
            put_varint(&mut sink, u64::from(CHECK));
            for byte in sink.check.to_le_bytes() {
                sink.put(byte);
            }
            *sink.bytes = 0;
        }
        self.model.see(number);
        0
    }
}

/// Adds to a check what it passes on.
struct Checked<'a, S> {
    sink: &'a mut S,
    check: &'a mut u32,
    bytes: &'a mut u32,
}

impl<S: Sink> Sink for Checked<'_, S> {
    fn put(&mut self, byte: u8) {
        *self.check = check::extend(*self.check, &[byte]);
        *self.bytes += 1;
        self.sink.put(byte);
    }
}

/// Never 0, which is the hash of an empty place.
fn hash(key: u32, values: &[i64]) -> u64 {
    const FACTOR: u64 = 0x9fb2_1c65_1e98_df25;
    let mut hash = (u64::from(key) + 1).wrapping_mul(FACTOR);
    for value in values {
        hash = (hash ^ *value as u64).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    hash = (hash ^ values.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash ^ hash >> 32) | 1
}

/// Why a stream cannot be decoded further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// It ends where more must come.
    CutOff,
    /// A number or a check is not what it must be.
    Wrong,
}

impl core::fmt::Display for Broken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::CutOff => "expected more bytes, found the end",
            Self::Wrong => "found bytes that nobody writes",
        })
    }
}

impl core::error::Error for Broken {}

/// One record, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// A tuple that was new before, by its number.
    Known(u32),
    /// A tuple that gets the next number: its key; the values are [`Decoder::values`].
    New(u32),
}

/// The decoder of an argument stream. About 100 kB.
#[derive(Debug, Clone)]
pub struct Decoder {
    model: Model,
    values: [i64; MOST_VALUES],
    length: usize,
    count: u32,
    run: u32,
    /// A token is due.
    token: bool,
    /// The stream's bytes were all read, and with them this run.
    ended: bool,
    open: u32,
    /// Records of the run that comes next which were given before the stream went on.
    given: u32,
    check: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::NEW
    }
}

impl Decoder {
    /// The beginning.
    pub const NEW: Self = Self {
        model: Model::NEW,
        values: [0; MOST_VALUES],
        length: 0,
        count: 0,
        run: 0,
        token: false,
        ended: false,
        open: 0,
        given: 0,
        check: 0,
    };

    /// The values of the latest new tuple.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        self.values.get(..self.length).unwrap_or(&[])
    }

    /// Where it stands.
    #[must_use]
    pub fn standing(&self) -> Standing {
        Standing {
            recent: self.model.recent,
            left: self.run,
        }
    }

    /// What comes again and again in the run that is going on; `None` where nothing short does, or no whole round is left.
    #[must_use]
    pub fn round(&self) -> Option<Round> {
        let round = self.model.round()?;
        (round.length <= self.run as usize).then_some(round)
    }

    /// Passes over records of the run, no more than are left of it, after which it stands as it does now.
    pub fn pass(&mut self, records: u32) {
        self.run = self.run.saturating_sub(records);
    }

    /// Passes over all whole rounds that are left of the run: how many records.
    pub fn pass_rounds(&mut self, round: &Round) -> u32 {
        let length = round.length.max(1) as u32;
        let records = self.run / length * length;
        self.pass(records);
        records
    }

    /// Makes it ready for the same stream when it has gone on, with more bytes or a longer run.
    pub fn go_on(&mut self) {
        if core::mem::take(&mut self.ended) {
            self.given = self.open - self.run;
            self.run = 0;
        }
    }

    /// The next record of a stream that ends with a run of `open`.
    ///
    /// # Errors
    /// Where the bytes are no stream, or end inside of a group.
    pub fn next(&mut self, source: &mut impl Source, open: u32) -> Result<Option<Found>, Broken> {
        loop {
            if self.run > 0 {
                self.run -= 1;
                let number = self.model.predicted().ok_or(Broken::Wrong)?;
                self.model.see(number);
                return Ok(Some(Found::Known(number)));
            }
            if self.token {
                self.token = false;
                let token = self.varint(source)?;
                let expected = self.check;
                match token {
                    0 => return self.tuple(source).map(Some),
                    1 => {
                        let mut bytes = [0; 4];
                        for byte in &mut bytes {
                            *byte = self.byte(source)?;
                        }
                        if u32::from_le_bytes(bytes) != expected {
                            return Err(Broken::Wrong);
                        }
                    }
                    token => {
                        let number = u32::try_from(token - u64::from(FIRST_NUMBER))
                            .ok()
                            .filter(|number| *number < self.count)
                            .ok_or(Broken::Wrong)?;
                        self.model.see(number);
                        return Ok(Some(Found::Known(number)));
                    }
                }
            } else if source.left() > 0 {
                let run = self.varint(source)?;
                let run = u32::try_from(run).map_err(|_| Broken::Wrong)?;
                let given = core::mem::take(&mut self.given);
                self.run = run.checked_sub(given).ok_or(Broken::Wrong)?;
                self.token = true;
            } else if self.ended {
                return Ok(None);
            } else {
                self.run = open.checked_sub(self.given).ok_or(Broken::Wrong)?;
                (self.ended, self.open) = (true, open);
            }
        }
    }

    fn tuple(&mut self, source: &mut impl Source) -> Result<Found, Broken> {
        let key = u32::try_from(self.varint(source)?).map_err(|_| Broken::Wrong)?;
        let length = self.varint(source)?;
        if length > MOST_VALUES as u64 {
            return Err(Broken::Wrong);
        }
        self.length = length as usize;
        for index in 0..self.length {
            let change = unzigzag(self.varint(source)?);
            let value = self.model.last(key, index).wrapping_add(change);
            if let Some(place) = self.values.get_mut(index) {
                *place = value;
            }
        }
        let number = self.count;
        self.count = number.checked_add(1).ok_or(Broken::Wrong)?;
        let values = self.values;
        self.model
            .keep(key, values.get(..self.length).unwrap_or(&[]));
        self.model.see(number);
        Ok(Found::New(key))
    }

    fn byte(&mut self, source: &mut impl Source) -> Result<u8, Broken> {
        let byte = source.take().ok_or(Broken::CutOff)?;
        self.check = check::extend(self.check, &[byte]);
        Ok(byte)
    }

    fn varint(&mut self, source: &mut impl Source) -> Result<u64, Broken> {
        read_varint(|| self.byte(source))
    }
}

/// Writes seven bits a byte, low ones first.
pub fn put_varint(sink: &mut impl Sink, mut value: u64) {
    while value >= 0x80 {
        sink.put(value as u8 | 0x80);
        value >>= 7;
    }
    sink.put(value as u8);
}

/// Reads what [`put_varint`] wrote.
///
/// # Errors
/// Those of `byte`, and [`Broken::Wrong`] where the number does not fit.
pub fn read_varint(mut byte: impl FnMut() -> Result<u8, Broken>) -> Result<u64, Broken> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let next = byte()?;
        let bits = u64::from(next & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        value |= bits << shift;
        if next < 0x80 {
            return Ok(value);
        }
    }
    Err(Broken::Wrong)
}

const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests;
