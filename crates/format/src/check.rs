//! CRC-32C (Castagnoli), the checksum of everything we commit, extendable byte run by byte run.

const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut i = 0;
    while i < 256 {
        let mut value = i as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ POLYNOMIAL
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
};

/// The checksum of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    extend(0, bytes)
}

/// The checksum of what `previous` is the checksum of, followed by `bytes`:
/// `extend(crc32c(a), b) == crc32c(a ++ b)`.
#[must_use]
pub fn extend(previous: u32, bytes: &[u8]) -> u32 {
    let mut state = !previous;
    for byte in bytes {
        state = (state >> 8) ^ TABLE[((state ^ u32::from(*byte)) & 0xff) as usize];
    }
    !state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(extend(crc32c(b"1234"), b"56789"), 0xe306_9283);
    }
}
