//! The stubs of library functions that may be leaves: `lockstep_format::plan` has the picture.

use lockstep_format::plan::{fixup, leaf, routine, stub};

use crate::arena::{Arena, Code, Fixup, Head, Link, Stub};
use crate::inline::{Entry, Gate};

const TARGET: u64 = leaf::TARGET as u64;

/// A library function that may be a leaf.
pub(crate) struct Candidate<'a> {
    /// The image's slot.
    pub slot: u64,
    pub name: &'a [u8],
    /// Number of its shadow slot.
    pub shadow: u32,
    /// Number of its row of `leaf`.
    pub row: u32,
    /// Lowest and highest address of the image.
    pub extent: (u64, u64),
    /// Nobody waits for r10 and r11 behind its calls.
    pub is_free: bool,
}

/// Its stubs.
pub(crate) struct Stubs {
    /// Where the shadow slot leads at first.
    pub bind: Stub,
    pub through: Stub,
    pub leaf: Stub,
}

impl Arena {
    /// Adds the stubs of a library function that may be a leaf, and fills in its row.
    pub(crate) fn add_candidate(&mut self, candidate: &Candidate<'_>) -> Stubs {
        let slot = candidate.slot;
        let row = self.leaf_row(candidate.row);
        let import = Self::import_body(slot);
        let (head, body) = Self::timed(slot, candidate.name);
        let through = self.add_ordinary(head, &body);
        let to_target = Code {
            bytes: vec![0xff, 0x25, 0, 0, 0, 0],
            links: vec![(
                2,
                Link::Arena {
                    offset: u64::from(row) + TARGET,
                },
            )],
        };
        let gate = Gate {
            slot,
            target: u64::from(row) + TARGET,
            through: through.entry,
            is_free: candidate.is_free,
        };
        let leaf = self.add_inline_entry(Entry::LibraryLeaf(gate), &to_target);
        let head = Head::Before {
            routine: routine::BIND,
        };
        let bind = self.add_ordinary(head, &import);
        // jmp *next(%rip)
        let jump = bind.start as usize + 14;
        let place = jump - self.base() as usize;
        self.bytes[place..place + 2].copy_from_slice(&[0xff, 0x25]);
        self.reach(jump as u32 + 2, u64::from(row) + leaf::NEXT as u64);
        let shadow = self.shadow_slot(candidate.shadow);
        let arena = |value: u32| (fixup::ARENA_64, u64::from(value));
        let image = |value: u64| (fixup::IMAGE_64, value);
        let fields = [
            (row + leaf::SLOT as u32, image(slot)),
            (row + leaf::SHADOW as u32, (fixup::ARENA_64, shadow)),
            (row + leaf::GATE as u32, arena(leaf.entry)),
            (row + leaf::NEXT as u32, arena(through.entry)),
            (row + leaf::LOW as u32, image(candidate.extent.0)),
            (row + leaf::HIGH as u32, image(candidate.extent.1)),
            (bind.start + stub::LEAF_ROW, arena(row)),
        ];
        self.fixups
            .extend(fields.map(|(at, (kind, value))| Fixup { at, kind, value }));
        Stubs {
            bind,
            through,
            leaf,
        }
    }
}
