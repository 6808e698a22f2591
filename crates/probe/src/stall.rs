//! How long the slow path took, entry by entry, for `bench stall`: only where `LOCKSTEP_STALL` names a
//! file that is not there yet. Otherwise it costs a load and a branch a slow path.
//!
//! The file is of native 64-bit words: ticks and nanoseconds of the monotonic clock when it began, the same
//! at the latest entry, and the number of entries; from word 8 on one an entry: its ticks in the low
//! half, saturated, and the routine's kind in the high one. What does not fit is counted and not kept.

use crate::planner::Environment;
use crate::syscall::{self, MADV_POPULATE_WRITE, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR};
use crate::text::Text;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const HEAD: usize = 8;
const ENTRIES: usize = 1 << 20;
const LENGTH: usize = 8 * (HEAD + ENTRIES);

static LOG: AtomicPtr<AtomicU64> = AtomicPtr::new(null_mut());

/// Begins the file, if one is asked for; in the constructor.
pub fn start(environment: Environment) {
    let Some(name) = environment.variable("LOCKSTEP_STALL") else {
        return;
    };
    let mut path = Text::<4352>::new();
    path.push(name);
    path.push(b"\0");
    if !path.is_whole() {
        return;
    }
    let Ok(file) = syscall::open(path.bytes(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW) else {
        return;
    };
    if file.allocate(0, LENGTH as u64).is_err() {
        return;
    }
    let Ok(at) = file.map_shared(0, LENGTH) else {
        return;
    };
    // SAFETY: just mapped. Else the log's own page faults would be taken for the probe's.
    let _ = unsafe { syscall::advise(at, LENGTH, MADV_POPULATE_WRITE) };
    LOG.store(at.cast(), Ordering::Release);
    stamp(0);
}

/// The time before the slow path; 0 where nobody asks.
pub fn begin() -> u64 {
    if LOG.load(Ordering::Acquire).is_null() {
        0
    } else {
        ticks()
    }
}

/// Notes what passed since [`begin`] said `before`.
pub fn end(before: u64, kind: u64) {
    if before == 0 {
        return;
    }
    let passed = ticks().wrapping_sub(before).min(u64::from(u32::MAX));
    let Some(count) = word(4) else {
        return;
    };
    let index = count.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = word(HEAD + (index as usize).min(ENTRIES)) {
        place.store(passed | kind << 32, Ordering::Relaxed);
        stamp(2);
    }
}

/// The two clocks, into the words from `at` on.
fn stamp(at: usize) {
    for (offset, value) in [ticks(), syscall::monotonic()].into_iter().enumerate() {
        if let Some(place) = word(at + offset) {
            place.store(value, Ordering::Relaxed);
        }
    }
}

fn word(index: usize) -> Option<&'static AtomicU64> {
    let log = LOG.load(Ordering::Acquire);
    if log.is_null() || index >= HEAD + ENTRIES {
        return None;
    }
    // SAFETY: mapped for ever, index inside; other threads use the same atomics.
    unsafe { log.add(index).as_ref() }
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
