//! The process's mappings, as the kernel lists them.

use crate::syscall::{self, O_RDONLY};

/// One mapping: start, end.
pub type Range = (u64, u64);

/// More mappings than any process may have unless its kernel was told otherwise.
const MOST: usize = 1 << 17;

/// The mappings of a moment, in memory of its own, and what we have mapped since.
pub struct Maps {
    at: *mut Range,
    count: usize,
}

impl Maps {
    /// As they are now.
    pub fn read() -> Option<Self> {
        let mut maps = Self {
            at: syscall::map(MOST * size_of::<Range>()).ok()?.cast(),
            count: 0,
        };
        each(|range| {
            maps.insert(maps.count, range);
            false
        });
        Some(maps)
    }

    /// The mappings, in ascending order.
    pub fn ranges(&self) -> &[Range] {
        // SAFETY: mapped, aligned, written up to here.
        unsafe { core::slice::from_raw_parts(self.at, self.count) }
    }

    /// The mapping that contains `address`.
    pub fn containing(&self, address: u64) -> Option<Range> {
        let after = self.ranges().partition_point(|range| range.0 <= address);
        let range = *self.ranges().get(after.checked_sub(1)?)?;
        (address < range.1).then_some(range)
    }

    /// Adds what was mapped in a gap.
    pub fn add(&mut self, range: Range) {
        let index = self.ranges().partition_point(|known| known.0 < range.0);
        self.insert(index, range);
    }

    fn insert(&mut self, index: usize, range: Range) {
        if self.count == MOST || index > self.count {
            return;
        }
        // SAFETY: index <= count < MOST.
        unsafe {
            let place = self.at.add(index);
            core::ptr::copy(place, place.add(1), self.count - index);
            place.write(range);
        }
        self.count += 1;
    }
}

impl Drop for Maps {
    fn drop(&mut self) {
        // SAFETY: no reference outlives it.
        unsafe { syscall::unmap(self.at.cast(), MOST * size_of::<Range>()) };
    }
}

/// Calls `visit` for every mapping in ascending order until it returns true.
pub fn each(mut visit: impl FnMut(Range) -> bool) {
    each_line(|range, _| visit(range));
}

/// Calls `visit` for every mapping that can be executed and comes from no file.
pub fn each_made_code(mut visit: impl FnMut(Range)) {
    each_line(|range, is_made_code| {
        if is_made_code {
            visit(range);
        }
        false
    });
}

/// A line of the list: `START-END rwxp OFFSET DEVICE INODE   NAME`.
fn each_line(mut visit: impl FnMut(Range, bool) -> bool) {
    const START: u32 = 0;
    const END: u32 = 1;
    const FLAGS: u32 = 2;
    const INODE: u32 = 5;
    const NAME: u32 = 6;
    let Ok(file) = syscall::open(b"/proc/self/maps\0", O_RDONLY) else {
        return;
    };
    let mut buffer = [0u8; 2048];
    let mut range = (0u64, 0u64);
    let mut part = START;
    let (mut can_run, mut has_file, mut has_name) = (false, false, false);
    loop {
        let length = match file.read(&mut buffer) {
            Ok(length) if length > 0 => length,
            _ => return,
        };
        for byte in buffer.iter().take(length) {
            match (part, byte) {
                (_, b'\n') => {
                    if visit(range, can_run && !has_file && !has_name) {
                        return;
                    }
                    range = (0, 0);
                    part = START;
                    (can_run, has_file, has_name) = (false, false, false);
                }
                (START, b'-') => part = END,
                (START, byte) => range.0 = range.0 << 4 | hexadecimal(*byte),
                (NAME, b' ') => {}
                (_, b' ') => part += 1,
                (END, byte) => range.1 = range.1 << 4 | hexadecimal(*byte),
                (FLAGS, b'x') => can_run = true,
                (INODE, byte) => has_file |= *byte != b'0',
                // The kernel's own have names in brackets.
                (NAME, _) => has_name = true,
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
