//! One thread more, where there is memory for it.

use memmap2::MmapMut;
use std::io;
use std::thread::Builder;

/// Bytes of stack that are enough for what does not go deep.
pub const STACK: usize = 2 << 20;

/// What a thread takes beside its stack: for one, the stack on which a signal handler of `std` runs, and whatever threads
/// that have just been started are still about to take.
const BESIDE: usize = 1 << 20;

/// What starts a thread with so many bytes of stack. Where one is started with just enough memory for the stack, `std` panics
/// in it, or aborts the process, instead of returning an error: so all of it is asked for first, and given back.
///
/// # Errors
/// Where there is not enough memory (`ulimit -v`).
pub fn thread(stack: usize) -> io::Result<Builder> {
    MmapMut::map_anon(stack + BESIDE)?;
    Ok(Builder::new().stack_size(stack))
}
