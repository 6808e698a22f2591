//! The heap of the command line: where no memory can be had, the process ends with a message and a status of its own.
#![allow(unsafe_code)]

use rustix::process::{Resource, getrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

unsafe extern "C" {
    fn _exit(status: c_int) -> !;
}

/// The system's heap. Where it has nothing left (`ulimit -v`), the standard library would abort the process, and only an
/// allocator can do otherwise on a stable compiler: this one says so in one line, and ends the process with the status
/// that [`Heap::exhausted_means`] was told.
///
/// It is for binaries: `try_reserve` never fails where this is the global allocator.
#[derive(Debug, Clone, Copy)]
pub struct Heap;

/// Without being told: what could not be done.
static STATUS: AtomicU8 = AtomicU8::new(2);

impl Heap {
    /// The exit status where no memory can be had, from here on.
    pub fn exhausted_means(status: u8) {
        STATUS.store(status, Ordering::Relaxed);
    }

    /// Ends the process, as nothing was found for `wanted` bytes. Allocates nothing.
    #[cold]
    fn exhausted(wanted: usize) -> ! {
        // Of threads that find nothing at the same time, one says so, and ends them all.
        static IS_TOLD: AtomicBool = AtomicBool::new(false);
        while IS_TOLD.swap(true, Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        // Longer than the message can be.
        let mut text = [0_u8; 160];
        let mut rest = &mut text[..];
        let limit = getrlimit(Resource::As).current.map(|bytes| bytes >> 10);
        let _ = match limit {
            Some(limit) => writeln!(
                rest,
                "lockstep: expected memory for {wanted} bytes more, found none (ulimit -v is {limit})"
            ),
            None => writeln!(
                rest,
                "lockstep: expected memory for {wanted} bytes more, found none"
            ),
        };
        let unused = rest.len();
        let used = text.len() - unused;
        // Not by `std`: whoever holds its lock may be waiting for this very memory.
        let _ = rustix::io::write(rustix::stdio::stderr(), &text[..used]);
        // SAFETY: a system call. Handlers that `exit` calls might want memory.
        unsafe { _exit(STATUS.load(Ordering::Relaxed).into()) }
    }

    #[inline]
    fn found(memory: *mut u8, wanted: usize) -> *mut u8 {
        if memory.is_null() {
            Self::exhausted(wanted);
        }
        memory
    }
}

// SAFETY: memory is the system's allocator's, asked for as we are asked.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as we are called.
        Self::found(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as we are called.
        Self::found(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as we are called.
        Self::found(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as we are called.
        unsafe { System.dealloc(memory, layout) }
    }
}
