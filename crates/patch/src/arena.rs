//! The arena's initial bytes: routine table, shadow slots, stubs. `lockstep_format::plan` has the
//! pictures.

use std::sync::Arc;

use lockstep_format::hold;
use lockstep_format::plan::{fixup, leaf, routine, stub};
use rustc_hash::FxHashMap;

use crate::fault::Faulted;
use crate::inline::Entry;
use crate::library;
use crate::scratch::Free;
use lockstep_api::threads;
use lockstep_api::waits::{Waits, waits};

/// Code for a stub's body, that may lie anywhere, and what its fields lead to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    pub bytes: Vec<u8>,
    /// Offset of a field, and what it is.
    pub links: Vec<(u32, Link)>,
}

/// What a field of moved code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Displacement to an address in the image; `trailing` bytes of the instruction follow.
    Image { address: u64, trailing: u8 },
    /// Displacement of a branch to an address in the image: to that function's stub, where callers
    /// go there instead.
    Branch { address: u64 },
    /// Displacement to an offset in the arena.
    Arena { offset: u64 },
    /// An 8-byte address in the image.
    Literal { address: u64 },
    /// Displacement to a slot of the image, to jump through.
    Slot { address: u64 },
    /// Displacement to a shadow slot, at an offset in the arena, to jump through.
    Shadow { offset: u64 },
}

/// A row of the plan's fix-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fixup {
    pub at: u32,
    pub kind: u32,
    pub value: u64,
}

/// What a stub does before the function's own code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    /// Call-through of the body.
    Through,
    /// Call-through of the import in this slot.
    ThroughSlot { slot: u64 },
    /// Call-through of the body, which takes the arguments first.
    ThroughArguments,
    /// Call-through of the body, which reads the time first; times of short calls are kept where it `waits`.
    ThroughTimed { waits: bool },
    /// The same of a body that first notes the object which the call takes or gives back.
    ThroughHold { waits: bool, code: [u8; 2] },
    /// A routine, then the body.
    Before { routine: usize },
    /// The call is recorded; the returns are patched.
    Open,
    /// Call and return are recorded as one.
    Leaf,
}

impl Head {
    /// The routine at the return of a call that goes through the stub.
    const fn exit(self) -> usize {
        match self {
            Self::ThroughArguments => routine::EXIT_ARGUMENTS,
            // What gives an object back is over with its call.
            Self::ThroughHold { code, .. } if code[0] & 15 != hold::code::GIVE => {
                routine::EXIT_HOLD
            }
            Self::ThroughTimed { .. } | Self::ThroughHold { .. } => routine::EXIT_TIMED,
            _ => routine::EXIT,
        }
    }

    /// Whether times of short calls are kept.
    const fn waits(self) -> bool {
        match self {
            Self::ThroughTimed { waits } | Self::ThroughHold { waits, .. } => waits,
            _ => matches!(self, Self::ThroughArguments),
        }
    }
}

/// A stub in the arena, by offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stub {
    /// Its first byte.
    pub start: u32,
    /// Where sites and slots lead.
    pub entry: u32,
    /// The function's own first instructions.
    pub body: u32,
    /// Where event words of its symbol stand.
    pub words: Words,
    /// It records call and return as one.
    pub is_leaf: bool,
    /// It records without a routine and leaves the return address.
    pub is_inline: bool,
    /// It has fields for the code of its function.
    pub has_range: bool,
}

impl Stub {
    /// The same stub so much further on.
    pub(crate) fn moved(self, by: u32) -> Self {
        Self {
            start: self.start + by,
            entry: self.entry + by,
            body: self.body + by,
            words: self.words.map(|word| word.map(|at| at + by)),
            ..self
        }
    }
}

/// Places of event words.
pub(crate) type Words = [Option<u32>; 2];

/// What fills gaps.
pub(crate) const INT3: u8 = 0xcc;
const PAGE: usize = 4096;

/// The arena while it is built, or a part of it. Offsets are told from the arena's start, those of a part that has no
/// place yet from the part's.
pub(crate) struct Arena {
    /// Where the bytes begin.
    base: u32,
    pub bytes: Vec<u8>,
    /// Of a part without a place: fields that lead out of it, to an offset in the arena.
    outward: Option<Vec<u32>>,
    pub fixups: Vec<Fixup>,
    /// Functions whose callers go to the stub, since their entry cannot be patched: entry -> stub.
    stubs: Arc<FxHashMap<u64, u32>>,
    /// The fault of the next stub.
    pub fault: Option<Faulted>,
    /// Stubs and exits record nothing.
    pub is_plain: bool,
    /// Where the next inline code need not save r10 and r11.
    pub free: Free,
    /// Jumps of redirected calls that lead nowhere yet.
    pub elsewhere: Vec<u32>,
    slots: u32,
    /// Where the rows of leaves begin, and how many there is room for.
    rows: u32,
    leaves: u32,
}

impl Arena {
    /// An arena with room for `slots` shadow slots and `leaves` rows of leaves.
    pub(crate) fn new(slots: u32, leaves: u32) -> Self {
        let rows = Self::slot_offset(slots).next_multiple_of(leaf::SIZE as u64);
        let size = match leaves {
            0 => Self::slot_offset(slots) as usize,
            _ => (rows as usize + leaves as usize * leaf::SIZE).next_multiple_of(PAGE),
        };
        let mut arena = Self {
            base: 0,
            bytes: vec![0; size],
            outward: None,
            fixups: Vec::new(),
            stubs: Arc::default(),
            fault: None,
            is_plain: false,
            free: Free::default(),
            elsewhere: Vec::new(),
            slots,
            rows: rows as u32,
            leaves,
        };
        arena.align();
        arena
    }

    /// What follows, from `base` on, which is where a stub may begin; without one, a part that gets its place later.
    pub(crate) fn following(&self, base: Option<u32>) -> Self {
        Self {
            base: base.unwrap_or(0),
            bytes: Vec::new(),
            outward: base.is_none().then(Vec::new),
            fixups: Vec::new(),
            stubs: Arc::clone(&self.stubs),
            fault: None,
            is_plain: self.is_plain,
            free: Free::default(),
            elsewhere: Vec::new(),
            slots: self.slots,
            rows: self.rows,
            leaves: self.leaves,
        }
    }

    /// Where the next byte comes.
    pub(crate) fn here(&self) -> u32 {
        self.base + self.bytes.len() as u32
    }

    /// Where the bytes begin.
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// Fields that lead out of the part.
    pub(crate) fn into_bytes(self) -> (Vec<u8>, Vec<u32>, Vec<Fixup>) {
        (self.bytes, self.outward.unwrap_or_default(), self.fixups)
    }

    /// Leads calls of the function at `entry` to a stub.
    pub(crate) fn lead_calls(&mut self, entry: u64, stub: u32) {
        Arc::make_mut(&mut self.stubs).insert(entry, stub);
    }

    /// Bytes at its start that are data for as long as the program runs.
    pub(crate) fn head(&self) -> u32 {
        let rows = self.rows as usize + self.leaves as usize * leaf::SIZE;
        match self.leaves {
            0 => 0,
            _ => rows.next_multiple_of(PAGE) as u32,
        }
    }

    /// Where row `index` of the leaves lies.
    pub(crate) fn leaf_row(&self, index: u32) -> u32 {
        debug_assert!(index < self.leaves);
        self.rows + index * leaf::SIZE as u32
    }

    fn slot_offset(slot: u32) -> u64 {
        8 * (routine::COUNT as u64 + u64::from(slot))
    }

    /// Where shadow slot `slot` lies.
    pub(crate) fn shadow_slot(&self, slot: u32) -> u64 {
        debug_assert!(slot < self.slots);
        Self::slot_offset(slot)
    }

    pub(crate) fn align(&mut self) {
        let size = self.bytes.len().next_multiple_of(stub::ALIGNMENT as usize);
        self.bytes.resize(size, INT3);
    }

    /// Where the next stub begins.
    pub(crate) fn next_stub(&self) -> u32 {
        self.here().next_multiple_of(stub::ALIGNMENT)
    }

    /// Adds a stub, with the fault that is meant for it.
    pub(crate) fn add_stub(&mut self, head: Head, body: &Code) -> Stub {
        match self.fault.take() {
            Some(fault) => self.add_faulted(fault, head, body),
            None if self.is_plain => self.add_plain(body),
            None => self.add_ordinary(head, body),
        }
    }

    pub(crate) fn add_ordinary(&mut self, head: Head, body: &Code) -> Stub {
        match head {
            Head::Open => return self.add_inline_entry(Entry::Open, body),
            Head::Leaf => return self.add_inline_entry(Entry::Leaf, body),
            _ => {}
        }
        self.align();
        let base = self.here();
        let start = base as usize;
        // The routine table is the arena's first bytes: entry k is at 8 * k.
        let outward = &mut self.outward;
        let mut call_routine = |index: usize, at: usize| -> [u8; 6] {
            outward
                .iter_mut()
                .for_each(|it| it.push((start + at + 2) as u32));
            let field = (8 * index as i64 - (start + at + 6) as i64) as i32;
            let field = field.to_le_bytes();
            [0xff, 0x15, field[0], field[1], field[2], field[3]]
        };
        let mut bytes = [INT3; stub::INLINE as usize];
        bytes[..8].fill(0);
        match head {
            Head::Before { routine } => {
                let length = stub::LENGTH as usize;
                bytes[length..length + 4].fill(0);
                bytes[8..14].copy_from_slice(&call_routine(routine, 8));
                // jmp body
                let body = (stub::INLINE as u8) - 19;
                bytes[14..19].copy_from_slice(&[0xe9, body, 0, 0, 0]);
            }
            _ => {
                bytes[8..14].copy_from_slice(&call_routine(routine::ENTER, 8));
                // lea 8(%rsp),%rsp
                bytes[14..19].copy_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0x08]);
                if let Head::ThroughSlot { slot } = head {
                    // call *slot(%rip)
                    bytes[19..25].copy_from_slice(&[0xff, 0x15, 0, 0, 0, 0]);
                    self.fixups.push(Fixup {
                        at: base + 21,
                        kind: fixup::RELATIVE_32,
                        value: slot.wrapping_sub(4),
                    });
                } else {
                    // nop; call body
                    let body = (stub::INLINE - stub::HOOK) as u8;
                    bytes[19..25].copy_from_slice(&[0x90, 0xe8, body, 0, 0, 0]);
                }
                // lea -8(%rsp),%rsp
                bytes[25..30].copy_from_slice(&[0x48, 0x8d, 0x64, 0x24, 0xf8]);
                bytes[stub::WAITS as usize] = head.waits().into();
                if let Head::ThroughHold { code, .. } = head {
                    let place = stub::OBJECT as usize;
                    bytes[place..place + 2].copy_from_slice(&code);
                }
                bytes[30..36].copy_from_slice(&call_routine(head.exit(), 30));
                bytes[36] = 0xc3;
            }
        }
        self.bytes.extend_from_slice(&bytes);
        self.bytes.extend_from_slice(&body.bytes);
        let at = base + stub::INLINE;
        for (offset, link) in &body.links {
            self.link(at + offset, *link);
        }
        Stub {
            start: base,
            entry: base + stub::ENTRY,
            body: at,
            words: [Some(base), None],
            is_leaf: false,
            is_inline: false,
            has_range: matches!(head, Head::Before { .. }),
        }
    }

    /// Leads an ordinary stub to a body elsewhere.
    pub(crate) fn lead_to_body(&mut self, stub: &Stub, head: Head, body: u32) {
        // Behind the opcode of `jmp body`, or of `nop; call body`.
        let field = match head {
            Head::Before { .. } => stub.start + 15,
            _ => stub.start + 21,
        };
        self.set_displacement(field, u64::from(body));
    }

    pub(crate) fn link(&mut self, at: u32, link: Link) {
        let (kind, value) = match link {
            Link::Image { address, trailing } => {
                let adds = 4 + u64::from(trailing);
                (fixup::RELATIVE_32, address.wrapping_sub(adds))
            }
            Link::Branch { address } => match self.stubs.get(&address) {
                Some(stub) => return self.reach(at, u64::from(*stub)),
                None => (fixup::RELATIVE_32, address.wrapping_sub(4)),
            },
            Link::Arena { offset } | Link::Shadow { offset } => {
                return self.reach(at, offset);
            }
            Link::Literal { address } => (fixup::IMAGE_64, address),
            Link::Slot { address } => (fixup::RELATIVE_32, address.wrapping_sub(4)),
        };
        self.fixups.push(Fixup { at, kind, value });
    }

    /// Sets the field at `at`, with which its instruction ends, to lead to `offset`.
    pub(crate) fn set_displacement(&mut self, at: u32, offset: u64) {
        let value = (offset as i64 - i64::from(at) - 4) as i32;
        let at = (at - self.base) as usize;
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// The same, where `offset` may lie outside of the part.
    pub(crate) fn reach(&mut self, at: u32, offset: u64) {
        self.outward.iter_mut().for_each(|it| it.push(at));
        self.set_displacement(at, offset);
    }

    /// Says which symbol a stub records; numbers are given when all stubs are known.
    pub(crate) fn set_symbol(&mut self, stub: &Stub, symbol: u32) {
        let kind = if stub.is_leaf {
            fixup::LEAF_32
        } else {
            fixup::SYMBOL_32
        };
        let words = stub.words.into_iter().flatten();
        let value = u64::from(symbol);
        self.fixups
            .extend(words.map(|at| Fixup { at, kind, value }));
    }

    /// Points shadow slot `slot` at the entry of a stub.
    pub(crate) fn set_shadow_slot(&mut self, slot: u32, stub: &Stub) {
        let at = self.shadow_slot(slot) as u32;
        self.fixups.push(Fixup {
            at,
            kind: fixup::ARENA_64,
            value: u64::from(stub.entry),
        });
    }

    /// Where the calls of the import with shadow slot `slot` go.
    pub(crate) fn import_entry(&self, slot: u32) -> Option<u64> {
        let at = self.shadow_slot(slot) as u32;
        let mut rows = self.fixups.iter();
        let row = rows.find(|row| row.at == at && row.kind == fixup::ARENA_64);
        row.map(|row| row.value)
    }

    /// `jmp *slot(%rip)`: an import's body.
    pub(crate) fn import_body(slot: u64) -> Code {
        let link = Link::Image {
            address: slot,
            trailing: 0,
        };
        Code {
            bytes: vec![0xff, 0x25, 0, 0, 0, 0],
            links: vec![(2, link)],
        }
    }

    /// `jmp stub`: the body of a stub that leads to another; where, is written later.
    pub(crate) fn leading_on() -> Code {
        Code {
            bytes: vec![0xe9, 0, 0, 0, 0],
            links: Vec::new(),
        }
    }

    /// An import's body that takes the arguments by a capture program: `call *[ENTER_ARGUMENTS]`,
    /// `jmp *slot(%rip)`, the program.
    pub(crate) fn arguments_body(slot: u64, program: &[u8]) -> Code {
        Self::body_after(routine::ENTER_ARGUMENTS, slot, program)
    }

    /// An import's body that reads the time: `call *[ENTER_TIMED]`, `jmp *slot(%rip)`.
    pub(crate) fn timed_body(slot: u64) -> Code {
        Self::body_after(routine::ENTER_TIMED, slot, &[])
    }

    /// Head and body of the import `name` in `slot`, which is measured unless it never waits.
    pub(crate) fn timed(slot: u64, name: &[u8]) -> (Head, Code) {
        let found = waits(name);
        if let Some(object) = threads::meaning(name).object() {
            let head = Head::ThroughHold {
                waits: found == Waits::Often,
                code: library::code_of(object),
            };
            return (head, Self::body_after(routine::ENTER_HOLD, slot, &[]));
        }
        match found {
            Waits::Never => (Head::ThroughSlot { slot }, Self::import_body(slot)),
            found => {
                let waits = found == Waits::Often;
                (Head::ThroughTimed { waits }, Self::timed_body(slot))
            }
        }
    }

    fn body_after(routine: usize, slot: u64, program: &[u8]) -> Code {
        let mut bytes = vec![0xff, 0x15, 0, 0, 0, 0, 0xff, 0x25, 0, 0, 0, 0];
        bytes.extend_from_slice(program);
        let routine = Link::Arena {
            offset: 8 * routine as u64,
        };
        let import = Link::Image {
            address: slot,
            trailing: 0,
        };
        Code {
            bytes,
            links: vec![(2, routine), (8, import)],
        }
    }

    /// `jmp entry`: the body of a function whose entry stays as it is.
    pub(crate) fn whole_body(entry: u64) -> Code {
        let link = Link::Image {
            address: entry,
            trailing: 0,
        };
        Code {
            bytes: vec![0xe9, 0, 0, 0, 0],
            links: vec![(1, link)],
        }
    }
}
