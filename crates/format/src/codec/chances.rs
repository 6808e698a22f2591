//! How probable it is that a prediction fails, and what comes then: probabilities that learn, by what is predicted and
//! what came before it.
//!
//! A context is *open* once a prediction failed in it: a branch that goes by data, say. Only there it is asked whether
//! the prediction holds; what lies between costs nothing. The number of slots doubles as they come to be used, so that small
//! streams touch little memory.
//!
//! ```text
//!  slot:   31      22 21                6 5      0
//!          ┌─────────┬───────────────────┬────────┐
//!          │ context │ probability       │ count  │   of what was decided here; 0: nothing yet
//!          └─────────┴───────────────────┴────────┘
//! ```

use super::DecodeError;
use super::coder::Coder;
use super::memory::{Memory, beginning};
use super::model::{NEAR, Size};
use crate::arithmetic::{ONE, rates};
use core::ops::Range;

/// Slots of contexts at first; a power of two.
pub const FIRST_CONTEXTS: u32 = 1024;
/// Places for what came instead of a prediction; a power of two.
const INSTEAD: usize = 4096;
/// Places that become memory together.
const GROUP: usize = 16;
/// Symbols are told apart by so many values of their low bits where a context is looked for; a power of two.
const MARKS: u32 = 1024;
/// No decision is more certain: with probability 1 - 1/256, so that none takes more than a byte.
const DOUBT: u32 = ONE / 256;
/// Bits of a number that depend on those above them.
const LEADING: u32 = 3;
/// Numbers of more bits have their leading ones in common.
const LONG_NUMBERS: u32 = 15;

/// Slots for the bits of numbers by their length: its own decisions in front.
const RUNS: usize = 64 + 8 * (LONG_NUMBERS as usize + 1);
const SYMBOLS: usize = 64 + 8 * 33;

/// The last symbols, in two registers: those before the nearest are asked for together, which memory that was written one
/// by one gives late.
#[derive(Clone, Copy)]
struct Last {
    nearest: u32,
    others: u64,
}

impl Last {
    #[inline]
    fn new([a, b, c]: [u32; NEAR]) -> Self {
        Self {
            nearest: a,
            others: u64::from(b) | u64::from(c) << 32,
        }
    }

    /// One symbol further.
    #[inline]
    fn then(self, symbol: u32) -> Self {
        Self {
            nearest: symbol,
            others: u64::from(self.nearest) | self.others << 32,
        }
    }

    #[inline]
    fn symbols(self) -> [u32; NEAR] {
        [self.nearest, self.others as u32, (self.others >> 32) as u32]
    }
}

/// Where a prediction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Context(u32);

impl Context {
    /// Of the symbol that is predicted behind `last`, the nearest first.
    #[inline]
    pub fn new(last: [u32; NEAR], predicted: u32) -> Self {
        Self::behind(Last::new(last), predicted)
    }

    #[inline]
    fn behind(last: Last, predicted: u32) -> Self {
        let near = u64::from(predicted) | u64::from(last.nearest) << 32;
        let near = near.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let far = last.others.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
        let mixed = (near.wrapping_add(far) >> 32) as u32;
        Self(mixed ^ mixed >> 15)
    }

    /// Of the decision whether the symbol that came instead the last time comes again.
    fn again(self) -> Self {
        let mixed = self.0.wrapping_mul(0x9e37_79b9);
        Self(mixed ^ mixed >> 15)
    }

    /// Whether a slot at its place is its own.
    #[inline]
    fn is_of(self, slot: u32) -> bool {
        slot >> CONTEXT == self.0 >> CONTEXT && slot != 0
    }

    fn instead(self) -> usize {
        self.0.wrapping_mul(0x85eb_ca6b) as usize >> 20
    }
}

/// All probabilities, in memory that is zero at first.
#[derive(Debug, Clone)]
#[repr(C)]
pub(super) struct Chances<T> {
    slots: T,
    /// What came instead of a prediction, by its context.
    instead: Instead,
    /// How often the number of slots was doubled.
    doubled: u32,
    /// Contexts that came to have a slot.
    used: u32,
    /// Whether the length of a run is told.
    told: u32,
    runs: [u32; RUNS],
    symbols: [u32; SYMBOLS],
    /// Symbols that were predicted where a context is open, by their low bits: most are in no such place, and need no
    /// look.
    marks: [u32; MARKS as usize / 32],
}

/// A word for each of [`INSTEAD`] places. Places become memory by groups, one behind the other as they come to be used: those of
/// a short stream lie together.
#[derive(Debug, Clone)]
#[repr(C)]
struct Instead {
    words: [u32; INSTEAD],
    /// Where the words of a group are, counted in groups from 1; 0 where it has none.
    groups: [u16; INSTEAD / GROUP],
    /// Groups that are in use.
    used: u16,
}

impl Default for Instead {
    fn default() -> Self {
        Self {
            words: [0; INSTEAD],
            groups: [0; INSTEAD / GROUP],
            used: 0,
        }
    }
}

impl Instead {
    fn get(&self, place: usize) -> u32 {
        let group = self.groups.get(place / GROUP).copied().unwrap_or(0);
        let word = usize::from(group).checked_sub(1);
        let word = word.and_then(|group| self.words.get(group * GROUP + place % GROUP));
        word.copied().unwrap_or(0)
    }

    fn set(&mut self, place: usize, word: u32) {
        let Some(group) = self.groups.get_mut(place / GROUP) else {
            return;
        };
        if *group == 0 {
            self.used += 1;
            *group = self.used;
        }
        let at = (usize::from(*group) - 1) * GROUP + place % GROUP;
        if let Some(place) = self.words.get_mut(at) {
            *place = word;
        }
    }
}

impl<T: Default> Default for Chances<T> {
    fn default() -> Self {
        Self {
            slots: T::default(),
            instead: Instead::default(),
            doubled: 0,
            used: 0,
            told: 0,
            runs: [0; RUNS],
            symbols: [0; SYMBOLS],
            marks: [0; MARKS as usize / 32],
        }
    }
}

impl<T: Memory> Chances<T> {
    /// The addresses of the memory that the first decisions need.
    pub fn early(&self) -> [Range<usize>; 3] {
        let start = self.instead.groups.as_ptr().addr();
        [
            beginning(self.slots.present(), FIRST_CONTEXTS as usize),
            beginning(&self.instead.words, GROUP),
            start..core::ptr::from_ref(self).addr() + size_of_val(self),
        ]
    }
}

/// A slot counts up to here how often it was asked.
const SURE: u32 = 63;
/// The probability in a slot of zeros.
const HALF: u32 = ONE / 2;
/// Bits of a slot below its context.
const CONTEXT: u32 = 22;

static RATES: [u32; SURE as usize + 1] = rates();

/// The probability of a yes in a slot, out of 2^16; one half at first.
#[inline]
fn probability(slot: u32) -> u32 {
    (slot >> 6 & 0xffff) ^ HALF
}

/// The same, as it is coded.
#[inline]
fn odds(slot: u32) -> u32 {
    probability(slot).clamp(DOUBT, ONE - DOUBT)
}

/// A slot that has seen one more decision. Of those before it, the more there are the less this one counts.
#[inline]
fn learn(slot: u32, bit: bool) -> u32 {
    let count = slot & SURE;
    let rate = RATES.get(count as usize).copied().unwrap_or(0);
    let p = probability(slot);
    let p = if bit {
        p + (((ONE - 1 - p) * rate) >> 16)
    } else {
        p - ((p * rate) >> 16)
    };
    slot >> CONTEXT << CONTEXT | (p ^ HALF) << 6 | (count + 1).min(SURE)
}

#[inline]
fn decide(slot: &mut u32, coder: &mut impl Coder, bit: bool) -> Result<bool, DecodeError> {
    let bit = coder.bit(odds(*slot), bit)?;
    *slot = learn(*slot, bit);
    Ok(bit)
}

/// The same in a row of slots.
#[inline]
fn decide_at(
    slots: &mut [u32],
    at: u32,
    coder: &mut impl Coder,
    bit: bool,
) -> Result<bool, DecodeError> {
    match slots.get_mut(at as usize) {
        Some(slot) => decide(slot, coder, bit),
        None => Ok(false),
    }
}

/// The bits of a number behind its leading one, of which there are `count`; the first few by slots from `at` on.
fn rest(
    slots: &mut [u32],
    at: u32,
    coder: &mut impl Coder,
    count: u32,
    number: u64,
) -> Result<u64, DecodeError> {
    let leading = count.min(LEADING);
    let mut value = 1;
    for left in (count - leading..count).rev() {
        let bit = number >> left & 1 == 1;
        let bit = decide_at(slots, at + value as u32, coder, bit)?;
        value = value << 1 | u64::from(bit);
    }
    let left = count - leading;
    Ok(value << left | coder.plain(left, number)?)
}

#[inline]
fn is_marked(marks: &[u32; MARKS as usize / 32], symbol: u32) -> bool {
    let at = symbol % MARKS;
    let word = marks.get(at as usize / 32).copied().unwrap_or(0);
    word >> (at % 32) & 1 == 1
}

/// Codes whether the stream ends here.
pub(super) fn end(coder: &mut impl Coder, is_end: bool) -> Result<bool, DecodeError> {
    coder.bit(DOUBT, is_end)
}

impl<T: Memory> Chances<T> {
    fn mask(&self) -> u32 {
        (FIRST_CONTEXTS << self.doubled) - 1
    }

    /// The slot of a context, where it has one.
    #[inline]
    fn open(&mut self, context: Context) -> Option<&mut u32> {
        let mask = self.mask();
        let slots = self.slots.words(mask as usize + 1);
        let slot = slots.get_mut((context.0 & mask) as usize)?;
        context.is_of(*slot).then_some(slot)
    }

    /// Whether a prediction of this symbol may have failed anywhere.
    #[inline]
    pub fn is_marked(&self, predicted: u32) -> bool {
        is_marked(&self.marks, predicted)
    }

    /// Whether a prediction failed there.
    #[inline]
    pub fn is_open(&mut self, context: Context, predicted: u32) -> bool {
        self.is_marked(predicted) && self.open(context).is_some()
    }

    /// Codes whether a prediction of a marked symbol fails; in a context that is not open, it does not.
    #[inline]
    pub fn fails(
        &mut self,
        context: Context,
        coder: &mut impl Coder,
        bit: bool,
    ) -> Result<bool, DecodeError> {
        match self.open(context) {
            Some(slot) => decide(slot, coder, bit),
            None => Ok(false),
        }
    }

    /// Codes that predictions held, those of `symbols` behind `last`: a decision in each context that is open. The last
    /// symbols by then. What does not change is asked once, and no context waits for the decision in another.
    #[inline]
    pub fn held(
        &mut self,
        last: [u32; NEAR],
        symbols: &[u32],
        coder: &mut impl Coder,
    ) -> Result<[u32; NEAR], DecodeError> {
        let mut last = Last::new(last);
        let mask = self.mask();
        let marks = &self.marks;
        let slots = self.slots.words(mask as usize + 1);
        for symbol in symbols {
            if is_marked(marks, *symbol) {
                let context = Context::behind(last, *symbol);
                if let Some(slot) = slots.get_mut((context.0 & mask) as usize)
                    && context.is_of(*slot)
                {
                    decide(slot, coder, false)?;
                }
            }
            last = last.then(*symbol);
        }
        Ok(last.symbols())
    }

    /// The other direction of [`Chances::held`] and what comes then: how many predictions held of `parts`, which stand
    /// behind `last` and go round, before one failed.
    #[inline]
    pub fn fails_behind(
        &mut self,
        last: [u32; NEAR],
        parts: [&[u32]; 2],
        most: u64,
        coder: &mut impl Coder,
    ) -> Result<u64, DecodeError> {
        let mut last = Last::new(last);
        let mask = self.mask();
        let marks = &self.marks;
        let slots = self.slots.words(mask as usize + 1);
        let mut run = 0;
        while run < most && !parts.iter().all(|part| part.is_empty()) {
            for part in parts {
                for symbol in part.iter().take((most - run) as usize) {
                    if is_marked(marks, *symbol) {
                        let context = Context::behind(last, *symbol);
                        if let Some(slot) = slots.get_mut((context.0 & mask) as usize)
                            && context.is_of(*slot)
                            && decide(slot, coder, false)?
                        {
                            return Ok(run);
                        }
                    }
                    last = last.then(*symbol);
                    run += 1;
                }
            }
        }
        Err(DecodeError::Endless)
    }

    /// A slot of another context is this one's from now on.
    #[inline]
    fn learn<S: Size>(&mut self, context: Context, bit: bool) {
        if let Some(slot) = self.open(context) {
            *slot = learn(*slot, bit);
            return;
        }
        let mask = self.mask();
        let slots = self.slots.words(mask as usize + 1);
        if let Some(slot) = slots.get_mut((context.0 & mask) as usize) {
            *slot = learn(context.0 >> CONTEXT << CONTEXT, bit);
        }
        if mask + 1 < S::CONTEXTS {
            self.used += 1;
            if 4 * self.used > mask {
                self.double(mask as usize + 1);
            }
        }
    }

    #[cold]
    fn double(&mut self, size: usize) {
        let slots = self.slots.words(2 * size);
        if let Some((old, new)) = slots.split_at_mut_checked(size)
            && let Some(new) = new.get_mut(..size)
        {
            new.copy_from_slice(old);
        }
        self.doubled += 1;
    }

    /// A prediction failed there.
    #[inline]
    pub fn failed<S: Size>(&mut self, context: Context, predicted: u32) {
        let at = predicted % MARKS;
        if let Some(word) = self.marks.get_mut(at as usize / 32) {
            *word |= 1 << (at % 32);
        }
        self.learn::<S>(context, true);
    }

    /// How probable it is that the length of a run is told.
    pub fn told_slot(&mut self) -> &mut u32 {
        &mut self.told
    }

    /// Codes whether the length of a run is told.
    #[inline]
    pub fn told(&mut self, coder: &mut impl Coder, bit: bool) -> Result<bool, DecodeError> {
        decide(&mut self.told, coder, bit)
    }

    /// The same for an end that leaves nothing behind.
    pub fn told_now(&self, coder: &mut impl Coder) {
        // Writing does not fail.
        let _ = coder.bit(odds(self.told), true);
    }

    /// Codes a run's length: how many bits it has, one by one, then they.
    pub fn run(&mut self, coder: &mut impl Coder, run: u64) -> Result<u64, DecodeError> {
        const MOST: u32 = u64::BITS - 1;
        let number = run.saturating_add(1);
        let wanted = number.ilog2();
        let mut count = 0;
        while count < MOST && decide_at(&mut self.runs, count, coder, wanted > count)? {
            count += 1;
        }
        let at = 64 + 8 * count.min(LONG_NUMBERS);
        Ok(rest(&mut self.runs, at, coder, count, number)? - 1)
    }

    /// Codes a symbol of which nothing is known.
    pub fn symbol(&mut self, coder: &mut impl Coder, symbol: u32) -> Result<u32, DecodeError> {
        const LEVELS: u32 = 6;
        let wanted = u32::BITS - symbol.leading_zeros();
        let mut node = 1;
        for level in (0..LEVELS).rev() {
            let bit = decide_at(&mut self.symbols, node, coder, wanted >> level & 1 == 1)?;
            node = node << 1 | u32::from(bit);
        }
        match node - (1 << LEVELS) {
            0 => Ok(0),
            bits @ 1..=32 => {
                let at = 64 + 8 * bits;
                let symbol = rest(&mut self.symbols, at, coder, bits - 1, symbol.into())?;
                Ok(symbol as u32)
            }
            _ => Err(DecodeError::TooLarge),
        }
    }

    /// Codes what came instead of a prediction: what did the last time, or any symbol.
    pub fn instead<S: Size>(
        &mut self,
        context: Context,
        coder: &mut impl Coder,
        symbol: u32,
    ) -> Result<u32, DecodeError> {
        let place = context.instead() % INSTEAD;
        let last = self.instead.get(place);
        let again = context.again();
        let odds = odds(self.open(again).map_or(0, |slot| *slot));
        let is_last = coder.bit(odds, symbol == last)?;
        self.learn::<S>(again, is_last);
        let symbol = if is_last {
            last
        } else {
            self.symbol(coder, symbol)?
        };
        self.instead.set(place, symbol);
        Ok(symbol)
    }
}
