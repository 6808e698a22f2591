//! Applies a plan to an image: the arena beside it, then the sites in it.

use crate::encoder::make;
use crate::image::Image;
use crate::maps::Maps;
use crate::pending::replace_return_addresses;
use crate::place::{Near, place};
use crate::scratch::Piece;
use crate::setup::Setup;
use crate::shortage::MEMORY;
use crate::sites::{make_executable, rewrite};
use crate::syscall::{self, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::x86_64::{arguments, beside, every_time, holds, pending, routines, timed};
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::{Function, Plan, fixup, function, mechanism, routine, stub};
use lockstep_format::process::header;
use lockstep_format::symbol::event_word;

const PAGE: u64 = 4096;
/// Where the shadow slots begin in an arena.
const SLOTS: usize = 8 * routine::COUNT;

/// An application, and how it went.
pub struct Applied {
    /// Groups that were left alone, since the text does not hold what the file does.
    pub unexpected: u64,
    /// Where the arena lies, and its size.
    pub arena: u64,
    pub size: u64,
    /// Bytes at its start that are data.
    pub head: u64,
    /// Where its page of counters lies; 0 where it has none.
    pub counters: u64,
    /// Where what its pieces stand for is told, and in how many rows.
    pub origins: (u64, usize),
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
    /// Whether its arena lies among those of others.
    pub is_pooled: bool,
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
    let counters = if plan.counters() > 0 { PAGE } else { 0 };
    let origins = plan.origins().rows().as_flattened();
    let size = executable + counters + (origins.len() as u64).next_multiple_of(PAGE);
    let reach = plan.reach();
    let near = Near {
        extent: image.extent(),
        reach: (
            image.bias.wrapping_add(reach.0),
            image.bias.wrapping_add(reach.1),
        ),
    };
    let arena = place(near, target.is_pooled, size, maps).ok_or_else(|| no_place(size))?;
    // SAFETY: `size` bytes were just mapped there.
    let bytes = unsafe { core::slice::from_raw_parts_mut(arena as *mut u8, size as usize) };
    make(arena as *const u8, executable as usize);
    let head = u64::from(plan.head());
    let (text, length) = (arena + head, executable.saturating_sub(head));
    let prepared = fill(bytes, plan, target, arena, arena + executable)
        .and_then(|()| Imports::leave(plan, bytes, is_recorded_elsewhere))
        .and_then(|imports| {
            // SAFETY: our own pages.
            unsafe { make_executable(text, length) }
                .map_err(|_| "memory must not be made executable here")?;
            Ok(imports)
        });
    let replaces = |it: Function<'_>| it.mechanism == mechanism::CALL_THROUGH;
    if !Setup::get().plain && plan.functions().any(replaces) {
        replace_return_addresses(true);
    }
    let applied = prepared.and_then(|imports| {
        let place = bytes.get_mut((executable + counters) as usize..);
        let place = place.and_then(|it| it.get_mut(..origins.len()));
        let place = place.ok_or("the plan is damaged")?;
        place.copy_from_slice(origins);
        let unexpected = rewrite(plan, image, target.path, arena, &imports)?;
        Ok(Applied {
            unexpected,
            arena,
            size,
            head,
            counters: match counters {
                0 => 0,
                _ => arena + executable,
            },
            origins: (arena + executable + counters, plan.origins().rows().len()),
        })
    });
    match applied {
        Ok(_) => maps.add((arena, arena + size)),
        // SAFETY: nothing leads there.
        Err(_) => unsafe { syscall::unmap(arena as *mut u8, size as usize) },
    }
    applied
}

/// Why there is no place for an arena: the process may have no more memory at all, or none there.
fn no_place(size: u64) -> &'static str {
    let Ok(memory) = syscall::map(size as usize) else {
        return MEMORY;
    };
    // SAFETY: just mapped.
    unsafe { syscall::unmap(memory, size as usize) };
    "no free memory in reach of the image's code"
}

/// From now on the stubs of an arena, whose first `head` bytes are data, leave return addresses where they are. Other
/// threads may be running in its first page: it stays executable, if it is.
///
/// # Errors
/// Why that cannot be.
pub fn leave_return_addresses(arena: u64, head: u64) -> Result<(), &'static str> {
    const WRITABLE: usize = PROT_READ | PROT_WRITE | PROT_EXEC;
    let enter: unsafe extern "C" fn() = pending::enter_plain;
    // SAFETY: the arena's own page, which begins with the table of routines.
    unsafe {
        if head == 0 {
            syscall::protect(arena as usize, PAGE as usize, WRITABLE)
                .map_err(|_| "memory must not be writable and executable here")?;
        }
        let place = AtomicU64::from_ptr((arena as *mut u64).add(routine::ENTER));
        place.store(enter as usize as u64, Ordering::Release);
        if head == 0 {
            let _ = syscall::protect(arena as usize, PAGE as usize, PROT_READ | PROT_EXEC);
        }
    }
    Ok(())
}

/// Which imports are left as they are, one byte each.
pub struct Imports {
    marks: Piece,
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
        // The second symbols of leaves have no slots of their own.
        let is_import =
            |f: &Function<'_>| f.origin == function::IMPORT && f.mechanism != mechanism::LEAF;
        let imported = || plan.functions().filter(is_import);
        let count = imported().count();
        let mut marks = Piece::new(count).ok_or(MEMORY)?;
        for ((index, row), mark) in imported().enumerate().zip(marks.zeros()) {
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
            *mark = 1;
        }
        Ok(Self { marks, count })
    }

    /// Whether a site with this target in the arena is one of theirs.
    pub fn contains(&self, target: u32) -> bool {
        let Some(offset) = (target as usize).checked_sub(SLOTS) else {
            return false;
        };
        let index = offset / 8;
        // SAFETY: index < count.
        index < self.count && unsafe { self.marks.at().add(index).read() } == 1
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
    let enter: unsafe extern "C" fn() = match (setup.plain, setup.every_time) {
        (true, _) => pending::enter_plain,
        (false, true) => every_time::enter,
        (false, false) => routines::enter,
    };
    let [exit, open, leaf, ret]: [unsafe extern "C" fn(); 4] = if setup.every_time {
        [
            every_time::exit,
            every_time::open,
            every_time::leaf,
            every_time::ret,
        ]
    } else {
        [routines::exit, beside::open, beside::leaf, beside::ret]
    };
    let (enter_arguments, exit_arguments): (unsafe extern "C" fn(), unsafe extern "C" fn()) =
        if setup.arguments || setup.times {
            (arguments::enter_arguments, arguments::exit_arguments)
        } else {
            (arguments::nothing, exit)
        };
    let (enter_timed, exit_timed): (unsafe extern "C" fn(), unsafe extern "C" fn()) =
        if setup.times && !setup.every_time {
            (timed::enter_timed, timed::exit_timed)
        } else {
            (arguments::nothing, exit)
        };
    holds::go_on(enter_timed, exit_timed);
    let table: [(usize, unsafe extern "C" fn()); 25] = [
        (routine::ENTER, enter),
        (routine::EXIT, exit),
        (routine::INSTANT, routines::instant),
        (routine::JUMP, pending::jump),
        (routine::VFORK, routines::vfork),
        (routine::RESTORE, routines::restore),
        (routine::MPI, routines::mpi),
        (routine::END, routines::end),
        (routine::OPEN, open),
        (routine::LEAF, leaf),
        (routine::RETURN, ret),
        (routine::HAND_OVER, beside::hand_over),
        (routine::SUSPEND, routines::suspend),
        (routine::LOADED, routines::loaded),
        (routine::FAULT, crate::x86_64::fault::fault),
        (routine::ENTER_ARGUMENTS, enter_arguments),
        (routine::EXIT_ARGUMENTS, exit_arguments),
        (routine::FOLLOW, crate::x86_64::fault::follow),
        (routine::SIGNALS, routines::signals),
        (routine::BIND, routines::bind),
        (routine::EXEC, routines::exec),
        (routine::ENTER_TIMED, enter_timed),
        (routine::EXIT_TIMED, exit_timed),
        (routine::ENTER_HOLD, holds::enter),
        (routine::EXIT_HOLD, holds::exit),
    ];
    for (index, address) in table {
        let place = bytes.get_mut(8 * index..8 * index + 8).ok_or(DAMAGED)?;
        place.copy_from_slice(&(address as usize as u64).to_le_bytes());
    }
    Ok(())
}
