//! Which versions a build of the probe writes and reads: bytes in its library, by which a recorder
//! sees before it starts a program that the two belong together.

use crate::bytes::u32_at;
use crate::{plan, process};

/// Before the versions.
const MAGIC: [u8; 16] = *b"\x7flockstep-probe\n";
/// Bytes of a stamp.
pub const SIZE: usize = MAGIC.len() + 8;

/// The stamp of this build.
#[must_use]
pub const fn stamp() -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    let versions = [process::VERSION.to_le_bytes(), plan::VERSION.to_le_bytes()];
    let mut at = 0;
    while at < SIZE {
        bytes[at] = match at.checked_sub(MAGIC.len()) {
            None => MAGIC[at],
            Some(rest) => versions[rest / 4][rest % 4],
        };
        at += 1;
    }
    bytes
}

/// The versions (process file, plan) in the stamp that a library has, if it has one.
#[must_use]
pub fn find(library: &[u8]) -> Option<(u32, u32)> {
    let at = library
        .windows(MAGIC.len())
        .position(|bytes| bytes == MAGIC)?;
    let versions = at + MAGIC.len();
    Some((u32_at(library, versions)?, u32_at(library, versions + 4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_found() {
        let mut library = vec![0x7f; 100];
        library.extend(stamp());
        assert_eq!(find(&library), Some((process::VERSION, plan::VERSION)));
        for length in 0..library.len() {
            let found = find(&library[..length]);
            assert!(found.is_none() || length == library.len());
        }
    }
}
