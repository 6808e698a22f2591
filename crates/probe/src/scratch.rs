//! Memory for what is needed for a moment while images are patched: one mapping that stays, given out piece
//! by piece. A mapping for each piece costs two system calls and a page fault, hundreds of times in a program
//! that loads its libraries one by one. One at a time: in the constructor, or where images are loaded.

use crate::syscall;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Room for all pieces of an ordinary program; only what is touched takes memory.
const ROOM: usize = 4 << 20;
const ALIGNMENT: usize = 64;

static MEMORY: AtomicPtr<u8> = AtomicPtr::new(null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// A piece, in which anything may stand. Those that were taken last must be dropped first.
pub struct Piece {
    at: *mut u8,
    length: usize,
    /// What was used before; nothing where it is a mapping of its own.
    before: Option<usize>,
}

impl Piece {
    /// A piece of `length` bytes.
    pub fn new(length: usize) -> Option<Self> {
        let mut memory = MEMORY.load(Ordering::Relaxed);
        if memory.is_null() {
            memory = syscall::map(ROOM).ok()?;
            MEMORY.store(memory, Ordering::Relaxed);
        }
        let before = USED.load(Ordering::Relaxed);
        let end = before.checked_add(length)?.next_multiple_of(ALIGNMENT);
        if end > ROOM {
            let at = syscall::map(length).ok()?;
            return Some(Self {
                at,
                length,
                before: None,
            });
        }
        USED.store(end, Ordering::Relaxed);
        Some(Self {
            // SAFETY: inside the mapping.
            at: unsafe { memory.add(before) },
            length,
            before: Some(before),
        })
    }

    /// Where it lies, aligned for everything.
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Its bytes, which become zeros.
    pub fn zeros(&mut self) -> &mut [u8] {
        // SAFETY: ours, of that length, initialised here.
        unsafe {
            self.at.write_bytes(0, self.length);
            core::slice::from_raw_parts_mut(self.at, self.length)
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        match self.before {
            Some(before) => USED.store(before, Ordering::Relaxed),
            // SAFETY: nobody uses it any more.
            None => unsafe { syscall::unmap(self.at, self.length) },
        }
    }
}
