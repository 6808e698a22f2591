//! Bits coded by their probability: an arithmetic coder, and what predicts the bits.
//!
//! ```text
//!  contexts ──► slots ──► probability and confidence of each ──► mixed by weights ──► one probability
//!                 ▲                                                  ▲                      │
//!                 └───────────── both learn from the bit ────────────┴──────── bit ◄── coder ┘
//! ```
//!
//! Both directions run the same procedure: [`Coder::bit`] writes the bit that it is given, or ignores
//! it and gives the one that it reads. Integers only, so that every machine computes the same.

use crate::arithmetic::{Interval, ONE, rates};
use crate::codec::memory::Memory;
use crate::codec::{Sink, Source};

/// Logits are in units of 1/256, and end here.
const FAR: i32 = 3071;
/// Most contexts of a decision.
pub const INPUTS: usize = 10;
/// Sets of weights.
pub const SETS: usize = 96;
/// How sure a slot is, by how often it was asked.
const BUCKETS: usize = 8;
/// A slot counts how often it was asked up to here.
const SURE: u32 = 1023;

/// Why bytes do not go on as coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Broken {
    /// They end far before what they tell is complete.
    CutOff,
    /// What they tell names something that is not there, by kind.
    Nothing(&'static str),
    /// There is more in them than they may tell.
    TooMuch,
    /// What they tell is more than a reader makes, by its bound.
    Above(&'static str),
}

impl core::fmt::Display for Broken {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::CutOff => f.write_str("the end of the section"),
            Self::Nothing(kind) => write!(f, "a number that is no {kind}"),
            Self::TooMuch => f.write_str("more than its header tells"),
            Self::Above(bound) => write!(f, "more than {bound}"),
        }
    }
}

/// One direction of the arithmetic coder.
pub trait Coder {
    /// Codes a bit that is 1 with probability `p` of 2^16; gives it.
    ///
    /// # Errors
    /// Where the bytes end.
    fn bit(&mut self, p: u32, bit: bool) -> Result<bool, Broken>;
}

/// Writes bits.
#[derive(Debug)]
pub struct Writer<'a, S> {
    interval: Interval,
    sink: &'a mut S,
    written: u64,
}

impl<'a, S: Sink> Writer<'a, S> {
    /// Bytes go to `sink`.
    pub fn new(sink: &'a mut S) -> Self {
        Self {
            interval: Interval::default(),
            sink,
            written: 0,
        }
    }

    /// How many bytes there are so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Ends the bytes. What follows them does not matter.
    pub fn finish(self) {
        // The shortest bytes that lie inside whatever comes behind them.
        let (low, high) = (self.interval.low(), self.interval.high());
        for length in 0..=4u32 {
            let rest = u32::MAX.checked_shr(8 * length).unwrap_or(0);
            let start = low.saturating_add(rest) & !rest;
            if start >= low && start | rest <= high {
                for byte in start.to_be_bytes().iter().take(length as usize) {
                    self.sink.put(*byte);
                }
                return;
            }
        }
    }
}

impl<S: Sink> Coder for Writer<'_, S> {
    #[inline]
    fn bit(&mut self, p: u32, bit: bool) -> Result<bool, Broken> {
        let middle = self.interval.middle(p);
        self.interval.narrow(middle, bit);
        while let Some(byte) = self.interval.settled() {
            self.written += 1;
            self.sink.put(byte);
        }
        Ok(bit)
    }
}

/// Reads bits.
#[derive(Debug)]
pub struct Reader<'a, S> {
    interval: Interval,
    code: u32,
    source: &'a mut S,
    /// Bytes that were taken behind the end.
    beyond: u32,
}

impl<'a, S: Source> Reader<'a, S> {
    /// Bytes come from `source`.
    pub fn new(source: &'a mut S) -> Self {
        let mut reader = Self {
            interval: Interval::default(),
            code: 0,
            source,
            beyond: 0,
        };
        for _ in 0..4 {
            reader.take();
        }
        reader
    }

    /// Bytes behind the end are zeros: of a whole section at most four are looked at.
    fn take(&mut self) {
        let byte = self.source.take().unwrap_or_else(|| {
            self.beyond += 1;
            0
        });
        self.code = self.code << 8 | u32::from(byte);
    }
}

impl<S: Source> Coder for Reader<'_, S> {
    #[inline]
    fn bit(&mut self, p: u32, _: bool) -> Result<bool, Broken> {
        let middle = self.interval.middle(p);
        let bit = self.code <= middle;
        self.interval.narrow(middle, bit);
        while self.interval.settled().is_some() {
            self.take();
        }
        if self.beyond > 4 {
            return Err(Broken::CutOff);
        }
        Ok(bit)
    }
}

/// e^(1/256).
const STEP: f64 = 1.003_913_889_338_347_6;

/// The probability of each logit, from -FAR on.
static SQUASH: [u16; 2 * FAR as usize + 1] = {
    let mut table = [0; 2 * FAR as usize + 1];
    // e^(-x), from x = 0 on.
    let mut power = 1.0;
    let mut x = 0;
    while x <= FAR as usize {
        let p = (65536.0 * power / (1.0 + power)) as u32;
        let p = if p < 1 { 1 } else { p };
        table[FAR as usize - x] = p as u16;
        table[FAR as usize + x] = (65536 - p) as u16;
        power /= STEP;
        x += 1;
    }
    table[FAR as usize] = 32768;
    table
};

/// The logit of each probability out of 2^12.
static STRETCH: [i16; 4096] = {
    let mut table = [0; 4096];
    let mut x = 0;
    let mut p = 0;
    while p < 4096 {
        while x < 2 * FAR as usize && (SQUASH[x] as usize) < 16 * p + 8 {
            x += 1;
        }
        table[p] = (x as i32 - FAR) as i16;
        p += 1;
    }
    table
};

static RATES: [u32; SURE as usize + 1] = rates();

/// Bucket of each count: a table, since a branch on what comes from far memory would hold up what else is fetched.
static BUCKET: [u8; SURE as usize + 1] = {
    let mut table = [0; SURE as usize + 1];
    let mut count = 0;
    while count < table.len() {
        table[count] = match count {
            0..=2 => count as u8,
            3..=4 => 3,
            5..=8 => 4,
            9..=24 => 5,
            25..=120 => 6,
            _ => 7,
        };
        count += 1;
    }
    table
};

/// Spreads the bits of a number.
#[inline]
#[must_use]
pub fn spread(a: u32, b: u32) -> u32 {
    let mixed = (u64::from(a) << 32 | u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as u32
}

/// A decision within what is being coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Up to fifteen decisions one after the other: those of four bits.
    pub group: u32,
    /// Which of them, below 16.
    pub within: u32,
}

impl Node {
    /// The decision behind some bits with a one in front, `kind` apart.
    #[inline]
    #[must_use]
    pub fn behind(bits: u32, kind: u32) -> Self {
        let taken = bits.max(1).ilog2() % 4;
        Self {
            group: kind ^ bits >> taken,
            within: 1 << taken | bits & ((1 << taken) - 1),
        }
    }

    /// Whether a number has more than `length` bits.
    #[inline]
    fn of_length(length: u32) -> Self {
        Self {
            group: (1 << 20) | (length / 16),
            within: length % 16,
        }
    }
}

/// What predicts bits. A slot is zero at first: probability one half, never asked.
#[derive(Debug, Clone)]
pub struct Predictor<M> {
    slots: M,
    shift: u32,
    weights: [i32; SETS * INPUTS * BUCKETS],
}

/// 1.0 in weights.
const UNIT: i32 = 1 << 16;

impl<M: Memory + Default> Predictor<M> {
    /// With 2^`bits` slots, 10 to 24.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self {
            slots: M::default(),
            shift: 32 - bits.clamp(10, 24),
            weights: [UNIT * 3 / 10; SETS * INPUTS * BUCKETS],
        }
    }

    /// Codes a bit. Each context is one opinion; `node` is the decision within what is being coded, `set` the kind
    /// of decision. The slots of a group lie within 64 bytes: far memory is fetched once for several bits.
    ///
    /// # Errors
    /// As [`Coder::bit`].
    #[inline]
    pub fn bit<C: Coder>(
        &mut self,
        coder: &mut C,
        contexts: &[u32],
        node: Node,
        set: usize,
        bit: bool,
    ) -> Result<bool, Broken> {
        let shift = self.shift;
        let slots = self.slots.words(1 << (32 - shift));
        let mut places = [0usize; INPUTS];
        let mut known = [0u32; INPUTS];
        let mut logits = [0i32; INPUTS];
        let mut weighed = [0usize; INPUTS];
        let mut sum = 0i64;
        let first = set % SETS * INPUTS * BUCKETS;
        // Slots lie far apart, so that fetching them is what takes time: all at once, before any is looked at.
        for (index, context) in contexts.iter().enumerate().take(INPUTS) {
            let line = spread(*context, node.group ^ (index as u32) << 28) >> shift;
            places[index] = (line ^ node.within) as usize;
        }
        for (slot, place) in known.iter_mut().zip(&places) {
            *slot = slots.get(*place).copied().unwrap_or(0);
        }
        for index in 0..contexts.len().min(INPUTS) {
            let slot = known[index];
            let p = (slot >> 10) ^ 1 << 21;
            let logit = i32::from(STRETCH[(p >> 10) as usize & 4095]);
            let bucket = usize::from(BUCKET[(slot & SURE) as usize]);
            let weight = first + index * BUCKETS + bucket;
            sum += i64::from(logit) * i64::from(self.weights[weight]);
            logits[index] = logit;
            weighed[index] = weight;
        }
        let logit = (sum >> 16).clamp(-i64::from(FAR), i64::from(FAR)) as i32;
        let p = u32::from(SQUASH[(logit + FAR) as usize]);
        let bit = coder.bit(p, bit)?;
        let error = if bit {
            ONE as i32 - p as i32
        } else {
            -(p as i32)
        };
        for index in 0..contexts.len().min(INPUTS) {
            // A logit of 1 (256) and an error of 1 (65536) move a weight by about 0.02.
            let change = (i64::from(logits[index]) * i64::from(error) * RATE) >> 18;
            let weight = &mut self.weights[weighed[index]];
            *weight = (i64::from(*weight) + change).clamp(-(8 << 16), 8 << 16) as i32;
            if let Some(slot) = slots.get_mut(places[index]) {
                // Two contexts may share a slot: both teach it.
                *slot = learn(*slot, bit);
            }
        }
        Ok(bit)
    }

    /// Codes a number below 2^64: its length in bits, then what is behind the leading one.
    ///
    /// # Errors
    /// As [`Coder::bit`].
    pub fn number<C: Coder>(
        &mut self,
        coder: &mut C,
        contexts: &[u32],
        set: usize,
        number: u64,
    ) -> Result<u64, Broken> {
        let wanted = u64::BITS - number.leading_zeros();
        let mut length = 0;
        // Lengths are mostly short: one decision a length.
        while length < u64::BITS
            && self.bit(
                coder,
                contexts,
                Node::of_length(length),
                set,
                wanted > length,
            )?
        {
            length += 1;
        }
        if length < 2 {
            return Ok(u64::from(length));
        }
        let mut value = 1u64;
        for left in (0..length - 1).rev() {
            // The first twelve bits depend on those before them, the others only on where they stand.
            let known = length - 1 - left;
            let prefix = if known <= 12 { value as u32 } else { 1 };
            let node = Node::behind(
                prefix,
                1 << 21 | length << 14 | known.min(13).div_ceil(4) << 28,
            );
            let bit = number >> left & 1 == 1;
            let bit = self.bit(coder, contexts, node, set + 1, bit)?;
            value = value << 1 | u64::from(bit);
        }
        Ok(value)
    }

    /// Codes one of `count` choices.
    ///
    /// # Errors
    /// As [`Coder::bit`], and where what is read is none of them.
    pub fn choice<C: Coder>(
        &mut self,
        coder: &mut C,
        contexts: &[u32],
        set: usize,
        count: u32,
        choice: u32,
    ) -> Result<u32, Broken> {
        let width = u32::BITS - count.saturating_sub(1).leading_zeros();
        let mut value = 0;
        for level in (0..width).rev() {
            // Leading zeros are no other decision when there come to be more choices.
            let taken = 3 - level % 4;
            let node = Node {
                group: ((level / 4) << 24) ^ (value >> taken),
                within: 1 << taken | value & ((1 << taken) - 1),
            };
            let set = set + (level as usize).min(7);
            let bit = self.bit(coder, contexts, node, set, choice >> level & 1 == 1)?;
            value = value << 1 | u32::from(bit);
        }
        if value >= count {
            return Err(Broken::Nothing("choice"));
        }
        Ok(value)
    }
}

/// How fast weights move.
const RATE: i64 = 6;

#[inline]
fn learn(slot: u32, bit: bool) -> u32 {
    let count = slot & SURE;
    let p = ((slot >> 10) ^ 1 << 21) as i64;
    let target = if bit { (1 << 22) - 1 } else { 0 };
    let p = p + (((target - p) * i64::from(RATES[count as usize])) >> 16);
    (p as u32 ^ 1 << 21) << 10 | (count + 1).min(SURE)
}
