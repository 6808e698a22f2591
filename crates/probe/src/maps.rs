//! The process's mappings, as the kernel lists them.

use crate::syscall::{self, O_RDONLY};

/// One mapping: start, end.
pub type Range = (u64, u64);

/// Calls `visit` for every mapping in ascending order until it returns true.
pub fn each(mut visit: impl FnMut(Range) -> bool) {
    let Ok(file) = syscall::open(b"/proc/self/maps\0", O_RDONLY) else {
        return;
    };
    let mut buffer = [0u8; 2048];
    let mut range = (0u64, 0u64);
    // What of a line has been read: the start, the end, the rest (which is skipped).
    let mut part = 0;
    loop {
        let length = match file.read(&mut buffer) {
            Ok(length) if length > 0 => length,
            _ => return,
        };
        for byte in buffer.iter().take(length) {
            match (part, byte) {
                (_, b'\n') => {
                    if visit(range) {
                        return;
                    }
                    range = (0, 0);
                    part = 0;
                }
                (0, b'-') => part = 1,
                (1, b' ') => part = 2,
                (0, byte) => range.0 = range.0 << 4 | hexadecimal(*byte),
                (1, byte) => range.1 = range.1 << 4 | hexadecimal(*byte),
                _ => {}
            }
        }
    }
}

fn hexadecimal(byte: u8) -> u64 {
    u64::from(match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => 0,
    })
}

/// The mapping that contains `address`.
pub fn containing(address: u64) -> Option<Range> {
    let mut found = None;
    each(|range| {
        if (range.0..range.1).contains(&address) {
            found = Some(range);
        }
        range.1 > address
    });
    found
}
