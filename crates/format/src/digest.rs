//! A short digest of text: what stands for a name that must not be told (`--redact`), and what tells
//! two choices of functions apart in file names.
//!
//! 64 bits of FNV-1a. Not for secrets: whoever guesses the text recognises its digest.

/// A digest while it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// The digest of `bytes`, in hexadecimal.
    #[must_use]
    pub fn of(bytes: &[u8]) -> [u8; 16] {
        Self::default().with(bytes).hexadecimal()
    }

    /// With `bytes` behind what it has seen.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Self {
        let eat = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(bytes.iter().fold(self.0, eat))
    }

    /// As text: sixteen digits.
    #[must_use]
    pub fn hexadecimal(self) -> [u8; 16] {
        let mut text = [0; 16];
        for (index, place) in text.iter_mut().enumerate() {
            let digit = (self.0 >> (60 - 4 * index)) as u8 & 15;
            *place = if digit < 10 {
                b'0' + digit
            } else {
                b'a' + digit - 10
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        assert_eq!(&Digest::of(b""), b"cbf29ce484222325");
        assert_eq!(&Digest::of(b"a"), b"af63dc4c8601ec8c");
        assert_eq!(&Digest::of(b"foobar"), b"85944171f73967e8");
    }
}
