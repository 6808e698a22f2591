//! Names that lie outside an image's own symbol tables: in a compressed table that distributions leave
//! in stripped files (`.gnu_debugdata`), or in a file of its own, found by build id.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{FileHeader, SectionTable};

use crate::image::{Header, Image, LE};

/// More than any table of names; a compressed file may claim to be anything.
const MOST: usize = 64 << 20;

/// A file with more symbols of an image.
#[derive(Debug, Clone)]
pub(crate) struct Debug<'a> {
    pub bytes: &'a [u8],
    pub sections: SectionTable<'a, Header>,
}

impl<'a> Image<'a> {
    /// The image with the names that `bytes`, a file of debug information for it, has beside its own.
    /// What is no such file is passed over.
    #[must_use]
    pub fn with_names_of(mut self, bytes: &'a [u8]) -> Self {
        if let Ok(header) = Header::parse(bytes)
            && header.is_little_endian()
            && header.e_machine(LE) == elf::EM_X86_64
            && let Ok(sections) = header.sections(LE, bytes)
        {
            self.debug = Some(Debug { bytes, sections });
            self.functions.take();
        }
        self
    }

    /// The file of names that is compressed in this one, if there is one.
    #[must_use]
    pub fn compressed_names(&self) -> Option<Vec<u8>> {
        let (mut data, _) = self.section(b".gnu_debugdata")?;
        let mut found = Bounded(Vec::new());
        lzma_rs::xz_decompress(&mut data, &mut found).ok()?;
        Some(found.0)
    }
}

/// Where distributions put the debug information of an image with this build id.
#[must_use]
pub fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    use std::fmt::Write as _;
    let (first, rest) = build_id
        .split_first()
        .filter(|(_, rest)| !rest.is_empty())?;
    let mut name = String::new();
    for byte in rest {
        // Writing into a String cannot fail.
        let _ = write!(name, "{byte:02x}");
    }
    let directory = Path::new("/usr/lib/debug/.build-id").join(format!("{first:02x}"));
    Some(directory.join(format!("{name}.debug")))
}

/// A vector that does not grow beyond [`MOST`].
struct Bounded(Vec<u8>);

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other("larger than any table of names"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_files_by_build_id() {
        let expected = Path::new("/usr/lib/debug/.build-id/ab/cdef01.debug");
        assert_eq!(
            debug_file(&[0xab, 0xcd, 0xef, 1]).as_deref(),
            Some(expected)
        );
        assert_eq!(debug_file(&[1]), None);
        assert_eq!(debug_file(&[]), None);
    }
}
