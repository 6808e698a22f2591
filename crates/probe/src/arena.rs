//! Applies a plan to an image: the arena beside it, then the sites in it.

use crate::image::Image;
use crate::maps::Maps;
use crate::setup::Setup;
use crate::syscall::{self, O_RDONLY, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::text::Text;
use crate::x86_64::{arguments, routines};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::{Plan, fixup, function, routine, site, stub};
use lockstep_format::process::header;
use lockstep_format::symbol::event_word;

const PAGE: u64 = 4096;
/// How far an arena may lie from its image: a 32-bit displacement, with room to spare.
const REACH: u64 = (1 << 31) - (1 << 20);
/// Free space that stays between an image and its arena, and between an arena and the next mapping.
const GAP: u64 = 64 * 1024;
/// The lowest address that a process may map on every system.
const LOWEST: u64 = 64 * 1024;
/// Where the shadow slots begin in an arena.
const SLOTS: usize = 8 * routine::COUNT;

/// An application, and how it went.
pub struct Applied {
    /// Groups that were left alone, since the text does not hold what the file does.
    pub unexpected: u64,
    /// Where the arena lies, and its size.
    pub arena: u64,
    pub size: u64,
    /// Where its page of counters lies; 0 where it has none.
    pub counters: u64,
}

/// An image to apply a plan to.
pub struct Target<'a> {
    /// The image.
    pub image: &'a Image,
    /// Path of its file.
    pub path: &'a [u8],
    /// Its first symbol.
    pub first: u32,
    /// Its first counter.
    pub counters: u32,
}

/// Applies `plan` to `target`. Imports that `is_recorded_elsewhere` accepts are left as they are.
///
/// # Errors
/// Why nothing was changed.
pub fn apply(
    plan: &Plan<'_>,
    target: &Target<'_>,
    maps: &mut Maps,
    is_recorded_elsewhere: impl Fn(&[u8]) -> bool,
) -> Result<Applied, &'static str> {
    let image = target.image;
    let code = plan.code();
    let executable = (code.len() as u64).next_multiple_of(PAGE);
    // The page of counters, which becomes one of the process file.
    let size = executable + if plan.counters() > 0 { PAGE } else { 0 };
    let arena = place(image.extent(), size, maps).ok_or("no free memory near the image")?;
    // SAFETY: `size` bytes were just mapped there.
    let bytes = unsafe { core::slice::from_raw_parts_mut(arena as *mut u8, size as usize) };
    let prepared = fill(bytes, plan, target, arena, arena + executable)
        .and_then(|()| Imports::leave(plan, bytes, is_recorded_elsewhere))
        .and_then(|imports| {
            // SAFETY: our own pages.
            unsafe { syscall::protect(arena as usize, executable as usize, PROT_READ | PROT_EXEC) }
                .map_err(|_| "memory must not be made executable here")?;
            Ok(imports)
        });
    let applied = prepared.and_then(|imports| {
        let unexpected = rewrite(plan, image, target.path, arena, &imports)?;
        Ok(Applied {
            unexpected,
            arena,
            size,
            counters: if size > executable {
                arena + executable
            } else {
                0
            },
        })
    });
    match applied {
        Ok(_) => maps.add((arena, arena + size)),
        // SAFETY: nothing leads there.
        Err(_) => unsafe { syscall::unmap(arena as *mut u8, size as usize) },
    }
    applied
}

/// From now on the stubs of an arena leave return addresses where they are. Other threads may be running
/// in its first page: it stays executable.
///
/// # Errors
/// Why that cannot be.
pub fn leave_return_addresses(arena: u64) -> Result<(), &'static str> {
    const WRITABLE: usize = PROT_READ | PROT_WRITE | PROT_EXEC;
    let enter: unsafe extern "C" fn() = routines::enter_plain;
    // SAFETY: the arena's own page, which begins with the table of routines.
    unsafe {
        syscall::protect(arena as usize, PAGE as usize, WRITABLE)
            .map_err(|_| "memory must not be writable and executable here")?;
        let place = AtomicU64::from_ptr((arena as *mut u64).add(routine::ENTER));
        place.store(enter as usize as u64, Ordering::Release);
        let _ = syscall::protect(arena as usize, PAGE as usize, PROT_READ | PROT_EXEC);
    }
    Ok(())
}

/// Maps the arena: below the image, where it is in nobody's way (above a program lies its heap);
/// else above it, as far away as it may be.
fn place(extent: (u64, u64), size: u64, maps: &mut Maps) -> Option<u64> {
    if maps.is_read() {
        // Where something was mapped meanwhile, look again.
        maps.add(extent);
        let [below, _] = gaps(extent, size, maps);
        if let Some(at) = below.filter(|at| is_taken(*at, size)) {
            return Some(at);
        }
    }
    if !maps.read() {
        return None;
    }
    let gaps = gaps(extent, size, maps);
    gaps.into_iter().flatten().find(|at| is_taken(*at, size))
}

fn is_taken(at: u64, size: u64) -> bool {
    syscall::map_at(at as usize, size as usize).is_ok()
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

/// Which imports are left as they are, one byte each.
struct Imports {
    at: *mut u8,
    count: usize,
}

impl Imports {
    /// Chooses them, and leads their shadow slots past the recording: moved instructions use those
    /// whatever the image's own do.
    fn leave(
        plan: &Plan<'_>,
        bytes: &mut [u8],
        is_recorded_elsewhere: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, &'static str> {
        let imported = || plan.functions().filter(|f| f.origin == function::IMPORT);
        let mut imports = Self {
            at: core::ptr::null_mut(),
            count: imported().count(),
        };
        if imports.count > 0 {
            imports.at = syscall::map(imports.count).map_err(|_| "out of memory")?;
        }
        for (index, row) in imported().enumerate() {
            if !is_recorded_elsewhere(row.name) {
                continue;
            }
            let place = SLOTS + 8 * index;
            let place = bytes
                .get_mut(place..place + 8)
                .ok_or("the plan is damaged")?;
            let mut entry = [0; 8];
            entry.copy_from_slice(place);
            let to_body = u64::from(stub::INLINE - stub::ENTRY);
            let body = u64::from_le_bytes(entry).wrapping_add(to_body);
            place.copy_from_slice(&body.to_le_bytes());
            // SAFETY: index < count.
            unsafe { imports.at.add(index).write(1) };
        }
        Ok(imports)
    }

    /// Whether a site with this target in the arena is one of theirs.
    fn contains(&self, target: u32) -> bool {
        let Some(offset) = (target as usize).checked_sub(SLOTS) else {
            return false;
        };
        let index = offset / 8;
        // SAFETY: index < count.
        index < self.count && unsafe { self.at.add(index).read() } == 1
    }
}

impl Drop for Imports {
    fn drop(&mut self) {
        // SAFETY: nobody else uses it.
        unsafe { syscall::unmap(self.at, self.count) };
    }
}

/// Copies the code and adjusts it.
fn fill(
    bytes: &mut [u8],
    plan: &Plan<'_>,
    target: &Target<'_>,
    arena: u64,
    counters: u64,
) -> Result<(), &'static str> {
    let (bias, first) = (target.image.bias, target.first);
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
            fixup::COUNTER_32 => {
                let number = u64::from(target.counters).saturating_add(fixup.value);
                let number = number.min(header::COUNTER_COUNT as u64 - 1);
                let counter = counters + header::COUNTERS as u64 + 8 * number;
                let field = counter.wrapping_sub(arena + at as u64 + 4) as u32;
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
    let setup = Setup::get();
    let enter = match setup.plain {
        true => routines::enter_plain,
        false => routines::enter,
    };
    let (enter_arguments, exit_arguments): (unsafe extern "C" fn(), unsafe extern "C" fn()) =
        if setup.arguments || setup.times {
            (arguments::enter_arguments, arguments::exit_arguments)
        } else {
            (arguments::nothing, routines::exit)
        };
    let table: [(usize, unsafe extern "C" fn()); 19] = [
        (routine::ENTER, enter),
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
        (routine::SUSPEND, routines::suspend),
        (routine::LOADED, routines::loaded),
        (routine::FAULT, crate::x86_64::fault::fault),
        (routine::ENTER_ARGUMENTS, enter_arguments),
        (routine::EXIT_ARGUMENTS, exit_arguments),
        (routine::FOLLOW, crate::x86_64::fault::follow),
        (routine::SIGNALS, routines::signals),
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
        // SAFETY: text of the image. Between the two calls it is not executable: nobody but one
        // thread could run there, and it runs in the probe.
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

/// Writes the sites, group by group: all of a group or none, and none of the imports that are left.
/// Returns how many groups do not hold what they should.
fn rewrite(
    plan: &Plan<'_>,
    image: &Image,
    path: &[u8],
    arena: u64,
    left: &Imports,
) -> Result<u64, &'static str> {
    const BAD: u8 = 1;
    const LEFT: u8 = 2;
    let groups = plan.sites().map(|site| site.group as usize + 1).max();
    let Some(groups) = groups else {
        return Ok(0);
    };
    if groups > 1 << 28 {
        return Err("the plan is damaged");
    }
    let marks = syscall::map(groups).map_err(|_| "out of memory")?;
    // SAFETY: just mapped, zeros.
    let marks = unsafe { core::slice::from_raw_parts_mut(marks, groups) };

    let mut pages = [Pages {
        start: 0,
        length: 0,
        offset: 0,
    }; MOST_SEGMENTS];
    let mut texts = [(0u64, 0u64, u64::MAX, 0u64); MOST_SEGMENTS];
    let segments = || image.segments().iter().filter(|segment| segment.is_text());
    for (text, segment) in texts.iter_mut().zip(segments()) {
        let start = image.bias.wrapping_add(segment.address);
        (text.0, text.1) = (start, start + segment.size);
    }
    for site in plan.sites() {
        let Some(mark) = marks.get_mut(site.group as usize) else {
            continue;
        };
        if left.contains(site.target) {
            *mark = LEFT;
            continue;
        }
        let at = image.bias.wrapping_add(site.address);
        let length = u64::from(site.length);
        let text = texts
            .iter_mut()
            .find(|text| text.0 <= at && at + length <= text.1);
        let holds = text.is_some_and(|text| {
            text.2 = text.2.min(at);
            text.3 = text.3.max(at + length);
            // SAFETY: inside a text segment, which is readable.
            let found = unsafe { core::slice::from_raw_parts(at as *const u8, length as usize) };
            site.old.get(..length as usize) == Some(found)
        });
        let target = arena.wrapping_add(u64::from(site.target));
        let reaches =
            site.field == site::NO_FIELD || displacement(at, site.field, target).is_some();
        if !holds || !reaches {
            *mark = BAD;
        }
    }
    for (range, (text, segment)) in pages.iter_mut().zip(texts.iter().zip(segments())) {
        if text.2 < text.3 {
            range.start = text.2 & !(PAGE - 1);
            range.length = text.3.next_multiple_of(PAGE) - range.start;
            range.offset = segment
                .offset
                .wrapping_add(range.start)
                .wrapping_sub(text.0);
        }
    }

    for (index, range) in pages.iter().enumerate() {
        if let Err(reason) = range.protect(PROT_READ | PROT_WRITE) {
            let touched = pages.get(..index).unwrap_or(&[]);
            return seal(touched, path).and(Err(reason));
        }
    }
    for site in plan.sites() {
        if marks.get(site.group as usize) != Some(&0) {
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
    let unexpected = marks.iter().filter(|mark| **mark == BAD).count() as u64;
    // SAFETY: nobody uses it any more.
    unsafe { syscall::unmap(marks.as_mut_ptr(), groups) };
    result.map(|()| unexpected)
}

/// The value of a site's field.
fn displacement(at: u64, field: u32, target: u64) -> Option<i32> {
    let from = at.wrapping_add(u64::from(field)).wrapping_add(4);
    i32::try_from(target.wrapping_sub(from) as i64).ok()
}
