//! An entry of the shadow stack: a frame whose return address is kept.

use crate::load;
use crate::program;
use lockstep_format::bytes::u32_at;
use lockstep_format::plan::{block, stub};

/// Size of an [`Entry`].
pub const ENTRY_SIZE: usize = size_of::<Entry>();

/// A frame whose return address is kept here. None lies across two cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(32))]
pub struct Entry {
    /// The real return address.
    pub return_address: u64,
    /// What the fast path compares with the stack pointer ([`block::ENTRY_KEY`]).
    pub key: u64,
    /// The start of the stub that recorded the call, with [`block`]'s flags in the low bits.
    pub stub: u64,
    /// The slot, where the key is [`block::QUESTIONED`].
    aside: u64,
}

impl Entry {
    /// Where the fast path finds the key, and the slot of what is questioned.
    pub const PLACES: (usize, usize) = (
        core::mem::offset_of!(Entry, key),
        core::mem::offset_of!(Entry, aside),
    );

    /// The entry of the call that the stub at `start` records.
    pub fn new(return_address: u64, slot: u64, start: u64, flags: u64) -> Self {
        Self {
            return_address,
            key: slot - u64::from(flags & block::PLAIN == 0),
            stub: start | flags,
            aside: 0,
        }
    }

    /// Where the return address belongs.
    pub fn slot(&self) -> u64 {
        if self.key == block::QUESTIONED {
            self.aside
        } else {
            self.key + u64::from(!self.has(block::PLAIN))
        }
    }

    /// Leads every event that meets this entry at the top to the slow path.
    pub fn question(&mut self) {
        if self.key != block::QUESTIONED {
            self.aside = self.slot();
            self.key = block::QUESTIONED;
        }
        self.stub &= !block::UNPROVED;
    }

    /// Looks at a frame that is questioned, and whose return is seen all the same, when something is called from
    /// `caller`: whether it was its own code, so that it is there. From then on its return tells when it is gone.
    pub fn prove(&mut self, caller: u64) -> bool {
        if self.key != block::QUESTIONED || self.stub & FLAGS != block::PLAIN {
            return false;
        }
        let is_own = self.owns(caller);
        match is_own {
            true => self.key = self.aside,
            false => self.stub |= block::UNPROVED,
        }
        is_own
    }

    /// Whether `caller` lies in the code of the function whose frame this is: its stub says which code that is, if it leaves
    /// return addresses where they are.
    pub fn owns(&self, caller: u64) -> bool {
        if !self.has(block::PLAIN) || self.has(block::THROUGH | block::HANDED_OVER) {
            return false;
        }
        let head = self.head();
        let distance = u32_at(&head, stub::RANGE as usize).unwrap_or(0) as i32;
        let length = u32_at(&head, stub::LENGTH as usize).unwrap_or(0);
        let field_end = self.start() + u64::from(stub::RANGE) + 4;
        let first = field_end.wrapping_add_signed(i64::from(distance));
        caller.wrapping_sub(first) < u64::from(length)
    }

    /// Whether it has one of the flags.
    pub fn has(&self, flags: u64) -> bool {
        self.stub & flags != 0
    }

    /// What stands in the slot instead of the return address; 0 where that does.
    pub fn hook(&self) -> u64 {
        if self.has(block::PLAIN | block::JUMP) {
            0
        } else {
            (self.stub & !FLAGS) + u64::from(stub::HOOK)
        }
    }

    /// The start of its stub.
    pub fn start(&self) -> u64 {
        self.stub & !FLAGS
    }

    /// The event word of the call.
    pub fn word(&self) -> u32 {
        u32_at(&self.head(), 0).unwrap_or(0)
    }

    /// What its stub begins with; zeros where that is gone: a frame on a stack that was left for good may be of a
    /// library that was unloaded since.
    fn head(&self) -> [u8; HEAD] {
        let start = self.start();
        let known = if load::stays(start) {
            start
        } else {
            program::UNKNOWN
        };
        let words = program::words::<{ HEAD / 8 }>(start, known);
        let mut head = [0; HEAD];
        for (place, word) in head.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        head
    }
}

/// Bytes of a stub up to the last that is read of a frame's.
const HEAD: usize = (stub::LENGTH as usize + 4).next_multiple_of(8);

/// The low bits of [`Entry::stub`].
const FLAGS: u64 = stub::ALIGNMENT as u64 - 1;

/// The event word of the stub at `start`, which is running.
pub fn word_of(start: u64) -> u32 {
    // SAFETY: stubs begin with their word, and an arena stays mapped while its code runs.
    unsafe { (start as *const u32).read() }
}
