//! Which lengths two equal blocks at the end of a sequence can have, without trying them all.

/// Lengths below this are bits.
const BITS: usize = u64::BITS as usize;

/// Classes of codes. Few, so that an empty sequence costs little; elements of one class are compared.
const CLASSES: usize = 64;

/// So many elements are known; a power of two.
const KNOWN: usize = 256;

/// So many must be: `BITS` are asked for what is as far below each of them.
const NEEDED: usize = 2 * BITS;

/// So many are looked at before anything is decided: most sequences are at an end then, and a branch that nobody foresees costs
/// more than they do.
const AT_ONCE: usize = 4;

/// For each of the last elements of a sequence that grows and shrinks at its end, where its class occurred before.
///
/// Blocks of `l` elements are equal only if each of the last `l` elements has its class again `l` places below: that is a bit
/// of each, and what all of them share is a few instructions. What is known of an element tells of nothing above it, and
/// holds for as long as it stays.
///
/// Only the last ones are ever asked. So there is a ring of them, and those far below are found again from the sequence itself
/// when it has shrunk that far: memory that is written once and never read would cost more than all else.
#[derive(Debug, Clone)]
pub(crate) struct Echoes {
    ring: Box<Ring>,
    /// The longest length that is asked for, and those that are bits.
    most: usize,
    lengths: u64,
    /// The length that the sequence has had since all of the ring was found: known is what is at most `KNOWN` below.
    high: usize,
}

/// Places are counted from `BITS`, so that 0, no place, is further below than bits tell.
#[derive(Debug, Clone)]
struct Ring {
    /// Bit `l`: the element `l` places below is of the same class; bit 0 always.
    below: [u64; KNOWN],
    /// The last place of the same class below.
    previous: [u32; KNOWN],
    /// The last place of each class.
    last: [u32; CLASSES],
}

/// The upper bits of a product: codes are small numbers, and large ones that count down.
#[inline]
fn class(code: u32) -> usize {
    (code.wrapping_mul(0x9e37_79b9) >> (u32::BITS - CLASSES.ilog2())) as usize
}

impl Echoes {
    /// Of an empty sequence that is asked for lengths of up to `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            lengths: low_bits(most.min(BITS - 1)) & !1,
            ring: Box::new(Ring {
                below: [0; KNOWN],
                previous: [0; KNOWN],
                last: [0; CLASSES],
            }),
            high: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ring.last = [0; CLASSES];
        self.high = 0;
    }

    /// The sequence gets another element, and had `length`.
    #[inline]
    pub(crate) fn push(&mut self, length: usize, code: u32) {
        let ring = &mut *self.ring;
        let place = length + BITS;
        let previous = std::mem::replace(&mut ring.last[class(code)], place as u32);
        // Its echoes are the element of the class before it, and the echoes of that.
        let distance = place as u32 - previous;
        let before = ring.below[previous as usize % KNOWN];
        ring.below[place % KNOWN] = before.checked_shl(distance).unwrap_or(0) | 1;
        ring.previous[place % KNOWN] = previous;
    }

    /// The sequence of these codes is about to be cut to `length`.
    #[inline]
    pub(crate) fn truncate(&mut self, codes: &[u32], length: usize) {
        self.high = self.high.max(codes.len());
        let unknown = self.high.saturating_sub(KNOWN);
        if unknown > 0 && length < unknown + NEEDED {
            return self.find_again(&codes[..length]);
        }
        let ring = &mut *self.ring;
        for (index, code) in codes[length..].iter().enumerate().rev() {
            ring.last[class(*code)] = ring.previous[(length + index + BITS) % KNOWN];
        }
    }

    #[cold]
    fn find_again(&mut self, codes: &[u32]) {
        self.clear();
        self.high = codes.len();
        let start = codes.len().saturating_sub(KNOWN);
        for (index, code) in codes.iter().enumerate().skip(start) {
            self.push(index, *code);
        }
    }

    /// At which lengths there may be two equal blocks at the end of a sequence of `length` codes, not 0: each a bit, and one for
    /// those that are no bits.
    #[inline]
    pub(crate) fn lengths(&self, length: usize) -> Lengths {
        let mut bits = self.lengths;
        for index in 0..AT_ONCE {
            bits &= self.shared_by(length, index);
        }
        Lengths {
            bits,
            far: self.most >= BITS,
        }
    }

    /// The element `index` places below the top has nothing to say of blocks that do not reach down to it.
    #[inline]
    fn shared_by(&self, length: usize, index: usize) -> u64 {
        let place = length + BITS - 1 - index;
        self.ring.below[place % KNOWN] | low_bits(index)
    }

    /// The least of these lengths at which the last two blocks are of the same classes and `equal`.
    pub(crate) fn find(
        &self,
        codes: &[u32],
        lengths: Lengths,
        mut equal: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        let mut shared = lengths.bits;
        let mut seen = AT_ONCE;
        while shared != 0 {
            let length = shared.trailing_zeros() as usize;
            if length > seen {
                for index in seen..seen + AT_ONCE {
                    shared &= self.shared_by(codes.len(), index);
                }
                seen += AT_ONCE;
            } else if equal(length) {
                return Some(length);
            } else {
                shared &= shared - 1;
            }
        }
        lengths.far.then(|| find_far(codes, self.most, equal))?
    }
}

/// Lengths that two equal blocks may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lengths {
    bits: u64,
    far: bool,
}

impl Lengths {
    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0 && !self.far
    }
}

/// Bits 0 to `last`.
#[inline]
fn low_bits(last: usize) -> u64 {
    u64::MAX >> (BITS - 1 - last)
}

/// [`Echoes::find`] among the lengths that are no bits.
#[cold]
fn find_far(codes: &[u32], most: usize, mut equal: impl FnMut(usize) -> bool) -> Option<usize> {
    let (top, below) = codes.split_last()?;
    let far = below.iter().rev().zip(1..=most).skip(BITS - 1);
    far.filter(|(code, _)| *code == top)
        .map(|(_, length)| length)
        .find(|length| equal(*length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What was forgotten is found again, and nothing that is left out could have been a block.
        #[test]
        fn the_least_length_is_found(
            most in 1usize..90,
            swings in prop::collection::vec((0usize..700, 0usize..700, 1u32..9), 1..8),
        ) {
            let mut echoes = Echoes::new(most);
            let mut codes: Vec<u32> = Vec::new();
            for (up, down, symbols) in swings {
                for step in 0..up + down {
                    if step < up {
                        let code = (step * step / 7) as u32 % symbols;
                        echoes.push(codes.len(), code);
                        codes.push(code);
                    } else {
                        let length = codes.len().saturating_sub(1 + step % 40);
                        echoes.truncate(&codes, length);
                        codes.truncate(length);
                    }
                    let end = codes.len();
                    let equal = |length: usize| {
                        2 * length <= end && codes[end - 2 * length..end - length] == codes[end - length..]
                    };
                    let found = (end > 0)
                        .then(|| echoes.find(&codes, echoes.lengths(end), equal))
                        .flatten();
                    prop_assert_eq!(found, (1..=most).find(|length| equal(*length)));
                }
            }
        }
    }
}
