//! Applies a plan to an image: the arena beside it, then the sites in it.

use crate::image::Image;
use crate::maps;
use crate::syscall::{self, O_RDONLY, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::text::Text;
use crate::x86_64::routines;
use lockstep_format::plan::{Plan, fixup, routine};
use lockstep_format::symbol::event_word;

const PAGE: u64 = 4096;
/// How far an arena may lie from its image: a 32-bit displacement, with room to spare.
const REACH: u64 = (1 << 31) - (1 << 20);
/// Free space that stays between an image and its arena, and between an arena and the next mapping.
const GAP: u64 = 64 * 1024;
/// The lowest address that a process may map on every system.
const LOWEST: u64 = 64 * 1024;

/// How an application went.
pub struct Applied {
    /// Groups that were left alone, since the text does not hold what the file does.
    pub unexpected: u64,
}

/// Applies `plan` to `image` of the file at `path`, whose first symbol is `first`.
///
/// # Errors
/// Why nothing was changed.
pub fn apply(
    plan: &Plan<'_>,
    image: &Image,
    path: &[u8],
    first: u32,
) -> Result<Applied, &'static str> {
    let code = plan.code();
    let size = (code.len() as u64).next_multiple_of(PAGE);
    let arena = place(image.extent(), size).ok_or("no free memory near the image")?;
    // SAFETY: `size` bytes were just mapped there.
    let bytes = unsafe { core::slice::from_raw_parts_mut(arena as *mut u8, size as usize) };
    let prepared = fill(bytes, plan, image.bias, arena, first).and_then(|()| {
        // SAFETY: our own pages.
        unsafe { syscall::protect(arena as usize, size as usize, PROT_READ | PROT_EXEC) }
            .map_err(|_| "memory must not be made executable here")
    });
    if let Err(reason) = prepared {
        // SAFETY: nothing leads there yet.
        unsafe { syscall::unmap(arena as *mut u8, size as usize) };
        return Err(reason);
    }
    rewrite(plan, image, path, arena)
}

/// Maps the arena: below the image, where it is in nobody's way (above a program lies its heap);
/// else above it, as far away as it may be.
fn place((low, high): (u64, u64), size: u64) -> Option<u64> {
    let floor = high.saturating_sub(REACH).max(LOWEST);
    let ceiling = low.saturating_add(REACH);
    // The gap below the image that is nearest, and the gap above it that is farthest.
    let mut below = None;
    let mut above = None;
    let mut end = LOWEST;
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
    maps::each(|range| {
        consider(end, range.0);
        end = range.1;
        end > ceiling
    });
    consider(end, u64::MAX);
    [below, above]
        .into_iter()
        .flatten()
        .find(|at| syscall::map_at(*at as usize, size as usize).is_ok())
}

/// Copies the code and adjusts it.
fn fill(
    bytes: &mut [u8],
    plan: &Plan<'_>,
    bias: u64,
    arena: u64,
    first: u32,
) -> Result<(), &'static str> {
    const DAMAGED: &str = "the plan is damaged";
    let code = plan.code();
    let thread =
        i32::try_from(routines::thread_offset()).map_err(|_| "thread-local memory is far")?;
    bytes
        .get_mut(..code.len())
        .ok_or(DAMAGED)?
        .copy_from_slice(code);
    for fixup in plan.fixups() {
        let at = fixup.at as usize;
        let value = match fixup.kind {
            fixup::RELATIVE_32 => {
                let target = bias.wrapping_add(fixup.value);
                let distance = target.wrapping_sub(arena + at as u64) as i64;
                let field = i32::try_from(distance).map_err(|_| "the image is out of reach")?;
                let place = bytes.get_mut(at..at + 4).ok_or(DAMAGED)?;
                place.copy_from_slice(&field.to_le_bytes());
                continue;
            }
            fixup::IMAGE_64 => bias.wrapping_add(fixup.value),
            fixup::ARENA_64 => arena.wrapping_add(fixup.value),
            fixup::SYMBOL_32 | fixup::LEAF_32 => {
                let symbol = first.wrapping_add(fixup.value as u32);
                let word = event_word(symbol, fixup.kind == fixup::LEAF_32);
                let place = bytes.get_mut(at..at + 4).ok_or(DAMAGED)?;
                place.copy_from_slice(&word.to_le_bytes());
                continue;
            }
            fixup::THREAD_32 => {
                let place = bytes.get_mut(at..at + 4).ok_or(DAMAGED)?;
                place.copy_from_slice(&thread.to_le_bytes());
                continue;
            }
            _ => return Err(DAMAGED),
        };
        let place = bytes.get_mut(at..at + 8).ok_or(DAMAGED)?;
        place.copy_from_slice(&value.to_le_bytes());
    }
    let table: [(usize, unsafe extern "C" fn()); 12] = [
        (routine::ENTER, routines::enter),
        (routine::EXIT, routines::exit),
        (routine::INSTANT, routines::instant),
        (routine::JUMP, routines::jump),
        (routine::VFORK, routines::vfork),
        (routine::RESTORE, routines::restore),
        (routine::MPI, routines::mpi),
        (routine::END, routines::end),
        (routine::OPEN, routines::open),
        (routine::LEAF, routines::leaf),
        (routine::RETURN, routines::ret),
        (routine::HAND_OVER, routines::hand_over),
    ];
    for (index, address) in table {
        let place = bytes.get_mut(8 * index..8 * index + 8).ok_or(DAMAGED)?;
        place.copy_from_slice(&(address as usize as u64).to_le_bytes());
    }
    Ok(())
}

/// A range of text pages to write to.
#[derive(Clone, Copy)]
struct Pages {
    start: u64,
    length: u64,
    /// Where they come from in the image's file.
    offset: u64,
}

impl Pages {
    fn protect(self, protection: usize) -> Result<(), &'static str> {
        if self.length == 0 {
            return Ok(());
        }
        // SAFETY: text of the image. Between the two calls it is not executable: one thread runs, and
        // it runs in the probe.
        unsafe { syscall::protect(self.start as usize, self.length as usize, protection) }
            .map_err(|_| "the program's text must not be changed here")
    }
}

/// Makes written pages executable again. A policy may forbid that; then the file's own pages take
/// their place, and nothing was changed.
fn seal(pages: &[Pages], path: &[u8]) -> Result<(), &'static str> {
    let mut refused = Ok(());
    for range in pages {
        refused = refused.and(range.protect(PROT_READ | PROT_EXEC));
    }
    let Err(reason) = refused else {
        return Ok(());
    };
    let mut name = Text::<{ crate::image::PATH + 1 }>::new();
    name.push(path);
    name.push(b"\0");
    if let Ok(file) = syscall::open(name.bytes(), O_RDONLY) {
        for range in pages.iter().filter(|range| range.length > 0) {
            // SAFETY: these pages were mapped from this very place of the file.
            let _ = unsafe { file.map_text_over(range.start, range.length, range.offset) };
        }
    }
    Err(reason)
}

/// Text segments that an image may have.
const MOST_SEGMENTS: usize = 8;

/// Writes the sites, group by group: all of a group or none.
fn rewrite(
    plan: &Plan<'_>,
    image: &Image,
    path: &[u8],
    arena: u64,
) -> Result<Applied, &'static str> {
    let groups = plan.sites().map(|site| site.group as usize + 1).max();
    let Some(groups) = groups else {
        return Ok(Applied { unexpected: 0 });
    };
    if groups > 1 << 28 {
        return Err("the plan is damaged");
    }
    let bad = syscall::map(groups).map_err(|_| "out of memory")?;
    // SAFETY: just mapped, zeros.
    let is_bad = unsafe { core::slice::from_raw_parts_mut(bad, groups) };

    let mut pages = [Pages {
        start: 0,
        length: 0,
        offset: 0,
    }; MOST_SEGMENTS];
    let texts = || image.segments().iter().filter(|segment| segment.is_text());
    for (index, segment) in texts().enumerate().take(MOST_SEGMENTS) {
        let start = image.bias.wrapping_add(segment.address);
        let end = start + segment.size;
        let mut first = u64::MAX;
        let mut last = 0;
        for site in plan.sites() {
            let at = image.bias.wrapping_add(site.address);
            if (start..end).contains(&at) && at + u64::from(site.length) <= end {
                first = first.min(at);
                last = last.max(at + u64::from(site.length));
            }
        }
        if first < last {
            let begin = first & !(PAGE - 1);
            pages[index] = Pages {
                start: begin,
                length: last.next_multiple_of(PAGE) - begin,
                offset: segment.offset.wrapping_add(begin).wrapping_sub(start),
            };
        }
    }
    let within = |at: u64| {
        pages
            .iter()
            .any(|range| (range.start..range.start + range.length).contains(&at))
    };

    for site in plan.sites() {
        let at = image.bias.wrapping_add(site.address);
        let length = site.length as usize;
        let holds = within(at) && {
            // SAFETY: inside a text segment, which is readable.
            let text = unsafe { core::slice::from_raw_parts(at as *const u8, length) };
            site.old.get(..length) == Some(text)
        };
        let target = arena.wrapping_add(u64::from(site.target));
        let field = displacement(at, site.field, target);
        if (!holds || field.is_none())
            && let Some(mark) = is_bad.get_mut(site.group as usize)
        {
            *mark = 1;
        }
    }

    for (index, range) in pages.iter().enumerate() {
        if let Err(reason) = range.protect(PROT_READ | PROT_WRITE) {
            let touched = pages.get(..index).unwrap_or(&[]);
            return seal(touched, path).and(Err(reason));
        }
    }
    for site in plan.sites() {
        if is_bad.get(site.group as usize) != Some(&0) {
            continue;
        }
        let at = image.bias.wrapping_add(site.address);
        let mut new = site.new;
        let field = site.field as usize;
        let target = arena.wrapping_add(u64::from(site.target));
        if let (Some(place), Some(value)) = (
            new.get_mut(field..field + 4),
            displacement(at, site.field, target),
        ) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        // SAFETY: checked to lie in text, which is writable now; the plan's check keeps the length
        // within the array.
        unsafe {
            core::ptr::copy_nonoverlapping(new.as_ptr(), at as *mut u8, site.length as usize)
        };
    }
    let result = seal(&pages, path);
    let unexpected = is_bad.iter().filter(|mark| **mark != 0).count() as u64;
    // SAFETY: nobody uses it any more.
    unsafe { syscall::unmap(bad, groups) };
    result.map(|()| Applied { unexpected })
}

/// The value of a site's field.
fn displacement(at: u64, field: u32, target: u64) -> Option<i32> {
    let from = at.wrapping_add(u64::from(field)).wrapping_add(4);
    i32::try_from(target.wrapping_sub(from) as i64).ok()
}
