//! Where arenas lie: in free memory from which a 32-bit displacement reaches the image.
//!
//! A main program's lies beside it. Those of libraries lie side by side in a [`pool`].

use crate::maps::Maps;
use crate::syscall;

const PAGE: u64 = 4096;
/// How far an arena may lie from its image: a 32-bit displacement, with room to spare.
const REACH: u64 = (1 << 31) - (1 << 20);
/// Free space that stays between an image and its arena, and between an arena and the next mapping.
const GAP: u64 = 64 * 1024;
/// The lowest address that a process may map on every system.
const LOWEST: u64 = 64 * 1024;

/// Maps the arena: below the image, where it is in nobody's way (above a program lies its heap);
/// else above it, as far away as it may be. Libraries' lie side by side in a pool.
pub fn place(extent: (u64, u64), is_pooled: bool, size: u64, maps: &mut Maps) -> Option<u64> {
    if !is_pooled {
        return find(extent, size, maps, syscall::map_at);
    }
    if let Some(at) = pool::take(extent, size) {
        return Some(at);
    }
    pool::end();
    let piece = pool::piece(size);
    if let Some(at) = find(extent, piece, maps, syscall::reserve_at) {
        pool::begin(at, piece);
        return pool::take(extent, size);
    }
    find(extent, size, maps, syscall::map_at)
}

/// Maps memory within reach of an image, by `map`.
fn find(
    extent: (u64, u64),
    size: u64,
    maps: &mut Maps,
    map: fn(usize, usize) -> Result<*mut u8, syscall::Errno>,
) -> Option<u64> {
    let takes = |at: &u64| map(*at as usize, size as usize).is_ok();
    if maps.is_read() {
        // Where something was mapped meanwhile, look again.
        maps.add(extent);
        let [below, _] = gaps(extent, size, maps);
        if let Some(at) = below.filter(takes) {
            return Some(at);
        }
    }
    if !maps.read() {
        return None;
    }
    let gaps = gaps(extent, size, maps);
    gaps.into_iter().flatten().find(takes)
}

/// Places for it in the gap below the image that is nearest, and in the gap above it that is farthest.
fn gaps((low, high): (u64, u64), size: u64, maps: &Maps) -> [Option<u64>; 2] {
    let floor = high.saturating_sub(REACH).max(LOWEST);
    let ceiling = low.saturating_add(REACH);
    let mut below = None;
    let mut above = None;
    let mut consider = |start: u64, next: u64| {
        let start = start.max(floor);
        let from = start.saturating_add(GAP);
        let to = next.min(ceiling).saturating_sub(GAP);
        if to < from || to - from < size {
            return;
        }
        let at = (to - size) & !(PAGE - 1);
        if next <= low {
            below = Some(at);
        } else if start >= high {
            above = Some(at);
        }
    };
    let mut end = LOWEST;
    for range in maps.ranges() {
        consider(end, range.0);
        end = end.max(range.1);
        if end > ceiling {
            break;
        }
    }
    consider(end, u64::MAX);
    [below, above]
}

/// Memory for the arenas of libraries, reserved in large pieces: whoever loads a hundred of them needs to
/// look for room a few times. What is not used of a piece is given back with the next one, so that only
/// arenas and what is free of the last piece stay; a later search finds the place of one that was given back.
mod pool {
    use super::REACH;
    use crate::syscall;
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Bytes at a time: little for hooks alone, since a program may lock all its memory.
    const LEAST: u64 = 256 << 10;
    const MOST: u64 = 8 << 20;

    /// What is free of the last piece.
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static END: AtomicU64 = AtomicU64::new(0);

    /// How much to reserve for an arena and those that follow it.
    pub fn piece(size: u64) -> u64 {
        (4 * size).clamp(LEAST, MOST).max(size)
    }

    /// Gives back what is free.
    pub fn end() {
        let (at, end) = (NEXT.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
        NEXT.store(0, Ordering::Relaxed);
        END.store(0, Ordering::Relaxed);
        if at < end {
            // SAFETY: nobody has taken it.
            unsafe { syscall::unmap(at as *mut u8, (end - at) as usize) };
        }
    }

    /// Where to take from now on.
    pub fn begin(at: u64, size: u64) {
        NEXT.store(at, Ordering::Relaxed);
        END.store(at + size, Ordering::Relaxed);
    }

    /// A piece within reach of an image, if there is room.
    pub fn take((low, high): (u64, u64), size: u64) -> Option<u64> {
        let at = NEXT.load(Ordering::Relaxed);
        let end = at.checked_add(size)?;
        let reaches = high.saturating_sub(REACH) <= at && end <= low.saturating_add(REACH);
        if end > END.load(Ordering::Relaxed) || !reaches {
            return None;
        }
        NEXT.store(end, Ordering::Relaxed);
        Some(at)
    }
}
