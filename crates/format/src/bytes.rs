//! Reading and writing little-endian integers in byte slices without panicking.

/// The `N` bytes at `at`, or `None` beyond the end.
#[must_use]
#[inline]
pub fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// The `u32` at `at`, or `None` beyond the end.
#[must_use]
#[inline]
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// The `u64` at `at`, or `None` beyond the end.
#[must_use]
#[inline]
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}

/// Writes `value` at `at`; false, and nothing written, beyond the end.
pub fn put_u32(bytes: &mut [u8], at: usize, value: u32) -> bool {
    put(bytes, at, &value.to_le_bytes())
}

/// Writes `value` at `at`; false, and nothing written, beyond the end.
pub fn put_u64(bytes: &mut [u8], at: usize, value: u64) -> bool {
    put(bytes, at, &value.to_le_bytes())
}

/// Writes `value` at `at`; false, and nothing written, beyond the end.
#[inline]
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> bool {
    let Some(end) = at.checked_add(value.len()) else {
        return false;
    };
    match bytes.get_mut(at..end) {
        Some(place) => {
            place.copy_from_slice(value);
            true
        }
        None => false,
    }
}
