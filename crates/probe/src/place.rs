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

/// Where an image lies, and which part of it an arena must reach, by addresses in memory.
#[derive(Clone, Copy)]
pub struct Near {
    pub extent: (u64, u64),
    pub reach: (u64, u64),
}

impl Near {
    /// From where on, and up to where, memory is in reach.
    fn bounds(&self) -> (u64, u64) {
        let (low, high) = self.reach;
        (high.saturating_sub(REACH), low.saturating_add(REACH))
    }
}

/// Maps the arena: below the image, where it is in nobody's way; else between it and its heap, or above it, as far away as it
/// may be. Libraries' lie side by side in a pool.
pub fn place(near: Near, is_pooled: bool, size: u64, maps: &mut Maps) -> Option<u64> {
    if !is_pooled {
        return find(near, syscall::program_break(), size, maps, syscall::map_at);
    }
    if let Some(at) = pool::take(near.bounds(), size) {
        return Some(at);
    }
    pool::end();
    let piece = pool::piece(size);
    if let Some(at) = find(near, 0, piece, maps, syscall::reserve_at) {
        pool::begin(at, piece);
        return pool::take(near.bounds(), size);
    }
    find(near, 0, size, maps, syscall::map_at)
}

/// Maps memory within reach of an image, by `map`. `heap`: where the program's heap begins; 0 of libraries, which have none.
fn find(
    near: Near,
    heap: u64,
    size: u64,
    maps: &mut Maps,
    map: fn(usize, usize) -> Result<*mut u8, syscall::Errno>,
) -> Option<u64> {
    let takes = |at: &u64| map(*at as usize, size as usize).is_ok();
    if maps.is_read() {
        // Where something was mapped meanwhile, look again.
        maps.add(near.extent);
        let [below, ..] = gaps(near, 0, size, maps);
        if let Some(at) = below.filter(takes) {
            return Some(at);
        }
    }
    if !maps.read() {
        return None;
    }
    let gaps = gaps(near, heap, size, maps);
    gaps.into_iter().flatten().find(takes)
}

/// Places for it: in the gap below the image that is nearest, in that before the heap, which begins at `heap` though nothing
/// may be mapped there yet, and in the gap above the image that is farthest.
fn gaps(near: Near, heap: u64, size: u64, maps: &Maps) -> [Option<u64>; 3] {
    let (low, high) = near.extent;
    let (floor, ceiling) = near.bounds();
    let floor = floor.max(LOWEST);
    let mut found = [None; 3];
    let mut consider = |start: u64, next: u64| {
        let from = start.max(floor).saturating_add(GAP);
        let to = next.min(ceiling).saturating_sub(GAP);
        if to < from || to - from < size {
            return;
        }
        let at = Some((to - size) & !(PAGE - 1));
        let [below, before_heap, above] = &mut found;
        if next <= low {
            *below = at;
        } else if start >= high && next == heap {
            *before_heap = at;
        } else if start >= high {
            *above = at;
        }
    };
    let mut end = LOWEST;
    for range in maps.ranges() {
        if end < heap && heap < range.0 {
            consider(end, heap);
            end = heap;
        }
        consider(end, range.0);
        end = end.max(range.1);
        if end > ceiling {
            break;
        }
    }
    consider(end, u64::MAX);
    found
}

/// Memory for the arenas of libraries, reserved in large pieces: whoever loads a hundred of them needs to
/// look for room a few times. What is not used of a piece is given back with the next one, so that only
/// arenas and what is free of the last piece stay; a later search finds the place of one that was given back.
mod pool {
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

    /// A piece between `floor` and `ceiling`, if there is room.
    pub fn take((floor, ceiling): (u64, u64), size: u64) -> Option<u64> {
        let at = NEXT.load(Ordering::Relaxed);
        let end = at.checked_add(size)?;
        let reaches = floor <= at && end <= ceiling;
        if end > END.load(Ordering::Relaxed) || !reaches {
            return None;
        }
        NEXT.store(end, Ordering::Relaxed);
        Some(at)
    }
}
