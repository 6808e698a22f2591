//! Where the functions are: frame descriptions (FDEs) of `.eh_frame`, named by the symbol tables.
//!
//! Compilers describe every function's frame, in stripped files too, so the FDEs are the domain:
//! on distribution-built objects every symbol with a size has an FDE at its address, and stripped
//! objects have many FDEs without a symbol. What else has FDEs is told apart here: PLT sections,
//! the C runtime's start code, and the split-off `.cold` parts of functions.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, UnwindContext,
    UnwindSection, X86_64,
};
use object::elf;
use object::read::elf::{SectionHeader, Sym};
use rustc_hash::FxHashMap;

use crate::image::{Image, LE};

/// What a range of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RangeKind {
    /// A function, as far as can be told without decoding.
    Function,
    /// A split-off part of a function: named `NAME.cold`, or nameless and beginning with a frame
    /// already set up.
    Part,
    /// Start code of the C runtime.
    Startup,
    /// A section of stubs that lead into libraries.
    Plt,
}

/// A range of code with one frame description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRange<'a> {
    /// First address.
    pub address: u64,
    /// Size in bytes, at least 1.
    pub size: u64,
    /// Linkage name, where a symbol table has one.
    pub name: Option<&'a [u8]>,
    /// What it is.
    pub kind: RangeKind,
    /// Its frame is set up before its first instruction: it is not entered by a plain call.
    pub begins_framed: bool,
    /// Where its frame description lies in `.eh_frame`.
    pub(crate) frame: usize,
    /// It has a table of landing pads.
    pub(crate) has_pads: bool,
}

impl CodeRange<'_> {
    /// Address behind the last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// A function symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionSymbol<'a> {
    /// Its address.
    pub address: u64,
    /// Linkage name without version.
    pub name: &'a [u8],
    /// Chosen by a resolver at load time: the address is the resolver's.
    pub is_indirect: bool,
    /// In the dynamic symbol table: other images can see it.
    pub is_exported: bool,
    /// A weak name: a second one for what has another, mostly (`rindex` of `strrchr`).
    pub is_weak: bool,
}

/// Functions around the program's own that a linker adds. They run before the recorder or after it,
/// or have no frame description.
const STARTUP: [&[u8]; 13] = [
    b"_start",
    b"_init",
    b"_fini",
    b"deregister_tm_clones",
    b"register_tm_clones",
    b"__do_global_dtors_aux",
    b"__do_global_ctors_aux",
    b"frame_dummy",
    b"_dl_relocate_static_pie",
    b"__libc_csu_init",
    b"__libc_csu_fini",
    b"__libc_csu_irel",
    b"_dl_start",
];

const PLT_SECTIONS: [&[u8]; 5] = [b".plt", b".plt.got", b".plt.sec", b".plt.bnd", b".iplt"];

impl<'a> Image<'a> {
    /// The ranges of code that have a frame description, by address, without overlaps (where a
    /// damaged file has overlaps, the earlier range stays).
    #[must_use]
    pub fn ranges(&self) -> Vec<CodeRange<'a>> {
        let symbols = self.function_symbols();
        let plt = self.plt_sections();
        let mut ranges: Vec<CodeRange<'a>> = self
            .frames()
            .into_iter()
            .map(|found| {
                let Frame { address, size, .. } = found;
                let name = name_at(symbols, address);
                let within = |(start, end): &(u64, u64)| (*start..*end).contains(&address);
                let kind = if plt.iter().any(within) {
                    RangeKind::Plt
                } else if address == self.entry()
                    || address == self.dynamic.init
                    || address == self.dynamic.fini
                    || name.is_some_and(is_startup)
                {
                    RangeKind::Startup
                } else if name.map_or(found.begins_framed, is_part) {
                    RangeKind::Part
                } else {
                    RangeKind::Function
                };
                CodeRange {
                    address,
                    size,
                    name,
                    kind,
                    begins_framed: found.begins_framed,
                    frame: found.offset,
                    has_pads: found.has_pads,
                }
            })
            .collect();
        self.mark_relocate_static(&mut ranges);
        ranges
    }

    /// `_dl_relocate_static_pie` of a stripped program: a bare `ret` behind `_start`, from the same
    /// object file.
    fn mark_relocate_static(&self, ranges: &mut [CodeRange<'a>]) {
        let start = ranges
            .iter()
            .position(|range| range.address == self.entry());
        let Some(next) = start.and_then(|start| ranges.get_mut(start + 1)) else {
            return;
        };
        let body = self.bytes_at(next.address, next.size).unwrap_or_default();
        let is_bare = body.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(body) == [0xc3];
        if next.name.is_none() && is_bare {
            next.kind = RangeKind::Startup;
        }
    }

    /// Start and end of the sections of stubs that lead into libraries.
    #[must_use]
    pub fn plt_sections(&self) -> Vec<(u64, u64)> {
        self.loaded_sections()
            .filter(|section| PLT_SECTIONS.contains(&section.name))
            .map(|section| {
                (
                    section.address,
                    section.address.saturating_add(section.size),
                )
            })
            .collect()
    }

    /// Start and end of what holds code: sections, or segments where the file has none.
    #[must_use]
    pub fn code_sections(&self) -> Vec<(u64, u64)> {
        let loaded = self.sections.iter().filter(|it| it.sh_addr(LE) != 0);
        let code = loaded.filter(|it| it.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0);
        let found: Vec<(u64, u64)> = code
            .map(|it| {
                (
                    it.sh_addr(LE),
                    it.sh_addr(LE).saturating_add(it.sh_size(LE)),
                )
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
        let code = self.segments().iter().filter(|it| it.executable);
        code.map(|it| (it.address, it.address + it.bytes.len() as u64))
            .collect()
    }

    /// Function symbols that the image defines, by address, then by how good a name they are.
    #[must_use]
    pub fn function_symbols(&self) -> &[FunctionSymbol<'a>] {
        self.functions.get_or_init(|| self.read_function_symbols())
    }

    fn read_function_symbols(&self) -> Vec<FunctionSymbol<'a>> {
        let mut found = Vec::new();
        let more = self.debug.as_ref().and_then(|debug| {
            let table = debug.sections.symbols(LE, debug.bytes, elf::SHT_SYMTAB);
            Some((table.ok()?, false))
        });
        let own = [(elf::SHT_SYMTAB, false), (elf::SHT_DYNSYM, true)]
            .map(|(table, is_dynamic)| (self.symbols(table), is_dynamic));
        for (symbols, is_dynamic) in own.into_iter().chain(more) {
            for symbol in symbols.iter() {
                let kind = symbol.st_type();
                let is_indirect = kind == elf::STT_GNU_IFUNC;
                let address = symbol.st_value(LE);
                if symbol.is_undefined(LE) || !(kind == elf::STT_FUNC || is_indirect) {
                    continue;
                }
                let name = symbols.symbol_name(LE, symbol).unwrap_or_default();
                let end = name.iter().position(|byte| *byte == b'@');
                let name = &name[..end.unwrap_or(name.len())];
                if name.is_empty() || !self.is_code(address) {
                    continue;
                }
                let rank = match symbol.st_bind() {
                    elf::STB_GLOBAL => 0,
                    elf::STB_WEAK => 1,
                    _ => 2,
                };
                let symbol = FunctionSymbol {
                    address,
                    name,
                    is_indirect,
                    is_exported: is_dynamic,
                    is_weak: rank == 1,
                };
                found.push((symbol, rank));
            }
        }
        // One address may have many names; global before weak before local, then the shortest, then
        // the first: so that every run of every build of the tool picks the same.
        let key = |(symbol, rank): &(FunctionSymbol<'a>, u8)| {
            (
                symbol.address,
                *rank,
                symbol.name.len(),
                symbol.name,
                !symbol.is_exported,
            )
        };
        found.sort_by(|a, b| key(a).cmp(&key(b)));
        // The exported one of two rows of one symbol stands first, and stays.
        found.dedup_by(|a, b| (a.0.address, a.0.name) == (b.0.address, b.0.name));
        found.into_iter().map(|(symbol, _)| symbol).collect()
    }

    /// What every frame description says, by address.
    fn frames(&self) -> Vec<Frame> {
        let Some((bytes, address)) = self.eh_frame() else {
            return Vec::new();
        };
        let frame = EhFrame::new(bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(address);
        let mut context = UnwindContext::new();
        let mut common = FxHashMap::default();
        let mut found = Vec::new();
        let mut entries = frame.entries(&bases);
        // A damaged entry ends the walk: what stands behind it cannot be found.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let parsed = partial.parse(|section: &EhFrame<EndianSlice<'a, _>>, bases, offset| {
                if let Some(known) = common.get(&offset) {
                    return Ok(Clone::clone(known));
                }
                let parsed = section.cie_from_offset(bases, offset)?;
                common.insert(offset, parsed.clone());
                Ok(parsed)
            });
            let Ok(fde) = parsed else { continue };
            let (start, size) = (fde.initial_address(), fde.len());
            if size == 0 || self.bytes_at(start, size).is_none() || !self.is_code(start) {
                continue;
            }
            let begins_framed = fde
                .rows(&frame, &bases, &mut context)
                .is_ok_and(|mut rows| begins_framed(|| next_rule(&mut rows), start));
            found.push(Frame {
                address: start,
                size,
                begins_framed,
                offset: fde.offset(),
                has_pads: fde.lsda().is_some(),
            });
        }
        found.sort_by_key(|frame| frame.address);
        let mut end = 0;
        found.retain(|frame| {
            let keep = frame.address >= end;
            if keep {
                end = frame.address.saturating_add(frame.size);
            }
            keep
        });
        found
    }
}

/// What is taken from a frame description.
struct Frame {
    address: u64,
    size: u64,
    begins_framed: bool,
    offset: usize,
    has_pads: bool,
}

/// The next row of a frame description: where it begins, and offset of the frame from rsp (`None`
/// where the rule is of another form).
fn next_rule<'a>(
    rows: &mut gimli::UnwindTable<'_, '_, EndianSlice<'a, LittleEndian>>,
) -> Option<(u64, Option<i64>)> {
    let row = rows.next_row().ok()??;
    let offset = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } if *register == X86_64::RSP => {
            Some(*offset)
        }
        _ => None,
    };
    Some((row.start_address(), offset))
}

/// Whether the range begins with a frame set up. A landing pad cannot stand first in its range, so
/// a part that begins with one has a `nop` before it, and then the frame; a real entry's first byte
/// alone can push 8 bytes and no more.
fn begins_framed(mut next: impl FnMut() -> Option<(u64, Option<i64>)>, start: u64) -> bool {
    match next() {
        None => false,
        Some((_, Some(8))) => match next() {
            Some((at, offset)) => at == start + 1 && offset != Some(16),
            None => false,
        },
        Some(_) => true,
    }
}

fn name_at<'a>(symbols: &[FunctionSymbol<'a>], address: u64) -> Option<&'a [u8]> {
    let first = symbols.partition_point(|symbol| symbol.address < address);
    let symbol = symbols.get(first)?;
    (symbol.address == address).then_some(symbol.name)
}

fn is_startup(name: &[u8]) -> bool {
    STARTUP.contains(&name)
        || name.starts_with(b"__x86_indirect_thunk")
        || name.starts_with(b"__x86_return_thunk")
}

/// `f.cold`, `f.cold.3`, `f.constprop.0.cold`: what a compiler moved out of the way.
fn is_part(name: &[u8]) -> bool {
    parent_name(name).is_some()
}

/// The name of the function that a `.cold` part belongs to.
pub(crate) fn parent_name(name: &[u8]) -> Option<&[u8]> {
    let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let without = &name[..name.len() - digits];
    let stem = if digits > 0 {
        without.strip_suffix(b".").unwrap_or(name)
    } else {
        name
    };
    stem.strip_suffix(b".cold")
        .filter(|parent| !parent.is_empty())
}

impl<'a> CodeRange<'a> {
    /// The linkage name of the function that a named part belongs to.
    #[must_use]
    pub fn parent_name(&self) -> Option<&'a [u8]> {
        self.name.and_then(parent_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_by_name() {
        assert_eq!(parent_name(b"f.cold"), Some(&b"f"[..]));
        assert_eq!(parent_name(b"f.cold.12"), Some(&b"f"[..]));
        assert_eq!(
            parent_name(b"f.constprop.0.cold"),
            Some(&b"f.constprop.0"[..])
        );
        assert_eq!(parent_name(b"f.constprop.0"), None);
        assert_eq!(parent_name(b".cold"), None);
        assert_eq!(parent_name(b"cold"), None);
        assert_eq!(parent_name(b""), None);
    }
}
