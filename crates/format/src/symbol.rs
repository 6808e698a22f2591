//! Symbols: what one event of a thread is called in the stream.
//!
//! A stream is a sequence of 32-bit symbols. Below [`FIRST_FUNCTION`] they are control symbols;
//! from there on a symbol is the call of a function, numbered per process: each image gets a
//! dense block of symbols when it is loaded (main image first, so equal ranks have equal streams).

/// The innermost open call returned.
pub const RETURN: u32 = 0;
/// The innermost open call hands over to the next call and ends with it (a tail call). The next
/// symbol is a function; one later [`RETURN`] closes both.
pub const TAIL: u32 = 1;
/// First symbol that names a function; 2..16 are reserved.
pub const FIRST_FUNCTION: u32 = 16;

/// The word that stands for `symbol` in the staging area of a thread: the symbol in the low half,
/// a check in the high half, so that no single flipped bit reads as another event and no word is 0.
#[must_use]
pub const fn staging_word(symbol: u32) -> u64 {
    (symbol as u64) | ((check_half(symbol) as u64) << 32)
}

/// The symbol of a staging word, or `None` where the check does not hold (0 included).
#[must_use]
pub const fn from_staging_word(word: u64) -> Option<u32> {
    let symbol = word as u32;
    if (word >> 32) as u32 == check_half(symbol) {
        Some(symbol)
    } else {
        None
    }
}

const fn check_half(symbol: u32) -> u32 {
    !symbol.rotate_left(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_flip_is_noticed_and_no_word_is_zero() {
        for symbol in [0, 1, 16, 17, 65_535, 65_536, 0xffff_ffff, 0xffff_0000] {
            let word = staging_word(symbol);
            assert_ne!(word, 0);
            assert_eq!(from_staging_word(word), Some(symbol));
            for bit in 0..64 {
                assert_eq!(from_staging_word(word ^ (1 << bit)), None);
            }
        }
        assert_eq!(from_staging_word(0), None);
    }
}
