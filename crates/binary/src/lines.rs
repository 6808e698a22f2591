//! Source lines, from DWARF.

use gimli::{EndianSlice, LittleEndian};

use crate::Image;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Source lines of an image. A unit is parsed when the first of its addresses is asked for.
pub struct Lines<'a> {
    context: addr2line::Context<Slice<'a>>,
}

impl<'a> Lines<'a> {
    /// The lines of `image`; `None` where it has none (no debug information, or compressed), or
    /// where the information is larger than `limit` bytes: reading everything costs about 10 ns a
    /// byte in time, and as much again as the sections in memory.
    #[must_use]
    pub fn new(image: &Image<'a>, limit: usize) -> Option<Self> {
        let section = |name: &[u8]| image.section(name).map_or(&[][..], |(bytes, _)| bytes);
        let information = section(b".debug_info");
        let size = information.len() + section(b".debug_line").len();
        if information.is_empty() || size > limit {
            return None;
        }
        let load = |id: gimli::SectionId| -> Result<Slice<'a>, gimli::Error> {
            Ok(EndianSlice::new(
                section(id.name().as_bytes()),
                LittleEndian,
            ))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Self { context })
    }

    /// File (as the compiler named it) and line of the instruction at `address`.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(String, u32)> {
        let location = self.context.find_location(address).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}
