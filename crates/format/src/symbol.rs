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

/// Symbols are below this: a staging word has 24 bits for one.
pub const SYMBOLS: u32 = 1 << 24;

/// Bit of an event word: the symbol is a whole call, with its return.
const LEAF: u32 = 1 << 24;
/// Where the check begins.
const CHECK: u32 = 25;

/// The event word of `symbol`, an immediate in a stub.
///
/// ```text
/// 31     25   24   23                     0
/// ┌────────┬──────┬────────────────────────┐
/// │ check  │ leaf │ symbol                 │
/// └────────┴──────┴────────────────────────┘
/// ```
/// No single flipped bit makes another event of it, and no event word is 0. The *leaf* bit says that
/// the one symbol stands for a call and its return; it is for counting, since the function's
/// mechanism says the same to readers.
#[must_use]
pub const fn event_word(symbol: u32, is_leaf: bool) -> u32 {
    let low = (symbol & (SYMBOLS - 1)) | if is_leaf { LEAF } else { 0 };
    low | (check_bits(low) << CHECK)
}

/// What lies in the staging area for an event: the event word in the low half; in the high half, of
/// a call, the low half of its return address (0 or all ones elsewhere).
///
/// The low half is written last: a word whose low half is 0 is none.
#[must_use]
pub const fn staging_word(symbol: u32) -> u64 {
    event_word(symbol, false) as u64
}

/// An event in the staging area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Staged {
    /// Its symbol.
    pub symbol: u32,
    /// The symbol stands for a call and its return.
    pub is_leaf: bool,
    /// Low half of the return address, of a call. No check covers it.
    pub return_address: u32,
}

/// The event of a staging word, or `None` where the check does not hold (0 included).
#[must_use]
pub const fn from_staging_word(word: u64) -> Option<Staged> {
    let low = word as u32;
    if low >> CHECK != check_bits(low & (2 * SYMBOLS - 1)) {
        return None;
    }
    Some(Staged {
        symbol: low & (SYMBOLS - 1),
        is_leaf: low & LEAF != 0,
        return_address: (word >> 32) as u32,
    })
}

/// Seven bits of which each bit of `low` turns exactly one.
const fn check_bits(low: u32) -> u32 {
    let folded = low ^ (low >> 7) ^ (low >> 14) ^ (low >> 21);
    (folded ^ 0x55) & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_single_flip_is_noticed_and_no_word_is_zero() {
        for symbol in [0, 1, 16, 17, 65_535, 65_536, 0xff_ffff, 0xaa_5555] {
            for is_leaf in [false, true] {
                let word = event_word(symbol, is_leaf);
                assert_ne!(word, 0);
                let high = 0x1234_5678_u64 << 32;
                let staged = Staged {
                    symbol,
                    is_leaf,
                    return_address: 0x1234_5678,
                };
                assert_eq!(from_staging_word(high | u64::from(word)), Some(staged));
                for bit in 0..32 {
                    assert_eq!(from_staging_word(u64::from(word ^ (1 << bit))), None);
                }
            }
        }
        assert_eq!(from_staging_word(0), None);
        assert_eq!(from_staging_word(0xffff_ffff << 32), None);
    }
}
