//! Which of the program's addresses an address in an arena stands for, and where the program goes on whose own bytes were
//! overwritten: asked for every signal that has a handler.
//!
//! ```text
//!  a fault in a copy ─► kernel ─► dispatch: RIP = the program's address ─► the program's handler
//!       ▲                                                                        │
//!       └──────── sigreturn ◄── restorer: RIP = the copy ◄───────────────────────┘
//! ```
//! Rows of arenas are written where images are loaded, one at a time, and read by any thread: a row counts from the moment when
//! its arena is there. What a row tells lies in the arena's own mapping, so that it is there as long as anybody can be in it.

use crate::syscall;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use lockstep_format::plan::{Origins, StandsFor, origin};

/// Images at one time.
const MOST: usize = 4096;

/// An arena and its image.
struct Known {
    /// 0 where the row is free.
    arena: AtomicU64,
    arena_end: AtomicU64,
    low: AtomicU64,
    high: AtomicU64,
    rows: AtomicPtr<[u8; origin::SIZE]>,
    count: AtomicU64,
}

static KNOWN: AtomicPtr<Known> = AtomicPtr::new(null_mut());
/// Rows that were ever used.
static COUNT: AtomicU64 = AtomicU64::new(0);

fn all() -> &'static [Known] {
    let known = KNOWN.load(Ordering::Acquire);
    let count = COUNT.load(Ordering::Acquire) as usize;
    if known.is_null() {
        return &[];
    }
    // SAFETY: mapped for ever, with room for `MOST`; zeros are valid.
    unsafe { core::slice::from_raw_parts(known, count.min(MOST)) }
}

/// Remembers an arena and its image, both by where they begin and end. One at a time.
///
/// # Safety
/// The rows stay where they are as long as the arena does.
pub unsafe fn know(arena: (u64, u64), image: (u64, u64), rows: &[[u8; origin::SIZE]]) {
    if KNOWN.load(Ordering::Relaxed).is_null() {
        let Ok(at) = syscall::map(MOST * size_of::<Known>()) else {
            return;
        };
        KNOWN.store(at.cast(), Ordering::Release);
    }
    let is_free = |known: &&Known| known.arena.load(Ordering::Relaxed) == 0;
    let known = match all().iter().find(is_free) {
        Some(known) => known,
        None => {
            let index = COUNT.load(Ordering::Relaxed);
            if index as usize >= MOST {
                return;
            }
            COUNT.store(index + 1, Ordering::Release);
            let Some(known) = all().get(index as usize) else {
                return;
            };
            known
        }
    };
    known.arena_end.store(arena.1, Ordering::Relaxed);
    known.low.store(image.0, Ordering::Relaxed);
    known.high.store(image.1, Ordering::Relaxed);
    known
        .rows
        .store(rows.as_ptr().cast_mut(), Ordering::Relaxed);
    known.count.store(rows.len() as u64, Ordering::Relaxed);
    known.arena.store(arena.0, Ordering::Release);
}

/// An arena is about to go, with its image. One at a time.
pub fn forget(arena: u64) {
    let is_it = |known: &&Known| known.arena.load(Ordering::Relaxed) == arena;
    if let Some(known) = all().iter().find(is_it) {
        known.arena.store(0, Ordering::Release);
    }
}

impl Known {
    fn origins(&self) -> Origins<'_> {
        let rows = self.rows.load(Ordering::Relaxed);
        let count = self.count.load(Ordering::Relaxed) as usize;
        // SAFETY: `know`'s promise; whoever asks is in the arena or its image, so that both are there.
        Origins::new(unsafe { core::slice::from_raw_parts(rows, count) })
    }

    /// Where the arena begins, if it is there.
    fn arena(&self) -> Option<u64> {
        Some(self.arena.load(Ordering::Acquire)).filter(|arena| *arena != 0)
    }
}

/// The program's address for one in an arena; `None` for one elsewhere, or within what no address of the program stands for.
pub fn original(address: u64) -> Option<u64> {
    let known = all().iter().find(|known| {
        let arena = known.arena();
        let end = known.arena_end.load(Ordering::Relaxed);
        arena.is_some_and(|arena| (arena..end).contains(&address))
    })?;
    let offset = u32::try_from(address - known.arena()?).ok()?;
    let low = known.low.load(Ordering::Relaxed);
    match known.origins().stands_for(offset)? {
        StandsFor::Address(distance) => Some(low + distance),
        // SAFETY: a slot of the image, which is there as long as somebody is in its arena.
        StandsFor::Slot(distance) => Some(unsafe { ((low + distance) as *const u64).read() }),
    }
}

/// Where the copy of the program's instruction at this address is, if its bytes were overwritten.
pub fn moved(address: u64) -> Option<u64> {
    let known = all().iter().find(|known| {
        let low = known.low.load(Ordering::Relaxed);
        let high = known.high.load(Ordering::Relaxed);
        known.arena().is_some() && (low..high).contains(&address)
    })?;
    let distance = address - known.low.load(Ordering::Relaxed);
    let offset = known.origins().moved(distance)?;
    Some(known.arena()? + u64::from(offset))
}
