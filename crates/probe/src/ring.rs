//! What `--keep last` drops: the oldest segments of the process's threads.
//!
//! ```text
//!  thread A  ─[ segment ]─[ segment ]─[ segment at work ]
//!  thread B  ───────[ segment ]───────────────[ at work ]
//!                ^ the queue: complete segments of all threads, oldest first
//! ```
//! In such a run the file consists of slots of [`DATA_CHUNK`] bytes. A segment is one thread chunk as
//! large as a slot; it begins with a new encoder and with the calls that are open, as a forked
//! child's trace does, so that what was before it can go. When the file may not grow any more, the
//! slot of the oldest complete segment becomes zeros and is used again. The segments at work are never
//! dropped, so that every thread keeps at least its last events and its open calls.

use crate::syscall;
use lockstep_format::process::DATA_CHUNK;

/// Most segments that are remembered: 64 GiB of them.
const MOST: usize = 1 << 20;

/// A complete segment.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    /// Where its chunk is mapped.
    pub at: *mut u8,
    /// Where it lies in the file.
    pub offset: u64,
    /// Events in it, without the calls that were open at its beginning.
    pub events: u64,
}

/// Complete segments of this process, oldest first. All zeros is an empty queue.
pub struct Ring {
    /// Room for [`MOST`], which becomes memory as it is used; null before the first.
    segments: *mut Segment,
    first: usize,
    count: usize,
}

impl Ring {
    /// Puts a segment behind the others. One that finds no room is never dropped.
    pub fn push(&mut self, segment: Segment) {
        if self.segments.is_null() {
            let Ok(memory) = syscall::map(MOST * size_of::<Segment>()) else {
                return;
            };
            self.segments = memory.cast();
        }
        if self.count < MOST {
            let index = (self.first + self.count) % MOST;
            // SAFETY: inside the mapping.
            unsafe { self.segments.add(index).write(segment) };
            self.count += 1;
        }
    }

    /// The oldest.
    pub fn pop(&mut self) -> Option<Segment> {
        if self.count == 0 || self.segments.is_null() {
            return None;
        }
        // SAFETY: inside the mapping, and written by `push`.
        let segment = unsafe { self.segments.add(self.first).read() };
        self.first = (self.first + 1) % MOST;
        self.count -= 1;
        Some(segment)
    }
}

/// Makes a segment's slot zeros, which readers take for unused.
///
/// # Safety
/// The slot is mapped, and nobody writes to it any more.
pub unsafe fn clear(at: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { core::ptr::write_bytes(at, 0, DATA_CHUNK as usize) };
}
