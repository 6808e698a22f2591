//! Source places with the functions that were inlined there, from DWARF that may be compressed.

use std::collections::BTreeMap;

use flate2::{Decompress, FlushDecompress};
use gimli::{EndianSlice, LittleEndian};
use object::elf::{self, CompressionHeader64};
use object::pod;
use object::read::elf::{CompressionHeader, SectionHeader};

use crate::Image;
use crate::image::LE;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The debug information of an image, decompressed.
#[derive(Debug, Clone, Default)]
pub struct DebugSections(BTreeMap<&'static str, Vec<u8>>);

impl DebugSections {
    /// What `image` has of it; sections that would go beyond `limit` bytes together are left out.
    #[must_use]
    pub fn of(image: &Image<'_>, limit: usize) -> Self {
        let mut left = limit;
        let mut sections = BTreeMap::new();
        for id in SECTIONS {
            if let Some(bytes) = whole_section(image, id.name().as_bytes(), left) {
                left -= bytes.len();
                sections.insert(id.name(), bytes);
            }
        }
        Self(sections)
    }
}

const SECTIONS: [gimli::SectionId; 9] = [
    gimli::SectionId::DebugInfo,
    gimli::SectionId::DebugAbbrev,
    gimli::SectionId::DebugLine,
    gimli::SectionId::DebugLineStr,
    gimli::SectionId::DebugStr,
    gimli::SectionId::DebugStrOffsets,
    gimli::SectionId::DebugAddr,
    gimli::SectionId::DebugRanges,
    gimli::SectionId::DebugRngLists,
];

/// A function at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its linkage name; empty where it is unknown.
    pub function: String,
    /// Its file, as the compiler named it.
    pub file: String,
    /// The line, 0 where it is unknown.
    pub line: u32,
}

/// Frames of an image's addresses. A unit is parsed when the first of its addresses is asked for.
pub struct Frames<'a> {
    context: addr2line::Context<Slice<'a>>,
}

impl<'a> Frames<'a> {
    /// Those that `sections` tell of; `None` where they are no debug information.
    #[must_use]
    pub fn new(sections: &'a DebugSections) -> Option<Self> {
        let load = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
            let bytes = sections.0.get(id.name()).map_or(&[][..], Vec::as_slice);
            Ok(EndianSlice::new(bytes, LittleEndian))
        };
        sections.0.get(".debug_info")?;
        let dwarf = gimli::Dwarf::load(load).ok()?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Self { context })
    }

    /// The functions at `address`, the innermost first; the last one is the one that was not inlined.
    #[must_use]
    pub fn at(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|it| it.raw_name().ok());
            let place = frame.location.as_ref();
            found.push(Frame {
                function: name.map(|it| it.into_owned()).unwrap_or_default(),
                file: place.and_then(|it| it.file).unwrap_or_default().to_owned(),
                line: place.and_then(|it| it.line).unwrap_or(0),
            });
        }
        found
    }
}

impl std::fmt::Debug for Frames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}

/// A section's bytes, decompressed where they are not; nothing where there are more than `limit`.
fn whole_section(image: &Image<'_>, name: &[u8], limit: usize) -> Option<Vec<u8>> {
    let (_, section) = image.sections.section_by_name(LE, name)?;
    let data = section.data(LE, image.bytes).ok()?;
    if section.sh_flags(LE).0 & elf::SHF_COMPRESSED.0 == 0 {
        return (data.len() <= limit).then(|| data.to_vec());
    }
    let (header, packed) =
        pod::from_bytes::<CompressionHeader64<object::LittleEndian>>(data).ok()?;
    let size = usize::try_from(header.ch_size(LE)).ok()?;
    if header.ch_type(LE) != elf::ELFCOMPRESS_ZLIB || size > limit {
        return None;
    }
    // A little more than a thousandfold is all that the method can do.
    if size / 1100 > packed.len() {
        return None;
    }
    let mut out = Vec::with_capacity(size);
    let mut decoder = Decompress::new(true);
    decoder
        .decompress_vec(packed, &mut out, FlushDecompress::Finish)
        .ok()?;
    (out.len() == size).then_some(out)
}
