//! Library functions whose calls are leaves: which code is known to be closed, and what becomes of a call
//! when it is known where its slot leads.
//!
//! What is known is of the images that were there when the program began: these stay. Slots are asked as they are
//! called, so that it is the dynamic linker that says what a name means (interposition, IFUNC, lazy binding).

use crate::image::Image;
use crate::syscall;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use lockstep_format::plan::{Plan, leaf, stub};

/// Images that are known.
const IMAGES: usize = 256;
/// How often a slot is looked at before it is bound. Where the linker never binds it, its calls go on as they are.
const TRIES: u64 = 64;
/// Choices of implementations, one behind the other.
const DEEPEST: usize = 2;

/// An image with closed functions.
struct Known {
    extent: (u64, u64),
    bias: u64,
    /// Their entries, ascending, with the slots that they go on through.
    rows: &'static [[u64; 2]],
}

/// All of them. What does not fit is not known.
struct AllKnown {
    count: AtomicU32,
    images: UnsafeCell<[MaybeUninit<Known>; IMAGES]>,
}

// SAFETY: written by one at a time behind `count`, and read below it.
unsafe impl Sync for AllKnown {}

static KNOWN: AllKnown = AllKnown {
    count: AtomicU32::new(0),
    images: UnsafeCell::new([const { MaybeUninit::uninit() }; IMAGES]),
};

/// Notes the closed functions of an image that stays.
///
/// # Safety
/// By one at a time.
pub unsafe fn know(plan: &Plan<'_>, image: &Image) {
    let rows = plan.closed();
    let count = KNOWN.count.load(Ordering::Relaxed) as usize;
    if rows.len() == 0 || count >= IMAGES {
        return;
    }
    let Ok(memory) = syscall::map(rows.len() * size_of::<[u64; 2]>()) else {
        return;
    };
    let at = memory.cast::<[u64; 2]>();
    let length = rows.len();
    for (index, row) in rows.enumerate() {
        // SAFETY: just mapped, and of that size.
        unsafe { at.add(index).write(row) };
    }
    let known = Known {
        extent: image.extent(),
        bias: image.bias,
        // SAFETY: written up to there, for ever.
        rows: unsafe { core::slice::from_raw_parts(at, length) },
    };
    // SAFETY: inside the array, and nobody reads there yet.
    unsafe {
        let images = KNOWN.images.get().cast::<MaybeUninit<Known>>();
        images.add(count).write(MaybeUninit::new(known));
    }
    KNOWN.count.store(count as u32 + 1, Ordering::Release);
}

/// Whether the code at an address is known to be closed.
fn is_closed(address: u64, depth: usize) -> bool {
    let count = KNOWN.count.load(Ordering::Acquire) as usize;
    let images = KNOWN.images.get().cast::<Known>();
    // SAFETY: written up to there, for ever.
    let images = unsafe { core::slice::from_raw_parts(images, count.min(IMAGES)) };
    let holds = |known: &&Known| (known.extent.0..known.extent.1).contains(&address);
    let Some(known) = images.iter().find(holds) else {
        return false;
    };
    let entry = address.wrapping_sub(known.bias);
    let first = known.rows.partition_point(|row| row[0] < entry);
    let rows = known.rows.get(first..).unwrap_or(&[]).iter();
    let mut own = rows.take_while(|row| row[0] == entry).peekable();
    let is_there = own.peek().is_some();
    is_there
        && own.all(|[_, slot]| match slot {
            0 => true,
            // SAFETY: a slot of the image, which is there; it was filled in when the image was loaded.
            _ if depth < DEEPEST => unsafe {
                is_closed(read(known.bias.wrapping_add(*slot)), depth + 1)
            },
            _ => false,
        })
}

/// What a slot holds. Linkers align slots; what others do is not for us to say.
///
/// # Safety
/// There are eight bytes to read.
unsafe fn read(slot: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (slot as *const u64).read_unaligned() }
}

/// A library function is about to be called by way of this BIND stub: looks where its slot leads. Several threads may
/// do so at once; what they store does not contradict.
///
/// # Safety
/// It is a BIND stub of an arena in place.
pub unsafe fn bind(stub: u64) {
    // SAFETY: the contract of such stubs: the row lies in the arena's head, which is writable, and leads to the
    // arena's shadow slot, all of them aligned.
    let word = |address: u64| unsafe { AtomicU64::from_ptr(address as *mut u64) };
    let row = word(stub + u64::from(stub::LEAF_ROW)).load(Ordering::Relaxed);
    let field = |offset: usize| word(row + offset as u64);
    let value = |offset: usize| field(offset).load(Ordering::Relaxed);
    // SAFETY: a slot of the image, which is there.
    let leads_to = unsafe { read(value(leaf::SLOT)) };
    let is_unbound = (value(leaf::LOW)..value(leaf::HIGH)).contains(&leads_to);
    if is_unbound && field(leaf::TRIES).fetch_add(1, Ordering::Relaxed) < TRIES {
        return;
    }
    if is_closed(leads_to, 0) {
        field(leaf::TARGET).store(leads_to, Ordering::Release);
        field(leaf::NEXT).store(value(leaf::GATE), Ordering::Release);
    }
    word(value(leaf::SHADOW)).store(value(leaf::NEXT), Ordering::Release);
}
