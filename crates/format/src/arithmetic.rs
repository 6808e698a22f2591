//! The interval of an arithmetic coder: carry-free, 32 bits, in integers, so that every machine computes the same.

/// Probabilities are out of 2^16.
pub const ONE: u32 = 1 << 16;

/// How much a decision counts against the n before it: 2^16 / (n + 1.5).
#[must_use]
pub const fn rates<const N: usize>() -> [u32; N] {
    let mut table = [0; N];
    let mut n = 0;
    while n < N {
        table[n] = (2 << 16) / (2 * n as u32 + 3);
        n += 1;
    }
    table
}

/// The numbers that the bytes to come may begin. All zeros are the whole.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interval {
    low: u32,
    /// How far the upper end is below the highest number.
    above: u32,
}

impl Interval {
    /// The lowest number in it.
    #[inline]
    #[must_use]
    pub fn low(self) -> u32 {
        self.low
    }

    /// The highest.
    #[inline]
    #[must_use]
    pub fn high(self) -> u32 {
        !self.above
    }

    /// Where it is divided: up to here the bit is 1, with probability `p` of 2^16.
    #[inline]
    #[must_use]
    pub fn middle(self, p: u32) -> u32 {
        let range = u64::from(self.high() - self.low);
        let p = u64::from(p.clamp(1, ONE - 1));
        self.low + ((range * p) >> 16) as u32
    }

    /// Keeps the part of a bit.
    #[inline]
    pub fn narrow(&mut self, middle: u32, bit: bool) {
        // Which it is cannot be foreseen: no branch.
        let (low, above) = (middle.wrapping_add(1), !middle);
        self.low = if bit { self.low } else { low };
        self.above = if bit { above } else { self.above };
    }

    /// The leading byte, once it is settled.
    #[inline]
    pub fn settled(&mut self) -> Option<u8> {
        let high = self.high();
        if (self.low ^ high) >> 24 != 0 {
            return None;
        }
        self.low <<= 8;
        self.above <<= 8;
        Some((high >> 24) as u8)
    }
}
