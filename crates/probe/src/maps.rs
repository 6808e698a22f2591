//! The process's mappings, as the kernel lists them.

use crate::syscall::{self, O_RDONLY};

/// One mapping: start, end.
pub type Range = (u64, u64);

/// More mappings than any process may have unless its kernel was told otherwise.
const MOST: usize = 1 << 17;

/// The mappings of the moment when they were read, in memory of their own, and what is known to have
/// been mapped and unmapped since. The kernel takes a fifth of a millisecond to list those of an MPI rank,
/// so that they are not read for every library that is loaded. What it says to be free may be taken, and
/// the other way round: whoever maps by it sees. All zeros is a list that was not read yet.
pub struct Maps {
    at: *mut Range,
    count: usize,
}

impl Maps {
    /// Not read yet.
    pub const UNREAD: Self = Self {
        at: core::ptr::null_mut(),
        count: 0,
    };

    /// Whether they were read.
    pub fn is_read(&self) -> bool {
        self.count > 0
    }

    /// As they are now. False where there is no memory for them.
    pub fn read(&mut self) -> bool {
        if self.at.is_null() {
            match syscall::map(MOST * size_of::<Range>()) {
                Ok(at) => self.at = at.cast(),
                Err(_) => return false,
            }
        }
        self.count = 0;
        each(|range| {
            self.insert(self.count, range);
            false
        });
        true
    }

    /// The mappings, in ascending order of their starts; those of different times may overlap.
    pub fn ranges(&self) -> &[Range] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: mapped, aligned, written up to here.
        unsafe { core::slice::from_raw_parts(self.at, self.count) }
    }

    /// Adds what was mapped since.
    pub fn add(&mut self, range: Range) {
        let index = self.ranges().partition_point(|known| known.0 < range.0);
        if self.ranges().get(index) != Some(&range) {
            self.insert(index, range);
        }
    }

    /// Removes what was unmapped since: all that lies in `range`.
    pub fn remove(&mut self, range: Range) {
        let from = self.ranges().partition_point(|known| known.0 < range.0);
        let inside = |known: &&Range| known.0 < range.1 && known.1 <= range.1;
        let gone = self.ranges().iter().skip(from).take_while(inside).count();
        if gone > 0 {
            // SAFETY: from + gone <= count.
            unsafe {
                let place = self.at.add(from);
                core::ptr::copy(place.add(gone), place, self.count - from - gone);
            }
            self.count -= gone;
        }
    }

    fn insert(&mut self, index: usize, range: Range) {
        if self.at.is_null() || self.count == MOST || index > self.count {
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
