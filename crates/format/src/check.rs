//! CRC-32C (Castagnoli), the checksum of everything we commit, extendable byte run by byte run.

const POLYNOMIAL: u32 = 0x82f6_3b78;

/// `TABLES[k][b]`: the checksum's change by byte `b` followed by `k` zero bytes, so that eight bytes
/// are taken at once ("slicing by 8").
const TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0u32; 256]; 8];
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
        tables[0][i] = value;
        i += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut i = 0;
        while i < 256 {
            let shorter = tables[k - 1][i];
            tables[k][i] = (shorter >> 8) ^ tables[0][(shorter & 0xff) as usize];
            i += 1;
        }
        k += 1;
    }
    tables
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
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        let word = u64::from_le_bytes(*eight) ^ u64::from(state);
        let at = |k: usize| TABLES[7 - k][(word >> (8 * k) & 0xff) as usize];
        state = at(0) ^ at(1) ^ at(2) ^ at(3) ^ at(4) ^ at(5) ^ at(6) ^ at(7);
    }
    for byte in rest {
        state = (state >> 8) ^ TABLES[0][((state ^ u32::from(*byte)) & 0xff) as usize];
    }
    !state
}

/// The checksum of `length` bytes with the checksum `second`, behind others with the checksum `first`:
/// `join(crc32c(a), crc32c(b), b.len()) == crc32c(a ++ b)`.
#[must_use]
pub fn join(first: u32, second: u32, length: usize) -> u32 {
    // Bits behind the first ones multiply their polynomial: by x for each.
    let mut moved = first;
    let mut power = BYTE;
    let mut left = length;
    while left > 0 {
        if left & 1 == 1 {
            moved = product(moved, power);
        }
        power = product(power, power);
        left >>= 1;
    }
    moved ^ second
}

/// x to the eighth, the highest bit being that of 1.
const BYTE: u32 = 1 << (31 - 8);

/// The product of two polynomials, but for multiples of that of the checksum.
fn product(one: u32, other: u32) -> u32 {
    let mut sum = 0;
    let mut moved = other;
    for bit in (0..32).rev() {
        if one >> bit & 1 == 1 {
            sum ^= moved;
        }
        moved = (moved >> 1) ^ (POLYNOMIAL * (moved & 1));
    }
    sum
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

    #[test]
    fn checks_of_pieces_make_that_of_the_whole() {
        let bytes: [u8; 300] = core::array::from_fn(|i| (i * 59 + 3) as u8);
        for end in [0, 1, 7, 64, 299, 300] {
            let (one, other) = bytes.split_at(end);
            let joined = join(crc32c(one), crc32c(other), other.len());
            assert_eq!(joined, crc32c(&bytes));
        }
    }

    #[test]
    fn eight_bytes_at_once_are_eight_single_ones() {
        let bytes: [u8; 61] = core::array::from_fn(|i| (i * 37 + 11) as u8);
        for start in 0..bytes.len() {
            let single = bytes[start..]
                .iter()
                .fold(0, |sum, byte| extend(sum, core::slice::from_ref(byte)));
            assert_eq!(crc32c(&bytes[start..]), single);
        }
    }
}
