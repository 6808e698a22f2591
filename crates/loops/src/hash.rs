//! A 128-bit hash of a sequence of numbers, for content addresses.

/// Hashes 64-bit numbers in order into 128 bits.
///
/// Stable across machines and versions. Well mixed, not cryptographic: who could choose the input could make collisions,
/// so tables that are addressed by it compare the contents too.
#[derive(Debug, Clone)]
pub struct Hasher128 {
    low: u64,
    high: u64,
}

/// Odd constants with about half of their bits set, nothing more (digits of pi and e).
const PI: u64 = 0x243f_6a88_85a3_08d3;
const E: u64 = 0xb7e1_5162_8aed_2a6b;

impl Default for Hasher128 {
    fn default() -> Self {
        Self { low: PI, high: E }
    }
}

impl Hasher128 {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one number.
    #[inline]
    pub fn number(&mut self, number: u64) {
        self.low = fold(self.low ^ number, E).wrapping_add(number);
        self.high = fold(self.high.rotate_left(23) ^ number, PI | 1).wrapping_add(self.low);
    }

    /// Adds another hash.
    #[inline]
    pub fn hash(&mut self, hash: u128) {
        self.number(hash as u64);
        self.number((hash >> 64) as u64);
    }

    /// Adds bytes, and their number, so that `"ab" "c"` differs from `"a" "bc"`.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    /// The hash of what was added.
    #[must_use]
    #[inline]
    pub fn finish(&self) -> u128 {
        let low = fold(self.low ^ self.high.rotate_left(32), E);
        let high = fold(self.high ^ low, PI | 1) ^ self.low;
        u128::from(low) | (u128::from(high) << 64)
    }
}

/// The two halves of a 64 x 64 bit product, mixed: every bit of the result depends on every bit of `a`.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn of(numbers: &[u64]) -> u128 {
        let mut hasher = Hasher128::new();
        numbers.iter().for_each(|number| hasher.number(*number));
        hasher.finish()
    }

    #[test]
    fn near_inputs_have_far_hashes() {
        let mut seen = HashSet::new();
        let mut halves = (HashSet::new(), HashSet::new());
        for a in 0..300 {
            for b in 0..300 {
                let hash = of(&[a, b]);
                assert!(seen.insert(hash));
                assert!(halves.0.insert(hash as u64));
                assert!(halves.1.insert((hash >> 64) as u64));
            }
        }
        for length in 0..1000 {
            assert!(seen.insert(of(&vec![0; length])) || length == 2);
        }
    }

    #[test]
    fn each_input_bit_changes_about_half_of_the_output() {
        for bit in 0..64 {
            let changed = (of(&[1, 2, 3]) ^ of(&[1, 2 ^ (1 << bit), 3])).count_ones();
            assert!((32..96).contains(&changed), "bit {bit} changes {changed}");
        }
    }

    #[test]
    fn stable() {
        assert_eq!(of(&[]), Hasher128::new().finish());
        let mut a = Hasher128::new();
        a.bytes(b"ab");
        a.bytes(b"c");
        let mut b = Hasher128::new();
        b.bytes(b"a");
        b.bytes(b"bc");
        assert_ne!(a.finish(), b.finish());
    }
}
