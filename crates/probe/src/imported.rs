//! What libraries import. From it: which unwind stacks with code of their own, a copy of libgcc's unwinder
//! (`-static-libgcc`), or another one. Such code cannot be made to put return addresses back first, so
//! that no other address may stand in their place while it is about. And which call MPI on a program's behalf.
//!
//! *Costs*: a look at the imported names of each library; at the frame descriptions of few.

use crate::image::{Image, Link};
use crate::text::until_zero;
use lockstep_format::bytes::{u32_at, u64_at};

const SYMBOL: usize = 24;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// Longest name that matters, with its zero.
const NAME: usize = 24;
/// Most frame descriptions that are looked at.
const MOST: usize = 1 << 16;

/// What the names that a library imports tell of it.
#[derive(Clone, Copy, Default)]
pub struct Imported {
    /// It asks the dynamic linker for frame descriptions.
    asks: bool,
    /// It imports an unwinder.
    unwinds: bool,
    /// It calls MPI as programs do (its functions' C names, or Fortran's): so do few others that begin like that.
    pub may_call_mpi: bool,
}

impl Imported {
    /// One look at all of them.
    pub fn of(link: &Link) -> Self {
        let mut found = Self::default();
        each_import(link, |name| {
            found.asks |= name == b"dl_iterate_phdr" || name == b"_dl_find_object";
            found.unwinds |= name.starts_with(b"_Unwind_");
            found.may_call_mpi |= name.starts_with(b"MPI_") || name.starts_with(b"mpi_");
        });
        found
    }

    /// Whether the library asks the dynamic linker for frame descriptions, does not import an unwinder, and has frames that an
    /// unwinder must tend: it has one.
    pub fn has_own_unwinder(self, image: &Image) -> bool {
        self.asks && !self.unwinds && has_personality(image)
    }
}

/// Calls `visit` with the names of the symbols that are not in the hash table: those that are imported.
fn each_import(link: &Link, mut visit: impl FnMut(&[u8])) -> Option<()> {
    let symbols = entry(link, DT_SYMTAB)?;
    let names = entry(link, DT_STRTAB)?;
    let hash = entry(link, DT_GNU_HASH)?;
    // SAFETY: the linker uses these tables as long as the library is there.
    let count = unsafe { ((hash + 4) as *const u32).read_unaligned() };
    for index in 1..count as usize {
        // SAFETY: as above; the section index is zero where the symbol is not defined. Names lie
        // inside their table, behind which the library's other tables are mapped.
        unsafe {
            let symbol = symbols as usize + index * SYMBOL;
            if ((symbol + 6) as *const u16).read_unaligned() != 0 {
                continue;
            }
            let at = names + u64::from((symbol as *const u32).read_unaligned());
            visit(until_zero(core::slice::from_raw_parts(
                at as *const u8,
                NAME,
            )));
        }
    }
    Some(())
}

/// A value of the dynamic section, as an address in memory.
fn entry(link: &Link, tag: u64) -> Option<u64> {
    let mut at = link.dynamic;
    loop {
        // SAFETY: the dynamic section of a loaded library ends with a null entry.
        match unsafe { *at } {
            [0, _] => return None,
            // Some linkers leave what the file says.
            [found, value] if found == tag && value < link.bias => return Some(link.bias + value),
            [found, value] if found == tag => return Some(value),
            // SAFETY: not the last one.
            _ => at = unsafe { at.add(1) },
        }
    }
}

/// Whether some frame description names a personality routine.
fn has_personality(image: &Image) -> bool {
    /// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`, the only encoding that linkers use.
    const RELATIVE: u8 = 0x1b;
    let Some(header) = image.frame_header() else {
        return false;
    };
    if header.get(1) != Some(&RELATIVE) {
        return false;
    }
    let Some(distance) = u32_at(header, 4) else {
        return false;
    };
    let start = (header.as_ptr() as u64 + 4).wrapping_add_signed(i64::from(distance as i32));
    let Some(mut rest) = image.from(start) else {
        return false;
    };
    for _ in 0..MOST {
        let (Some(length), Some(id)) = (u32_at(rest, 0), u32_at(rest, 4)) else {
            return false;
        };
        if length == 0 {
            return false;
        }
        let augmentation = rest.get(9..17).map_or(&[][..], until_zero);
        if id == 0 && augmentation.contains(&b'P') {
            return true;
        }
        let long = length == u32::MAX;
        let size = match long {
            true => u64_at(rest, 4).map_or(usize::MAX, |size| (size as usize).saturating_add(12)),
            false => length as usize + 4,
        };
        let Some(next) = rest.get(size..) else {
            return false;
        };
        rest = next;
    }
    false
}
