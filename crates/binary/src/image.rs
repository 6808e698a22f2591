//! The headers of an ELF file, read once and checked against the file.

use std::sync::OnceLock;

use lockstep_format::bytes::u32_at;
use object::elf::{self, FileHeader64, ProgramHeader64, Rela64, Sym64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader, SectionTable, SymbolTable};
use object::{LittleEndian, pod};

use crate::debug::Debug;
use crate::program::{Kind, Unsuitable, check_magic, check_type, damaged};
use crate::ranges::FunctionSymbol;

pub(crate) const LE: LittleEndian = LittleEndian;
pub(crate) type Header = FileHeader64<LittleEndian>;

/// A loadable segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Address in the file.
    pub address: u64,
    /// Size in memory; what lies beyond `bytes` is zero.
    pub size: u64,
    /// Its bytes in the file.
    pub bytes: &'a [u8],
    /// Holds code.
    pub executable: bool,
    /// Holds data that changes.
    pub writable: bool,
}

/// A named section that is loaded into memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section<'a> {
    /// `.text`, `.plt.sec`...
    pub name: &'a [u8],
    /// Address in the file.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

/// What the dynamic section says; 0 where absent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dynamic {
    pub symbols: u64,
    pub strings: u64,
    pub strings_size: u64,
    pub relocations: (u64, u64),
    pub jump_slots: (u64, u64),
    pub relative: (u64, u64),
    pub init: u64,
    pub fini: u64,
    pub has_soname: bool,
    pub says_pie: bool,
}

/// An x86-64 ELF image: its headers, parsed, over the file's bytes.
#[derive(Debug, Clone)]
pub struct Image<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) sections: SectionTable<'a, Header>,
    pub(crate) dynamic: Dynamic,
    /// More names.
    pub(crate) debug: Option<Debug<'a>>,
    /// The function symbols, once they were asked for.
    pub(crate) functions: OnceLock<Vec<FunctionSymbol<'a>>>,
    kind: Kind,
    entry: u64,
    segments: Vec<Segment<'a>>,
    eh_frame_header: Option<u64>,
    interpreter: Option<&'a [u8]>,
    needed: Vec<&'a [u8]>,
    build_id: &'a [u8],
}

impl<'a> Image<'a> {
    /// Parses the headers of `bytes`.
    ///
    /// # Errors
    /// What the file is, where it is no x86-64 ELF program or library.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Unsuitable> {
        check_magic(bytes)?;
        let header = Header::parse(bytes).map_err(damaged)?;
        let file_type = check_type(header)?;
        let programs = header.program_headers(LE, bytes).map_err(damaged)?;
        // Sections are a help, not needed to run: a file without them has its functions all the same.
        let sections = header.sections(LE, bytes).unwrap_or_default();
        let segments = load_segments(programs, bytes)?;
        let mut image = Self {
            bytes,
            sections,
            dynamic: Dynamic::default(),
            debug: None,
            functions: OnceLock::new(),
            kind: Kind::Static,
            entry: header.e_entry(LE),
            segments,
            eh_frame_header: None,
            interpreter: None,
            needed: Vec::new(),
            build_id: &[],
        };
        image.read_program_headers(programs);
        let dynamic = &image.dynamic;
        image.kind = match (file_type, image.interpreter) {
            (elf::ET_EXEC, Some(_)) => Kind::Fixed,
            (elf::ET_EXEC, None) => Kind::Static,
            (_, Some(_)) if dynamic.says_pie || !dynamic.has_soname => Kind::Pie,
            (_, None) if dynamic.says_pie => Kind::Static,
            _ => Kind::Library,
        };
        Ok(image)
    }

    fn read_program_headers(&mut self, programs: &'a [ProgramHeader64<LittleEndian>]) {
        let mut needed_names = Vec::new();
        for program in programs {
            match program.p_type(LE) {
                elf::PT_INTERP => {
                    self.interpreter = program.interpreter(LE, self.bytes).ok().flatten();
                }
                elf::PT_GNU_EH_FRAME => self.eh_frame_header = Some(program.p_vaddr(LE)),
                elf::PT_NOTE if self.build_id.is_empty() => {
                    self.build_id = build_id_in(program, self.bytes).unwrap_or_default();
                }
                elf::PT_DYNAMIC => {
                    let rows = program.dynamic(LE, self.bytes).ok().flatten();
                    for row in rows.unwrap_or_default() {
                        let (tag, value) = (Dyn::tag(row, LE), Dyn::val(row, LE));
                        if tag == elf::DT_NULL {
                            break;
                        }
                        if tag == elf::DT_NEEDED {
                            needed_names.push(value);
                        }
                        self.dynamic.take(tag, value);
                    }
                }
                _ => {}
            }
        }
        self.needed = needed_names
            .into_iter()
            .filter_map(|offset| self.dynamic_string(offset))
            .collect();
    }

    /// What the file is to the loader.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Address of the first instruction of the program; 0 for libraries.
    #[must_use]
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// Path of the dynamic loader that the file asks for.
    #[must_use]
    pub fn interpreter(&self) -> Option<&'a [u8]> {
        self.interpreter
    }

    /// Names of the libraries that the file asks for.
    #[must_use]
    pub fn needed(&self) -> &[&'a [u8]] {
        &self.needed
    }

    /// The build id; empty where there is none.
    #[must_use]
    pub fn build_id(&self) -> &'a [u8] {
        self.build_id
    }

    /// The loadable segments, by address.
    #[must_use]
    pub fn segments(&self) -> &[Segment<'a>] {
        &self.segments
    }

    /// Lowest and end address of the loadable segments.
    #[must_use]
    pub fn extent(&self) -> (u64, u64) {
        let low = self.segments.first().map_or(0, |segment| segment.address);
        let high = self.segments.iter().map(|s| s.address + s.size).max();
        (low, high.unwrap_or(0))
    }

    /// The loaded sections that have a name. Empty for a file without section headers.
    pub fn loaded_sections(&self) -> impl Iterator<Item = Section<'a>> + '_ {
        self.sections.iter().filter_map(|section| {
            let name = self.sections.section_name(LE, section).ok()?;
            (section.sh_addr(LE) != 0).then(|| Section {
                name,
                address: section.sh_addr(LE),
                size: section.sh_size(LE),
            })
        })
    }

    /// The segment that holds `address`, if the file has bytes for it.
    #[must_use]
    pub fn segment_of(&self, address: u64) -> Option<&Segment<'a>> {
        let after = self.segments.partition_point(|s| s.address <= address);
        let segment = self.segments.get(after.checked_sub(1)?)?;
        (address - segment.address < segment.bytes.len() as u64).then_some(segment)
    }

    /// The file's bytes from `address` to the end of its segment.
    #[must_use]
    pub fn bytes_from(&self, address: u64) -> Option<&'a [u8]> {
        let segment = self.segment_of(address)?;
        segment.bytes.get((address - segment.address) as usize..)
    }

    /// `size` bytes at `address`, if they all lie in one segment of the file.
    #[must_use]
    pub fn bytes_at(&self, address: u64, size: u64) -> Option<&'a [u8]> {
        self.bytes_from(address)?.get(..usize::try_from(size).ok()?)
    }

    /// Whether `address` lies in code.
    #[must_use]
    pub fn is_code(&self, address: u64) -> bool {
        self.segment_of(address).is_some_and(|s| s.executable)
    }

    /// Whether the file itself says which lines its code comes from.
    #[must_use]
    pub fn has_lines(&self) -> bool {
        self.sections
            .section_by_name(LE, b".debug_line")
            .is_some_and(|(_, section)| section.sh_size(LE) > 0)
    }

    /// Contents and address of a section, by name; `None` where it is compressed or absent.
    pub(crate) fn section(&self, name: &[u8]) -> Option<(&'a [u8], u64)> {
        let (_, section) = self.sections.section_by_name(LE, name)?;
        let compressed = section.sh_flags(LE).0 & elf::SHF_COMPRESSED.0 != 0;
        let data = section.data(LE, self.bytes).ok()?;
        (!compressed).then(|| (data, section.sh_addr(LE)))
    }

    /// `.eh_frame` and its address: by section, else by what `.eh_frame_hdr` points to.
    pub(crate) fn eh_frame(&self) -> Option<(&'a [u8], u64)> {
        if let Some(found) = self.section(b".eh_frame") {
            return Some(found);
        }
        // version, three encodings, then a pointer relative to itself: 0x1b is what linkers write.
        let header = self.eh_frame_header?;
        let bytes = self.bytes_at(header, 8)?;
        if bytes.get(1) != Some(&0x1b) {
            return None;
        }
        let offset = u32_at(bytes, 4)? as i32;
        let address = header
            .wrapping_add(4)
            .wrapping_add_signed(i64::from(offset));
        Some((self.bytes_from(address)?, address))
    }

    pub(crate) fn symbols(&self, kind: elf::SectionType) -> SymbolTable<'a, Header> {
        self.sections
            .symbols(LE, self.bytes, kind)
            .unwrap_or_default()
    }

    /// A row of the dynamic symbol table, wherever that lies.
    pub(crate) fn dynamic_symbol(&self, index: u32) -> Option<&'a Sym64<LittleEndian>> {
        let size = size_of::<Sym64<LittleEndian>>() as u64;
        let at = self
            .dynamic
            .symbols
            .checked_add(u64::from(index).checked_mul(size)?)?;
        pod::from_bytes(self.bytes_at(at, size)?)
            .ok()
            .map(|(row, _)| row)
    }

    /// A string of the dynamic string table.
    pub(crate) fn dynamic_string(&self, offset: u64) -> Option<&'a [u8]> {
        if offset >= self.dynamic.strings_size {
            return None;
        }
        let bytes = self.bytes_from(self.dynamic.strings.checked_add(offset)?)?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        Some(&bytes[..end])
    }

    /// Rows of a relocation table at an address; empty where the file does not hold it.
    pub(crate) fn relocation_rows(&self, (at, size): (u64, u64)) -> &'a [Rela64<LittleEndian>] {
        let count = size as usize / size_of::<Rela64<LittleEndian>>();
        self.bytes_at(at, size)
            .and_then(|bytes| pod::slice_from_bytes(bytes, count).ok())
            .map_or(&[], |(rows, _)| rows)
    }
}

impl Dynamic {
    fn take(&mut self, tag: elf::DynamicTag, value: u64) {
        match tag {
            elf::DT_SYMTAB => self.symbols = value,
            elf::DT_STRTAB => self.strings = value,
            elf::DT_STRSZ => self.strings_size = value,
            elf::DT_RELA => self.relocations.0 = value,
            elf::DT_RELASZ => self.relocations.1 = value,
            elf::DT_JMPREL => self.jump_slots.0 = value,
            elf::DT_PLTRELSZ => self.jump_slots.1 = value,
            elf::DT_RELR => self.relative.0 = value,
            elf::DT_RELRSZ => self.relative.1 = value,
            elf::DT_INIT => self.init = value,
            elf::DT_FINI => self.fini = value,
            elf::DT_SONAME => self.has_soname = true,
            elf::DT_FLAGS_1 => self.says_pie = value & elf::DF_1_PIE.0 != 0,
            _ => {}
        }
    }
}

fn load_segments<'a>(
    programs: &'a [ProgramHeader64<LittleEndian>],
    bytes: &'a [u8],
) -> Result<Vec<Segment<'a>>, Unsuitable> {
    let mut segments = Vec::new();
    for program in programs.iter().filter(|p| p.p_type(LE) == elf::PT_LOAD) {
        let (address, size) = (program.p_vaddr(LE), program.p_memsz(LE));
        let data = program.data(LE, bytes).map_err(|()| Unsuitable::Damaged {
            what: format!("the segment at {address:#x} lies outside the file (cut off?)"),
        })?;
        // User space ends far below; staying there keeps sums of addresses from overflowing.
        if address.checked_add(size).is_none_or(|end| end >= 1 << 47) || data.len() as u64 > size {
            let what = format!("impossible segment at {address:#x}, size {size:#x}");
            return Err(Unsuitable::Damaged { what });
        }
        let flags = program.p_flags(LE).0;
        segments.push(Segment {
            address,
            size,
            bytes: data,
            executable: flags & elf::PF_X.0 != 0,
            writable: flags & elf::PF_W.0 != 0,
        });
    }
    segments.sort_by_key(|segment| segment.address);
    if segments
        .windows(2)
        .any(|pair| pair[0].address + pair[0].size > pair[1].address)
    {
        let what = "its segments overlap".to_owned();
        return Err(Unsuitable::Damaged { what });
    }
    Ok(segments)
}

fn build_id_in<'a>(program: &ProgramHeader64<LittleEndian>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let mut notes = program.notes(LE, bytes).ok().flatten()?;
    while let Ok(Some(note)) = notes.next() {
        if note.name() == b"GNU" && note.n_type(LE) == elf::NT_GNU_BUILD_ID {
            return Some(note.desc());
        }
    }
    None
}
