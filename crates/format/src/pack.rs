//! Packs: several files of a run in one, because parallel file systems hate many (`record --pack`).
//!
//! ```text
//!  0        512                                              multiples of 512
//!  ┌────────┬────────┬───────────────┬───┬────────┬──────────
//!  │ header │ member │ its content   │ 0 │ member │ content ...
//!  └────────┴────────┴───────────────┴───┴────────┴──────────
//! ```
//!
//! There is no index to lose: a member's block tells its name and where the next one is, and where such a block does
//! not hold, the next that does is found by looking at every block behind it. The header tells how many members and
//! bytes there are, so that a file that is cut off between two members is noticed, too. A pack is never changed once
//! it has its name: checks cover every block and all content.

use crate::bytes::{put, put_u32, put_u64, u32_at, u64_at};
use crate::check::crc32c;

/// First bytes of a pack.
pub const MAGIC: [u8; 8] = *b"LSPACKED";
/// Version of everything in this module; a reader refuses any other.
pub const VERSION: u32 = 1;
/// Unit of offsets, and size of the header and of what stands before each member's content.
pub const BLOCK: usize = 512;
/// Suffix of a pack's name.
pub const SUFFIX: &str = ".pack";
/// Names are not longer: more than file systems allow would not fit, and none allows it.
pub const MOST_NAME: usize = 255;

/// Whether this is the name of a pack, and not that of a draft of one.
#[must_use]
pub fn is_pack(name: &str) -> bool {
    name.ends_with(SUFFIX) && !name.starts_with('.')
}

/// What stands at a multiple of [`BLOCK`].
pub type Block = [u8; BLOCK];

/// Offsets in the header.
pub mod header {
    /// `[u8; 8]`, [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u32`, [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// `u32`, how many members there are.
    pub const MEMBERS: usize = 12;
    /// `u64`, bytes of the whole file.
    pub const LENGTH: usize = 16;
    /// `u32`, CRC-32C of the bytes before it.
    pub const CHECK: usize = 508;
    /// Size of the whole.
    pub const SIZE: usize = super::BLOCK;
}

/// Offsets in the block before a member's content.
pub mod member {
    /// `[u8; 8]`, [`super::MEMBER_MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u64`, bytes of the content.
    pub const LENGTH: usize = 8;
    /// `u32`, CRC-32C of the content.
    pub const CONTENT_CHECK: usize = 16;
    /// `u32`, bytes of the name.
    pub const NAME_LENGTH: usize = 20;
    /// The file's name, UTF-8.
    pub const NAME: usize = 24;
    /// `u32`, CRC-32C of the bytes before it.
    pub const CHECK: usize = 508;
    /// Size of the whole.
    pub const SIZE: usize = super::BLOCK;
}

/// First bytes of a member's block.
pub const MEMBER_MAGIC: [u8; 8] = *b"LSMEMBER";

/// What a pack says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// How many members there are.
    pub members: u32,
    /// Bytes of the whole file.
    pub length: u64,
}

/// Why a block is no header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoHeader {
    /// It does not begin as one.
    Magic,
    /// It is of another version.
    Version(u32),
    /// Its check is not that of its bytes.
    Check,
}

impl Header {
    /// As it stands in the file.
    #[must_use]
    pub fn block(&self) -> Block {
        let mut block = [0; BLOCK];
        put(&mut block, header::MAGIC, &MAGIC);
        put_u32(&mut block, header::VERSION, VERSION);
        put_u32(&mut block, header::MEMBERS, self.members);
        put_u64(&mut block, header::LENGTH, self.length);
        sealed(block)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Where the block is none.
    pub fn read(block: &Block) -> Result<Self, NoHeader> {
        if !block.starts_with(&MAGIC) {
            return Err(NoHeader::Magic);
        }
        if !holds(block) {
            return Err(NoHeader::Check);
        }
        match u32_at(block, header::VERSION) {
            Some(VERSION) => Ok(Self {
                members: u32_at(block, header::MEMBERS).unwrap_or(0),
                length: u64_at(block, header::LENGTH).unwrap_or(0),
            }),
            version => Err(NoHeader::Version(version.unwrap_or(0))),
        }
    }
}

/// A file in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its name, a plain one.
    pub name: &'a str,
    /// Bytes of its content, which begins behind the block.
    pub length: u64,
    /// Their CRC-32C.
    pub check: u32,
}

impl<'a> Member<'a> {
    /// As it stands in the file; `None` where the name is none that can stand there.
    #[must_use]
    pub fn block(&self) -> Option<Block> {
        let mut block = [0; BLOCK];
        if !is_plain(self.name) {
            return None;
        }
        put(&mut block, member::MAGIC, &MEMBER_MAGIC);
        put_u64(&mut block, member::LENGTH, self.length);
        put_u32(&mut block, member::CONTENT_CHECK, self.check);
        put_u32(&mut block, member::NAME_LENGTH, self.name.len() as u32);
        put(&mut block, member::NAME, self.name.as_bytes());
        Some(sealed(block))
    }

    /// Reads it; `None` where the block is none.
    #[must_use]
    pub fn read(block: &'a Block) -> Option<Self> {
        if !block.starts_with(&MEMBER_MAGIC) || !holds(block) {
            return None;
        }
        let length = u32_at(block, member::NAME_LENGTH)? as usize;
        let name = block.get(member::NAME..member::NAME.checked_add(length)?)?;
        let name = core::str::from_utf8(name).ok()?;
        is_plain(name).then_some(Self {
            name,
            length: u64_at(block, member::LENGTH)?,
            check: u32_at(block, member::CONTENT_CHECK)?,
        })
    }

    /// Bytes from this member's block to the next one.
    #[must_use]
    pub const fn room(length: u64) -> u64 {
        let content = length.saturating_add(BLOCK as u64 - 1) / BLOCK as u64 * BLOCK as u64;
        content.saturating_add(BLOCK as u64)
    }
}

/// Goes through a pack of `size` bytes: `see` gets the offset and the member of every block that is one, and offset
/// and nothing of every block that should be one and is not.
pub fn walk(
    size: u64,
    mut block: impl FnMut(u64) -> Option<Block>,
    mut see: impl FnMut(u64, Option<Member<'_>>),
) {
    let mut at = header::SIZE as u64;
    while at < size {
        // What is cut off is no block.
        let block = block(at).unwrap_or([0; BLOCK]);
        let found = Member::read(&block);
        see(at, found);
        let room = found.map_or(BLOCK as u64, |member| Member::room(member.length));
        at = at.saturating_add(room);
    }
}

/// A plain file name that fits.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.len() <= MOST_NAME && !name.contains(['/', '\0'])
}

fn sealed(mut block: Block) -> Block {
    let check = crc32c(block.get(..header::CHECK).unwrap_or(&[]));
    put_u32(&mut block, header::CHECK, check);
    block
}

fn holds(block: &Block) -> bool {
    let check = crc32c(block.get(..header::CHECK).unwrap_or(&[]));
    u32_at(block, header::CHECK) == Some(check)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn blocks_read_as_written_and_no_bit_can_change() {
        let header = Header {
            members: 7,
            length: 1 << 40,
        };
        let member = Member {
            name: "node1-12-345-0.lockstep",
            length: 24576,
            check: 0xdead_beef,
        };
        let (first, second) = (header.block(), member.block().unwrap());
        assert_eq!(Header::read(&first), Ok(header));
        assert_eq!(Member::read(&second), Some(member));
        for bit in 0..8 * BLOCK {
            let flipped = |mut block: Block| {
                block[bit / 8] ^= 1 << (bit % 8);
                block
            };
            assert!(Header::read(&flipped(first)).is_err(), "{bit}");
            assert_eq!(Member::read(&flipped(second)), None, "{bit}");
        }
    }

    #[test]
    fn names_are_plain_and_fit() {
        let long = ['x'; MOST_NAME + 1].iter().collect::<String>();
        for (name, fits) in [
            ("a", true),
            (&long[1..], true),
            (&long, false),
            ("", false),
            ("..", false),
            ("a/b", false),
            ("a\0", false),
        ] {
            let member = Member {
                name,
                length: 0,
                check: 0,
            };
            assert_eq!(member.block().is_some(), fits, "{name}");
        }
    }

    #[test]
    fn rooms_are_whole_blocks() {
        assert_eq!([0, 1, 512, 513].map(Member::room), [512, 1024, 1024, 1536]);
        assert!(Member::room(u64::MAX) > u64::MAX / 2);
    }
}
