//! The arena's initial bytes: routine table, shadow slots, stubs. `lockstep_format::plan` has the
//! pictures.

use lockstep_format::plan::{fixup, routine};

/// Code that was moved, with the places in it to adjust.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    pub bytes: Vec<u8>,
    pub fixups: Vec<Fixup>,
}

/// A row of the plan's fixups; `at` counts from the start of what it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub at: u32,
    pub kind: u32,
    pub value: u64,
}

/// What a stub does before the function's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Call-through; the symbol's number within the image.
    Through { symbol: u32 },
    /// Call-through of the import in this slot.
    ThroughSlot { symbol: u32, slot: u64 },
    /// A routine, then the body; the symbol's number within the image.
    Before { routine: usize, symbol: u32 },
    /// A routine, then the body; no event.
    Hook { routine: usize },
}

/// Offset of a stub's body.
pub(crate) const BODY: u64 = 40;
const WORD: usize = 32;
/// Call and return of a function in one cache line.
const STUB_ALIGNMENT: usize = 64;
const INT3: u8 = 0xcc;

/// The arena while it is built.
pub(crate) struct Arena {
    pub code: Code,
    slots: u32,
}

impl Arena {
    /// An arena with room for `slots` shadow slots.
    pub(crate) fn new(slots: u32) -> Self {
        let mut arena = Self {
            code: Code::default(),
            slots,
        };
        arena.code.bytes = vec![0; Self::slot_offset(slots) as usize];
        arena.align();
        arena
    }

    fn slot_offset(slot: u32) -> u64 {
        8 * (routine::COUNT as u64 + u64::from(slot))
    }

    /// Where shadow slot `slot` lies.
    pub(crate) fn shadow_slot(&self, slot: u32) -> u64 {
        debug_assert!(slot < self.slots);
        Self::slot_offset(slot)
    }

    fn align(&mut self) {
        let size = self.code.bytes.len().next_multiple_of(STUB_ALIGNMENT);
        self.code.bytes.resize(size, INT3);
    }

    /// Where the next stub will lie.
    pub(crate) fn next_stub(&self) -> u64 {
        self.code.bytes.len() as u64
    }

    /// Adds a stub; its body's fixups count from the body's start.
    pub(crate) fn add_stub(&mut self, head: Head, body: &Code) -> u32 {
        let start = self.code.bytes.len();
        let base = start as u32;
        // Until here the routine table is the arena's first bytes: entry k is at 8 * k.
        let call_routine = |index: usize, at: usize| -> [u8; 6] {
            let field = (8 * index as i64 - (start + at + 6) as i64) as i32;
            let field = field.to_le_bytes();
            [0xff, 0x15, field[0], field[1], field[2], field[3]]
        };
        let mut stub = [INT3; BODY as usize];
        let fixups = &mut self.code.fixups;
        let mut word = |symbol: u32| {
            fixups.push(Fixup {
                at: base + WORD as u32,
                kind: fixup::SYMBOL_64,
                value: u64::from(symbol),
            });
        };
        match head {
            Head::Through { symbol } | Head::ThroughSlot { symbol, .. } => {
                stub[..6].copy_from_slice(&call_routine(routine::ENTER, 0));
                // lea 8(%rsp),%rsp
                stub[6..11].copy_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0x08]);
                word(symbol);
                if let Head::ThroughSlot { slot, .. } = head {
                    // call *slot(%rip)
                    stub[11..17].copy_from_slice(&[0xff, 0x15, 0, 0, 0, 0]);
                    fixups.push(Fixup {
                        at: base + 13,
                        kind: fixup::RELATIVE_32,
                        value: slot.wrapping_sub(4),
                    });
                } else {
                    // nop; call body
                    let body = (BODY as u8) - 17;
                    stub[11..17].copy_from_slice(&[0x90, 0xe8, body, 0, 0, 0]);
                }
                // lea -8(%rsp),%rsp
                stub[17..22].copy_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0xf8]);
                stub[22..28].copy_from_slice(&call_routine(routine::EXIT, 22));
                stub[28] = 0xc3;
                stub[WORD..WORD + 8].fill(0);
            }
            Head::Before { routine, .. } | Head::Hook { routine } => {
                stub[..6].copy_from_slice(&call_routine(routine, 0));
                // jmp body
                let body = (BODY as u8) - 11;
                stub[6..11].copy_from_slice(&[0xe9, body, 0, 0, 0]);
                if let Head::Before { symbol, .. } = head {
                    word(symbol);
                    stub[WORD..WORD + 8].fill(0);
                }
            }
        }
        self.code.bytes.extend_from_slice(&stub);
        self.code.bytes.extend_from_slice(&body.bytes);
        self.code.fixups.extend(body.fixups.iter().map(|f| Fixup {
            at: f.at + base + BODY as u32,
            ..*f
        }));
        self.align();
        base
    }

    /// Points shadow slot `slot` at the stub at `stub`.
    pub(crate) fn set_shadow_slot(&mut self, slot: u32, stub: u32) {
        let at = self.shadow_slot(slot) as u32;
        self.code.fixups.push(Fixup {
            at,
            kind: fixup::ARENA_64,
            value: u64::from(stub),
        });
    }

    /// `jmp *slot(%rip)`: an import's body.
    pub(crate) fn import_body(slot: u64) -> Code {
        Code {
            bytes: vec![0xff, 0x25, 0, 0, 0, 0],
            fixups: vec![Fixup {
                at: 2,
                kind: fixup::RELATIVE_32,
                value: slot.wrapping_sub(4),
            }],
        }
    }
}
