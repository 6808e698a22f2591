//! A sealed run: the call trees of all its threads, equal ones once, and what stood beside their events.
//!
//! ```text
//!  header ── what kinds of sections there are, where, and their checks
//!  base      which file in a shared store has the nodes before the first one here, if any
//!  names     functions, as labels of calls name them
//!  threads   what each process file had but its events, and for each thread the node of its tree
//!  nodes     the trees (grammar), bit by bit as they were expected (bits)
//!  raw       bytes that are not told anew: streams that are smaller as they were recorded
//! ```
//!
//! *Guarantees*: no panic on any bytes; every byte of a file is under a check; memory that a reader
//! needs for trees follows [`most_elements`], which follows the length of the file; what stands beside events has bounds of the reader's
//! (`lockstep-trace`: 512 MiB for a process, 1 GiB of streams), as a few bytes tell many processes that are alike. *Costs*: about a microsecond for each element of a list
//! that is told, in either direction, and nothing for what is repeated as a whole. *Not for*: writing while a
//! program runs.

pub mod bits;
pub mod grammar;
pub mod tables;
pub mod text;

use crate::bytes::{array, put, put_u32, put_u64, u32_at, u64_at};
use crate::check::crc32c;
use core::ops::Range;

/// Name of the file in a run's directory.
pub const FILE: &str = "sealed.lockstep";
/// How a sealed file begins.
pub const MAGIC: [u8; 8] = *b"LSSEALED";
/// Version of this layout.
pub const VERSION: u32 = 3;
/// The oldest version that readers understand: that of the first release.
pub const OLDEST: u32 = 3;

/// The header.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// How many slots the predictor of the nodes has: 2 to the power of this.
    pub const SLOTS: usize = 12;
    /// Nodes of the base.
    pub const BASE_NODES: usize = 16;
    /// Nodes here.
    pub const NODES: usize = 20;
    /// Trees that are told.
    pub const TREES: usize = 24;
    /// Elements of lists that are told.
    pub const ELEMENTS: usize = 32;
    /// For each section offset, length and check.
    pub const SECTIONS: usize = 40;
    /// CRC-32C of everything before it.
    pub const CHECK: usize = 160;
    /// Bytes of the header.
    pub const SIZE: usize = 164;
}

/// A row of the header's table of sections.
pub mod section {
    /// Where it begins.
    pub const OFFSET: usize = 0;
    /// Its bytes.
    pub const LENGTH: usize = 8;
    /// CRC-32C of them.
    pub const CHECK: usize = 16;
    /// Bytes of a row.
    pub const SIZE: usize = 24;
    /// Sections by number.
    pub const NAMES: [&str; COUNT] = ["base", "names", "threads", "nodes", "raw"];
    /// How many there are.
    pub const COUNT: usize = 5;
    /// Text: the base.
    pub const BASE: usize = 0;
    /// Text: functions.
    pub const FUNCTIONS: usize = 1;
    /// Text: processes and threads.
    pub const THREADS: usize = 2;
    /// The trees.
    pub const NODES: usize = 3;
    /// Streams that are kept as they were recorded.
    pub const RAW: usize = 4;
}

/// How the payload of a chunk is told.
pub mod form {
    /// As it is.
    pub const PLAIN: u64 = 0;
    /// As it is, in the section raw.
    pub const RAW: u64 = 1;
    /// Facts with addresses as steps from one to the next.
    pub const STEPS: u64 = 2;
}

/// What a header tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// Bits of the number of slots.
    pub slots: u32,
    /// Nodes of the base.
    pub base_nodes: u32,
    /// Nodes here.
    pub nodes: u32,
    /// Trees here.
    pub trees: u32,
    /// Elements of lists here.
    pub elements: u64,
}

/// What does not hold in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// At this byte.
    pub at: u64,
    /// What.
    pub kind: FaultKind,
}

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It does not begin as a sealed file does.
    Magic,
    /// Of another version.
    Version(u32),
    /// Shorter than its header, or than its sections.
    Short {
        /// Bytes that there must be.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// The header's check.
    Header {
        /// As it stands there.
        expected: u32,
        /// Of the bytes.
        found: u32,
    },
    /// A section's check.
    Section {
        /// Which.
        section: usize,
        /// As the header tells it.
        expected: u32,
        /// Of the bytes.
        found: u32,
    },
    /// A number in the header that cannot be.
    Number {
        /// Most.
        expected: u64,
        /// What stands there.
        found: u64,
    },
}

impl core::fmt::Display for Fault {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.kind {
            FaultKind::Magic => f.write_str("expected a sealed run, found something else"),
            FaultKind::Version(found) => {
                write!(
                    f,
                    "expected a version from {OLDEST} to {VERSION}, found version {found}"
                )
            }
            FaultKind::Short { expected, found } => {
                write!(f, "expected {expected} bytes, found {found}")
            }
            FaultKind::Header { expected, found } => write!(
                f,
                "expected a header with check {expected:08x}, found one with {found:08x}"
            ),
            FaultKind::Section {
                section,
                expected,
                found,
            } => write!(
                f,
                "expected {} with check {expected:08x}, found {found:08x}",
                section::NAMES.get(section).unwrap_or(&"a section")
            ),
            FaultKind::Number { expected, found } => {
                write!(f, "expected at most {expected}, found {found}")
            }
        }
    }
}

/// Most elements that `bytes` bytes of nodes may tell. A reader needs less than [`ELEMENT_BYTES`] for each.
#[must_use]
pub const fn most_elements(bytes: u64) -> u64 {
    let most = (1 << 20) + bytes.saturating_mul(4096);
    if most < MOST { most } else { MOST }
}

/// Most elements of a file.
const MOST: u64 = 1 << 24;
/// Bytes of memory that a reader needs for an element at most: 1 GB in all.
pub const ELEMENT_BYTES: u64 = 60;
/// Most bytes that text may be, of so many bytes of section.
#[must_use]
pub const fn most_text(bytes: u64) -> u64 {
    let most = (1 << 16) + bytes.saturating_mul(4096);
    if most < 1 << 28 { most } else { 1 << 28 }
}

/// Writes a header for sections of these lengths and checks, in the order of their numbers.
#[must_use]
pub fn header(header: &Header, sections: &[(u64, u32); section::COUNT]) -> [u8; header::SIZE] {
    let mut bytes = [0; header::SIZE];
    put(&mut bytes, header::MAGIC, &MAGIC);
    put_u32(&mut bytes, header::VERSION, VERSION);
    put_u32(&mut bytes, header::SLOTS, header.slots);
    put_u32(&mut bytes, header::BASE_NODES, header.base_nodes);
    put_u32(&mut bytes, header::NODES, header.nodes);
    put_u32(&mut bytes, header::TREES, header.trees);
    put_u64(&mut bytes, header::ELEMENTS, header.elements);
    let mut offset = header::SIZE as u64;
    for (index, (length, check)) in sections.iter().enumerate() {
        let at = header::SECTIONS + section::SIZE * index;
        put_u64(&mut bytes, at + section::OFFSET, offset);
        put_u64(&mut bytes, at + section::LENGTH, *length);
        put_u32(&mut bytes, at + section::CHECK, *check);
        offset += length;
    }
    let check = crc32c(bytes.get(..header::CHECK).unwrap_or(&[]));
    put_u32(&mut bytes, header::CHECK, check);
    bytes
}

/// Checks a whole file; its header, and where its sections lie.
///
/// # Errors
/// Where something does not hold.
pub fn open(bytes: &[u8]) -> Result<(Header, [Range<usize>; section::COUNT]), Fault> {
    let fault = |at: usize, kind| Fault {
        at: at as u64,
        kind,
    };
    if array::<8>(bytes, header::MAGIC) != Some(MAGIC) {
        return Err(fault(header::MAGIC, FaultKind::Magic));
    }
    let found = bytes.len() as u64;
    let short = |expected: usize| FaultKind::Short {
        expected: expected as u64,
        found,
    };
    if bytes.len() < header::SIZE {
        return Err(fault(bytes.len(), short(header::SIZE)));
    }
    let number = |at| u32_at(bytes, at).unwrap_or(0);
    let long = |at| u64_at(bytes, at).unwrap_or(0);
    if !(OLDEST..=VERSION).contains(&number(header::VERSION)) {
        let version = number(header::VERSION);
        return Err(fault(header::VERSION, FaultKind::Version(version)));
    }
    let check = crc32c(bytes.get(..header::CHECK).unwrap_or(&[]));
    if number(header::CHECK) != check {
        let expected = number(header::CHECK);
        let kind = FaultKind::Header {
            expected,
            found: check,
        };
        return Err(fault(header::CHECK, kind));
    }
    let mut sections = [const { 0..0 }; section::COUNT];
    let mut end = header::SIZE;
    for (index, place) in sections.iter_mut().enumerate() {
        let at = header::SECTIONS + section::SIZE * index;
        let (offset, length) = (long(at + section::OFFSET), long(at + section::LENGTH));
        if offset != end as u64 {
            let kind = FaultKind::Number {
                expected: end as u64,
                found: offset,
            };
            return Err(fault(at, kind));
        }
        let Some(next) = usize::try_from(length)
            .ok()
            .and_then(|length| end.checked_add(length))
            .filter(|next| *next <= bytes.len())
        else {
            let kind = FaultKind::Short {
                expected: offset.saturating_add(length),
                found,
            };
            return Err(fault(bytes.len(), kind));
        };
        let check = crc32c(bytes.get(end..next).unwrap_or(&[]));
        if check != number(at + section::CHECK) {
            let kind = FaultKind::Section {
                section: index,
                expected: number(at + section::CHECK),
                found: check,
            };
            return Err(fault(end, kind));
        }
        *place = end..next;
        end = next;
    }
    if end != bytes.len() {
        return Err(fault(end, short(end)));
    }
    let header = Header {
        slots: number(header::SLOTS),
        base_nodes: number(header::BASE_NODES),
        nodes: number(header::NODES),
        trees: number(header::TREES),
        elements: long(header::ELEMENTS),
    };
    let most = most_elements(sections[section::NODES].len() as u64);
    let most_nodes = most.min(u64::from(u32::MAX)) as u32;
    let checks = [
        (header::SLOTS, u64::from(header.slots), 24),
        (header::ELEMENTS, header.elements, most),
        (
            header::NODES,
            u64::from(header.nodes),
            u64::from(most_nodes),
        ),
        (
            header::TREES,
            u64::from(header.trees),
            u64::from(header.nodes),
        ),
    ];
    for (at, found, expected) in checks {
        if found > expected {
            return Err(fault(at, FaultKind::Number { expected, found }));
        }
    }
    Ok((header, sections))
}

/// How many slots are right for so many elements, as the bits of their number.
#[must_use]
pub const fn slots_for(elements: u64) -> u32 {
    let bits = 64 - elements.leading_zeros() + 6;
    if bits < 14 {
        14
    } else if bits > 24 {
        24
    } else {
        bits
    }
}

#[cfg(test)]
mod tests;
