//! Where a codec keeps words: an array in memory that is zero already, or something that grows.

use core::ops::Range;

/// Words that are zero until they are written.
pub trait Memory {
    /// At least the first `count` words, to be written.
    fn words(&mut self, count: usize) -> &mut [u32];
    /// The words that are there by now; those behind them are zero.
    fn present(&self) -> &[u32];
}

impl<const N: usize> Memory for [u32; N] {
    #[inline]
    fn words(&mut self, _: usize) -> &mut [u32] {
        self
    }

    #[inline]
    fn present(&self) -> &[u32] {
        self
    }
}

/// The addresses of the first `count` words, as far as they are there.
pub fn beginning(words: &[u32], count: usize) -> Range<usize> {
    let words = words.get(..count).unwrap_or(words).as_ptr_range();
    words.start.addr()..words.end.addr()
}

/// Memory for tests and measurements.
#[cfg(test)]
impl Memory for std::vec::Vec<u32> {
    fn words(&mut self, count: usize) -> &mut [u32] {
        if self.len() < count {
            self.resize(count.next_power_of_two().max(1024), 0);
        }
        self
    }

    fn present(&self) -> &[u32] {
        self
    }
}
