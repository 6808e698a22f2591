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

    /// File (as the compiler named it) and line of the instruction at `address`. Of what was inlined from a header of the
    /// system, where it was inlined into the program's own text: that is what its people look for.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<(String, u32)> {
        let location = self.context.find_location(address).ok()??;
        let found = (location.file?.to_owned(), location.line?);
        match is_of_the_system(&found.0) {
            true => Some(self.inlined_into(address).unwrap_or(found)),
            false => Some(found),
        }
    }

    /// The innermost of the inlined calls around an instruction that is in a file of the program's own.
    fn inlined_into(&self, address: u64) -> Option<(String, u32)> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        while let Some(frame) = frames.next().ok()? {
            if let Some((file, line)) = frame.location.and_then(|it| it.file.zip(it.line))
                && !is_of_the_system(file)
            {
                return Some((file.to_owned(), line));
            }
        }
        None
    }
}

/// Whether a source file is one of the compiler's or the system's: headers of the C++ library, say.
#[must_use]
pub fn is_of_the_system(file: &str) -> bool {
    let is_installed = file.starts_with("/usr/include/") || file.starts_with("/usr/lib");
    is_installed || file.contains("/include/c++/") || file.contains("/lib/gcc/")
}

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}
