//! Slots through which an image calls library functions, and pointers to code that it holds in data.

use lockstep_format::bytes::u64_at;
use object::elf;
use object::read::elf::{Rela, Sym};

use crate::image::{Image, LE};
use crate::program::Kind;

/// A slot of the global offset table that the loader fills with a function's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Import<'a> {
    /// Address of the 8-byte slot.
    pub slot: u64,
    /// Row in the dynamic symbol table: slots of one symbol share it.
    pub symbol: u32,
    /// Linkage name without version.
    pub name: &'a [u8],
    /// The image defines the symbol itself (another image may still win).
    pub is_defined: bool,
    /// Where the image defines it; 0 where it does not.
    pub address: u64,
    /// The slot serves calls alone (JUMP_SLOT). The other kind (GLOB_DAT) serves the address too:
    /// in a fixed image it may hold the image's own PLT stub as the function's one address.
    pub is_for_calls: bool,
}

impl<'a> Image<'a> {
    /// The JUMP_SLOT and GLOB_DAT relocations against functions or symbols of unknown type, by slot.
    #[must_use]
    pub fn imports(&self) -> Vec<Import<'a>> {
        let mut imports = Vec::new();
        for table in [self.dynamic.jump_slots, self.dynamic.relocations] {
            for row in self.relocation_rows(table) {
                let kind = row.r_type(LE, false);
                if kind != elf::R_X86_64_JUMP_SLOT && kind != elf::R_X86_64_GLOB_DAT {
                    continue;
                }
                let index = row.r_sym(LE, false);
                let Some(symbol) = self.dynamic_symbol(index) else {
                    continue;
                };
                let is_function = matches!(
                    symbol.st_type(),
                    elf::STT_FUNC | elf::STT_NOTYPE | elf::STT_GNU_IFUNC
                );
                let name = self.dynamic_string(u64::from(symbol.st_name(LE)));
                let Some(name) = name.filter(|name| is_function && !name.is_empty()) else {
                    continue;
                };
                let end = name.iter().position(|byte| *byte == b'@');
                imports.push(Import {
                    slot: row.r_offset(LE),
                    symbol: index,
                    name: &name[..end.unwrap_or(name.len())],
                    is_defined: !symbol.is_undefined(LE),
                    address: symbol.st_value(LE),
                    is_for_calls: kind == elf::R_X86_64_JUMP_SLOT,
                });
            }
        }
        imports.sort_by_key(|import| import.slot);
        imports.dedup_by_key(|import| import.slot);
        imports
    }

    /// The slots that lead to an implementation which the image itself chooses while it is loaded
    /// (`R_X86_64_IRELATIVE`), ascending.
    #[must_use]
    pub fn chosen_slots(&self) -> Vec<u64> {
        let mut slots = Vec::new();
        for table in [self.dynamic.jump_slots, self.dynamic.relocations] {
            let rows = self.relocation_rows(table);
            let chosen = rows
                .iter()
                .filter(|row| row.r_type(LE, false) == elf::R_X86_64_IRELATIVE);
            slots.extend(chosen.map(|row| row.r_offset(LE)));
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Words in data that point into code, as (place, address pointed to), by place: relative
    /// relocations, or, where a fixed image has none, every aligned word that looks like one.
    ///
    /// These are the places that computed jumps and indirect calls can reach; a number that only
    /// looks like an address does no harm beyond caution.
    #[must_use]
    pub fn code_pointers(&self) -> Vec<(u64, u64)> {
        let mut pointers = Vec::new();
        let code = self.segments().iter().filter(|it| it.executable);
        let (low, high) = code.fold((u64::MAX, 0), |(low, high), it| {
            (low.min(it.address), high.max(it.address + it.size))
        });
        // Most words of data are none: two comparisons tell.
        let may_be_code = |target: u64| (low..high).contains(&target);
        for row in self.relocation_rows(self.dynamic.relocations) {
            let addend = row.r_addend(LE);
            let value = match row.r_type(LE, false) {
                elf::R_X86_64_RELATIVE | elf::R_X86_64_IRELATIVE => addend as u64,
                elf::R_X86_64_64 => self
                    .dynamic_symbol(row.r_sym(LE, false))
                    .map_or(0, |symbol| symbol.st_value(LE).wrapping_add_signed(addend)),
                _ => continue,
            };
            pointers.push((row.r_offset(LE), value));
        }
        self.packed_relative(&mut pointers);
        if self.kind() == Kind::Fixed {
            for segment in self.segments().iter().filter(|s| !s.executable) {
                let skip = segment.address.wrapping_neg() as usize % 8;
                let words = segment.bytes.get(skip..).unwrap_or_default();
                let start = segment.address + skip as u64;
                let words = words.chunks_exact(8).enumerate();
                let word = |(index, word)| {
                    let target = u64_at(word, 0).filter(|target| may_be_code(*target))?;
                    Some((start + 8 * index as u64, target))
                };
                pointers.extend(words.filter_map(word));
            }
        }
        pointers.retain(|(_, target)| self.is_code(*target));
        pointers.sort_unstable();
        pointers.dedup();
        pointers
    }

    /// DT_RELR: an even word is an address, an odd one a bitmap of the 63 words behind the last.
    fn packed_relative(&self, pointers: &mut Vec<(u64, u64)>) {
        let (at, size) = self.dynamic.relative;
        let mut next = 0u64;
        for word in self.bytes_at(at, size).unwrap_or_default().chunks_exact(8) {
            let word = u64_at(word, 0).unwrap_or(0);
            let mut value_at = |place: u64| {
                let bytes = self.bytes_at(place, 8);
                let value = bytes.and_then(|bytes| u64_at(bytes, 0));
                pointers.extend(value.map(|value| (place, value)));
            };
            if word & 1 == 0 {
                value_at(word);
                next = word.wrapping_add(8);
            } else {
                for bit in (0..63).filter(|bit| word >> (bit + 1) & 1 == 1) {
                    value_at(next.wrapping_add(8 * bit));
                }
                next = next.wrapping_add(63 * 8);
            }
        }
    }
}
