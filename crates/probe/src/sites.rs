//! Writes a plan's sites into an image's text, where that holds what it should.
//!
//! ```text
//!  which pages ─► writable ─► copies of them made ─► compared ─► written, group by group ─► executable
//! ```

use crate::arena::Imports;
use crate::encoder::make;
use crate::image::{Image, PATH};
use crate::scratch::Piece;
use crate::shortage::MEMORY;
use crate::syscall::{self, Errno, O_RDONLY, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::text::Text;
use lockstep_format::plan::{Plan, site};

const PAGE: u64 = 4096;

/// A text segment, and what of it is written to.
#[derive(Clone, Copy)]
struct TextSegment {
    start: u64,
    end: u64,
    /// Where it begins in the image's file.
    offset: u64,
    /// Where its pages begin among the marks of all pages.
    marks: usize,
    /// From the first page that is written to up to the end of the last one.
    low: u64,
    high: u64,
}

impl TextSegment {
    const NONE: Self = Self {
        start: 0,
        end: 0,
        offset: 0,
        marks: 0,
        low: u64::MAX,
        high: 0,
    };

    fn pages(&self) -> usize {
        (self.end.div_ceil(PAGE) - self.start / PAGE) as usize
    }

    fn is_written(&self) -> bool {
        self.low < self.high
    }

    fn protect(&self, protection: usize) -> Result<(), &'static str> {
        if !self.is_written() {
            return Ok(());
        }
        // SAFETY: text of the image. Between the two calls it is not executable: nobody but one
        // thread could run there, and it runs in the probe.
        unsafe {
            syscall::protect(
                self.low as usize,
                (self.high - self.low) as usize,
                protection,
            )
        }
        .map_err(|_| "the program's text must not be changed here")
    }

    fn make_executable(&self) -> Result<(), &'static str> {
        if !self.is_written() {
            return Ok(());
        }
        // SAFETY: as in `protect`.
        unsafe { make_executable(self.low, self.high - self.low) }
            .map_err(|_| "the program's text must not be changed here")
    }

    /// Has copies made of its marked pages, row by row: a page fault each would cost more.
    fn make_pages(&self, marks: &[u8]) {
        const FEWEST: usize = 4;
        let own = marks.get(self.marks..).unwrap_or(&[]);
        let first = self.start & !(PAGE - 1);
        let mut begin = 0;
        for row in own
            .get(..self.pages())
            .unwrap_or(own)
            .split(|mark| *mark == 0)
        {
            if row.len() >= FEWEST {
                make(
                    (first + begin as u64 * PAGE) as *const u8,
                    row.len() * PAGE as usize,
                );
            }
            begin += row.len() + 1;
        }
    }
}

/// Makes pages that were written executable. A process may have forbidden that to itself (`PR_SET_MDWE`), and may map a file to
/// execute all the same: one in memory that holds what they hold takes their place.
///
/// # Errors
/// Neither is allowed.
///
/// # Safety
/// The pages are private, and nobody runs or writes there meanwhile.
pub unsafe fn make_executable(at: u64, length: u64) -> Result<(), Errno> {
    // SAFETY: the caller's promise.
    let protected =
        unsafe { syscall::protect(at as usize, length as usize, PROT_READ | PROT_EXEC) };
    if protected.is_ok() || length == 0 {
        return protected;
    }
    let file = syscall::file_in_memory()?;
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(at as *const u8, length as usize) };
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        written += file.write_at(rest, written as u64)?;
    }
    // SAFETY: as above.
    unsafe { file.map_text_over(at, length, 0) }
}

/// Makes written pages executable again. A policy may forbid that; then the file's own pages take
/// their place, and nothing was changed.
fn seal(texts: &[TextSegment], path: &[u8]) -> Result<(), &'static str> {
    let mut refused = Ok(());
    for text in texts {
        refused = refused.and(text.make_executable());
    }
    let Err(reason) = refused else {
        return Ok(());
    };
    let mut name = Text::<{ PATH + 1 }>::new();
    name.push(path);
    name.push(b"\0");
    if let Ok(file) = syscall::open(name.bytes(), O_RDONLY) {
        for text in texts.iter().filter(|text| text.is_written()) {
            let offset = text.offset.wrapping_add(text.low).wrapping_sub(text.start);
            // SAFETY: these pages were mapped from this very place of the file.
            let _ = unsafe { file.map_text_over(text.low, text.high - text.low, offset) };
        }
    }
    Err(reason)
}

/// Text segments that an image may have.
const MOST_SEGMENTS: usize = 8;

/// Writes the sites, group by group: all of a group or none, and none of the imports that are left.
/// Returns how many groups do not hold what they should.
pub fn rewrite(
    plan: &Plan<'_>,
    image: &Image,
    path: &[u8],
    arena: u64,
    left: &Imports,
) -> Result<u64, &'static str> {
    const GOOD: u8 = 0;
    const BAD: u8 = 1;
    const LEFT: u8 = 2;
    let groups = plan.sites().map(|site| site.group as usize + 1).max();
    let Some(groups) = groups else {
        return Ok(0);
    };
    if groups > 1 << 28 {
        return Err("the plan is damaged");
    }
    let mut texts = [TextSegment::NONE; MOST_SEGMENTS];
    let mut count = 0;
    let mut pages = 0;
    for segment in image.segments().iter().filter(|segment| segment.is_text()) {
        let Some(text) = texts.get_mut(count) else {
            break;
        };
        text.start = image.bias.wrapping_add(segment.address);
        text.end = text.start.wrapping_add(segment.size);
        text.offset = segment.offset;
        text.marks = pages;
        pages += text.pages();
        count += 1;
    }
    let texts = texts.get_mut(..count).unwrap_or(&mut []);
    let mut marks = Piece::new(groups).ok_or(MEMORY)?;
    let marks = marks.zeros();
    let mut written = Piece::new(pages).ok_or(MEMORY)?;
    let written = written.zeros();

    // Which pages are written to, before any of them is touched.
    for site in plan.sites() {
        let Some(mark) = marks.get_mut(site.group as usize) else {
            continue;
        };
        if left.contains(site.target) {
            *mark = LEFT;
            continue;
        }
        let at = image.bias.wrapping_add(site.address);
        let end = at.wrapping_add(u64::from(site.length));
        let target = arena.wrapping_add(u64::from(site.target));
        let reaches =
            site.field == site::NO_FIELD || displacement(at, site.field, target).is_some();
        let text = texts
            .iter_mut()
            .find(|text| text.start <= at && at < end && end <= text.end);
        let Some(text) = text.filter(|_| reaches) else {
            *mark = BAD;
            continue;
        };
        text.low = text.low.min(at & !(PAGE - 1));
        text.high = text.high.max(end.next_multiple_of(PAGE));
        let page = |at: u64| text.marks + (at / PAGE - text.start / PAGE) as usize;
        for page in page(at)..=page(end - 1) {
            if let Some(place) = written.get_mut(page) {
                *place = 1;
            }
        }
    }
    for (index, text) in texts.iter().enumerate() {
        if let Err(reason) = text.protect(PROT_READ | PROT_WRITE) {
            let touched = texts.get(..index).unwrap_or(&[]);
            return seal(touched, path).and(Err(reason));
        }
    }
    for text in texts.iter() {
        text.make_pages(written);
    }
    for site in plan.sites() {
        let at = image.bias.wrapping_add(site.address);
        if let Some(mark) = marks.get_mut(site.group as usize)
            && *mark == GOOD
            // SAFETY: sites of good groups lie in text segments, which can be read.
            && !unsafe { holds(at, &site.old, site.length) }
        {
            *mark = BAD;
        }
    }
    for site in plan.sites() {
        if marks.get(site.group as usize) != Some(&GOOD) {
            continue;
        }
        let at = image.bias.wrapping_add(site.address);
        let target = arena.wrapping_add(u64::from(site.target));
        // SAFETY: checked to lie in text, which is writable now; the plan's check keeps the field inside.
        unsafe {
            store(at, &site.new, site.length);
            if site.field != site::NO_FIELD
                && let Some(value) = displacement(at, site.field, target)
            {
                let field = at.wrapping_add(u64::from(site.field)) as *mut i32;
                field.write_unaligned(value);
            }
        }
    }
    let unexpected = marks.iter().filter(|mark| **mark == BAD).count() as u64;
    seal(texts, path).map(|()| unexpected)
}

/// Whether the first `length` bytes at `at` are those of `bytes`. By words that overlap: a call for each of
/// the hundred thousand sites would cost more than the comparison.
///
/// # Safety
/// They can be read.
unsafe fn holds(at: u64, bytes: &[u8; 16], length: u32) -> bool {
    let text = at as *const u8;
    let length = length as usize;
    // SAFETY: the caller's promise; the plan's check keeps the length within the array.
    unsafe {
        let same = |from: usize| {
            let ours = bytes.as_ptr().add(from).cast::<u64>().read_unaligned();
            text.add(from).cast::<u64>().read_unaligned() == ours
        };
        match length {
            8..=16 => same(0) && same(length - 8),
            4..=7 => {
                let half = |from: usize| {
                    let ours = bytes.as_ptr().add(from).cast::<u32>().read_unaligned();
                    text.add(from).cast::<u32>().read_unaligned() == ours
                };
                half(0) && half(length - 4)
            }
            _ => (0..length.min(16)).all(|index| bytes.get(index) == Some(&*text.add(index))),
        }
    }
}

/// Writes the first `length` of `bytes` to `at`, likewise.
///
/// # Safety
/// They can be written.
unsafe fn store(at: u64, bytes: &[u8; 16], length: u32) {
    let text = at as *mut u8;
    let length = length as usize;
    // SAFETY: as in `holds`.
    unsafe {
        let word = |from: usize| {
            let ours = bytes.as_ptr().add(from).cast::<u64>().read_unaligned();
            text.add(from).cast::<u64>().write_unaligned(ours);
        };
        let half = |from: usize| {
            let ours = bytes.as_ptr().add(from).cast::<u32>().read_unaligned();
            text.add(from).cast::<u32>().write_unaligned(ours);
        };
        match length {
            8..=16 => {
                word(0);
                word(length - 8);
            }
            4..=7 => {
                half(0);
                half(length - 4);
            }
            _ => {
                for (index, byte) in bytes.iter().enumerate().take(length) {
                    text.add(index).write_volatile(*byte);
                }
            }
        }
    }
}

/// The value of a site's field.
#[inline]
fn displacement(at: u64, field: u32, target: u64) -> Option<i32> {
    let from = at.wrapping_add(u64::from(field)).wrapping_add(4);
    i32::try_from(target.wrapping_sub(from) as i64).ok()
}
