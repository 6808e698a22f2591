//! The inline code of patched returns: what entries and exits record without calling a routine.
//!
//! The instructions, their order and what they rely on are part of the contract in
//! [`lockstep_format::plan`]; here are their bytes. An event is recorded between setting and clearing
//! [`block::BUSY`]; a signal handler that runs in between finds it set and records nothing.
//!
//! ```text
//!  entry                       leaf                        return
//!  [mov %r11,-8(%rsp)]         [mov %r11,-8(%rsp)]         [mov %r11,-8(%rsp)]
//!  [mov %r10,-16(%rsp)]        [mov %r10,-16(%rsp)]        [mov %r10,-16(%rsp)]
//!  mov %fs:thread,%r11         mov %fs:thread,%r11         mov %fs:thread,%r11
//!  test %r11,%r11              test %r11,%r11              test %r11,%r11
//!  je slow                     je slow                     je ret
//!  cmpq $0,busy(%r11)          cmpq $0,busy(%r11)          cmpq $0,busy(%r11)
//!  jne slow                    jne slow                    jne ret
//!  mov %rsp,busy(%r11)         mov %rsp,busy(%r11)         mov %rsp,busy(%r11)
//!  mov (%r11),%r10             mov top(%r11),%r10          mov top(%r11),%r10
//!  cmp limit(%r11),%r10        cmp key-32(%r10),%rsp       cmp key-32(%r10),%rsp
//!  jae slow                    jae slow                    jne slow
//!  mov top(%r11),%r10          mov (%r11),%r10             mov (%r11),%r10
//!  cmp key-32(%r10),%rsp       cmp limit(%r11),%r10        cmp limit(%r11),%r10
//!  jae slow                    jae slow                    jae slow
//!  lea stub+PLAIN(%rip),%r11
//!  mov %r11,stub(%r10)
//!  mov (%rsp),%r11
//!  mov %r11,(%r10)
//!  mov %rsp,key(%r10)
//!  add $32,%r10
//!  mov %fs:thread,%r11
//!  mov %r10,top(%r11)
//!  mov (%r11),%r10
//!  mov (%rsp),%r11d
//!  mov %r11d,4(%r10)
//!  movl $symbol,(%r10)         movq $symbol,(%r10)         movq $RETURN,(%r10)
//!  mov %fs:thread,%r11
//!  add $8,%r10                 add $8,%r10                 add $8,%r10
//!  mov %r10,(%r11)             mov %r10,(%r11)             mov %r10,(%r11)
//!                                                          subq $32,top(%r11)
//!  movq $0,busy(%r11)          movq $0,busy(%r11)          movq $0,busy(%r11)
//!  [mov -16(%rsp),%r10]        [mov -16(%rsp),%r10]        [mov -16(%rsp),%r10]
//!  [mov -8(%rsp),%r11]         [mov -8(%rsp),%r11]         [mov -8(%rsp),%r11]
//!  body                        body                        ret
//! ```
//! What stands in brackets falls away where nobody waits for r10 and r11 ([`crate::scratch`]).
//! A library function that may be a leaf ([`crate::closed`]) has a gate before its leaf's code: a call goes there only while
//! the image's slot leads to what was proved, else through the ordinary stub:
//!
//! ```text
//!  mov slot(%rip),%r11 ; cmp target(%rip),%r11 ; jne through ; the leaf's code ; jmp *target(%rip)
//! ```
//! Where somebody waits for r10 and r11, both are kept before the gate, and `jne` is `je 1f; mov -8(%rsp),%r11; jmp through; 1:`.
//!
//! *Costs*, in cycles of an entry and its return together (the least of many runs of this code alone, in a loop
//! whose plain call takes 5): 9 to 11 without the brackets, 4 more with them. Stores are what counts, up to a cycle each; loads
//! and predicted branches are nearly free, so that a third register is not worth its saving.
//!
//! What has been measured in the place of `busy` (Zen 3, cycles over the plain call; 9.0 as it is):
//!
//! ```text
//!  no protection at all                                         6.4    cursor alone, or shadow stack alone: 4.0
//!  no protection, return address not kept                       5.5
//!  the cursor itself as the lock, its store the release         8.8
//!  the slot reserved by an unlocked xadd                       11.2
//!  cursor and depth in one word, one committing store          10.0
//! ```
//! The chain of loads and stores through cursor and top is what the rest waits for. An event cannot be made safe
//! by plain stores alone: the first store of one that was interrupted overwrites what the handler recorded, and
//! neither can see it. Reserving costs more than `busy`.
//!
//! The rest, measured on Zen 4 (cycles of call and loop together; 14.0 as it is, 5 plain), counted by a chain of
//! multiplications run beside:
//!
//! ```text
//!  no `busy` at all                                            11.1    its test alone, or its clearing alone: 1 each
//!  a mark that the event's own last store takes back           15.0    cursor as mark; with the stack pointer 17.4
//!  the newest entry's key as mark, no store for the clearing   12.4    who was interrupted is not known then
//!  the event in one store instead of two                       13.3    only where the event word is no negative number; 13.9 else
//!  the entry without return address, or without stub           13.0    both in the one word of the event: 12.8
//!  all in thread-local storage, no block                       13.1    14.1 with a look whether the process was forked
//!  the return's stores in another order                        14.0
//! ```
//! So `busy` is what is left, three cycles a call. To do without, an event that was interrupted would have to be set back to
//! its beginning before the handler runs, and that is not done:
//!
//! * By the kernel (`rseq`): it goes to the beginning after the handler, not before. An event has two final stores, cursor and
//!   top, and the handler would record between them.
//! * By a handler of ours in the place of each of the program's, set where glibc calls `rt_sigaction`: that would hold for those alone. Go's
//!   runtime, sanitizers and whoever calls the kernel set handlers that nobody sees; then an event goes on with a cursor
//!   and a top that are not the thread's any more, and the trace is wrong without saying so. A handler that switches to another stack and
//!   comes back later would find entries of call-through frames overwritten: their returns have nowhere to go. So all code
//!   of all images, and what is made while they run, would have to be searched for such calls. A function that gdb calls where it
//!   stopped the thread is no handler at all. And the program would find our address in what `sigaction` gives back by another way.
//! * Without `busy` as long as no signal has a handler: when the first one is set, other threads may stand in the middle of an
//!   event, and nobody can wait until they have left it.

use lockstep_format::plan::{block, fixup, routine, stub};
use lockstep_format::symbol::{RETURN, TAIL, event_word};

use crate::arena::{Arena, Code, Fixup, Link, Stub};

/// What follows when an exit has recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// `ret`, with this many bytes of arguments to take off.
    Return { pops: u16 },
    /// A jump to what is not recorded.
    Jump(Link),
}

/// Registers that inline code uses, in the order in which they are saved below the stack pointer. The
/// program waits for none of them: not for its arguments, and not for what a call gave back.
const SAVE: [&[u8]; 3] = [
    &[0x4c, 0x89, 0x5c, 0x24, 0xf8], // mov %r11,-8(%rsp)
    &[0x4c, 0x89, 0x54, 0x24, 0xf0], // mov %r10,-16(%rsp)
    &[0x48, 0x89, 0x44, 0x24, 0xe8], // mov %rax,-24(%rsp)
];
const RESTORE: [&[u8]; 3] = [
    &[0x4c, 0x8b, 0x5c, 0x24, 0xf8], // mov -8(%rsp),%r11
    &[0x4c, 0x8b, 0x54, 0x24, 0xf0], // mov -16(%rsp),%r10
    &[0x48, 0x8b, 0x44, 0x24, 0xe8], // mov -24(%rsp),%rax
];
/// r11 and r10 are saved.
const BOTH: usize = 2;
const NOP5: &[u8] = &[0x0f, 0x1f, 0x44, 0x00, 0x00];

/// Condition codes of jumps.
#[derive(Debug, Clone, Copy)]
enum If {
    AboveOrEqual = 0x3,
    Equal = 0x4,
    NotEqual = 0x5,
    Above = 0x7,
}

/// What inline code at an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A call.
    Open,
    /// A call and its return.
    Leaf,
    /// The same, of calls that pass the gate.
    LibraryLeaf(Gate),
}

/// Lets calls through whose slot leads to the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gate {
    /// Address of the slot.
    pub slot: u64,
    /// Offset of the target in the arena.
    pub target: u64,
    /// Where others go.
    pub through: u32,
    /// Nobody waits for r10 and r11.
    pub is_free: bool,
}

/// Where the address of a stub goes.
#[derive(Debug, Clone, Copy)]
enum RegisterOfStub {
    Rax,
    R11,
}

/// A call of a routine and what it needs, where the inline code cannot go on.
struct Slow {
    at: u32,
}

impl Arena {
    /// A stub with inline code: event word, slow way, recording, body.
    pub(crate) fn add_inline_entry(&mut self, kind: Entry, body: &Code) -> Stub {
        let is_leaf = kind != Entry::Open;
        self.align();
        let start = self.here();
        self.code(&[0; stub::ENTRY as usize]);
        let slow = Slow { at: self.here() };
        let is_free = match kind {
            Entry::LibraryLeaf(gate) => gate.is_free,
            _ => self.free.at_entry,
        };
        let saved = if is_free { 0 } else { BOTH };
        let routine = if is_leaf {
            routine::LEAF
        } else {
            routine::OPEN
        };
        self.slow(saved, routine);
        debug_assert_eq!(self.here() - start, stub::AFTER_OPEN);
        self.code(&[0xe9, 0, 0, 0, 0]);
        let to_body = self.here();
        let head = self.bytes.len() + (start + stub::INLINE - to_body) as usize;
        self.bytes.resize(head, 0xcc);
        self.save(saved);
        let word = match kind {
            Entry::Open => self.open(saved, &slow, start),
            Entry::Leaf => self.leaf(saved, &slow),
            Entry::LibraryLeaf(gate) => {
                self.gate(gate);
                self.leaf(saved, &slow)
            }
        };
        let at = self.here();
        self.set_displacement(to_body - 4, u64::from(at));
        self.body(body);
        Stub {
            start,
            entry: start + stub::INLINE,
            body: at,
            words: [Some(start), Some(word)],
            is_leaf,
            is_inline: true,
            has_range: kind == Entry::Open,
        }
    }

    /// An exit: `moved` (what stood before the `ret` or jump), the return recorded, then what follows.
    /// Returns where the site jumps to.
    pub(crate) fn add_return(&mut self, moved: &Code, then: Then) -> u32 {
        if self.is_plain {
            return self.plain_exit(moved, then);
        }
        // Where a jump leads, r10 may be waited for.
        let saved = match then {
            Then::Return { .. } if self.free.at_return => 0,
            _ => BOTH,
        };
        let slow = self.exit_head(saved, routine::RETURN);
        self.then(then);
        let entry = self.exit_entry();
        self.body(moved);
        self.save(saved);
        self.load_block();
        self.code(&[0x4d, 0x85, 0xdb]); // test %r11,%r11
        let no_block = self.jump_ahead(If::Equal);
        self.test_busy();
        let busy = self.jump_ahead(If::NotEqual);
        self.set_busy();
        self.top_frame_is_plain(&slow);
        self.room_or(&slow);
        self.code(&[0x49, 0xc7, 0x02]); // movq $RETURN,(%r10)
        self.code(&event_word(RETURN, false).to_le_bytes());
        self.code(&[0x49, 0x83, 0xc2, 8]); // add $8,%r10
        self.code(&[0x4d, 0x89, 0x13]); // mov %r10,(%r11)
        self.code(&[0x49, 0x83, 0xab]); // subq $ENTRY,top(%r11)
        self.code(&block::TOP.to_le_bytes());
        self.code(&[block::ENTRY as u8]);
        self.clear_busy();
        self.land(no_block);
        self.land(busy);
        self.restore(saved);
        self.then(then);
        entry
    }

    /// Says in a stub how long the function is, so that the probe can tell its calls from those of others: if the return address
    /// stays in its slot.
    pub(crate) fn set_length(&mut self, of: &Stub, length: u64) {
        if !of.has_range {
            return;
        }
        let at = (of.start + stub::LENGTH - self.base()) as usize;
        let length = u32::try_from(length).unwrap_or(0);
        if let Some(field) = self.bytes.get_mut(at..at + 4) {
            field.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// And where it begins.
    pub(crate) fn set_start(&mut self, of: &Stub, address: u64) {
        if of.has_range {
            let trailing = 0;
            self.link(of.start + stub::RANGE, Link::Image { address, trailing });
        }
    }

    /// A tail jump to another stub, which will find the frame marked.
    pub(crate) fn add_hand_over(&mut self, moved: &Code, to: Link) -> u32 {
        if self.is_plain {
            return self.plain_exit(moved, Then::Jump(to));
        }
        let slow = self.exit_head(BOTH, routine::HAND_OVER);
        self.then(Then::Jump(to));
        let entry = self.exit_entry();
        self.body(moved);
        self.save(2);
        self.load_block();
        self.code(&[0x4d, 0x85, 0xdb]); // test %r11,%r11
        let no_block = self.jump_ahead(If::Equal);
        self.test_busy();
        let busy = self.jump_ahead(If::NotEqual);
        self.top_frame_is_plain(&slow);
        // orb $HANDED_OVER,stub-ENTRY(%r10): one instruction, so that no handler comes between.
        let flags = (block::ENTRY_STUB - block::ENTRY) as u8;
        self.code(&[0x41, 0x80, 0x4a, flags, block::HANDED_OVER as u8]);
        self.land(no_block);
        self.land(busy);
        self.restore(2);
        self.then(Then::Jump(to));
        entry
    }

    /// An exit that records nothing.
    fn plain_exit(&mut self, moved: &Code, then: Then) -> u32 {
        let entry = self.exit_entry();
        self.body(moved);
        self.then(then);
        entry
    }

    /// A tail jump to an own function with inline code: the frame becomes that function's, by two
    /// events (three, where it is a leaf, which ends the frame). Returns where the site jumps to, and
    /// where the event word of the function's symbol is.
    pub(crate) fn add_tail_inline(&mut self, moved: &Code, to: &Stub) -> (u32, u32) {
        let slow = self.exit_head(3, routine::HAND_OVER);
        self.jump_to(to.entry);
        let entry = self.exit_entry();
        self.body(moved);
        self.save(3);
        self.block_or(&slow);
        self.set_busy();
        self.top_frame_is_plain(&slow);
        let events: u8 = if to.is_leaf { 3 } else { 2 };
        self.code(&[0x49, 0x8b, 0x03]); // mov (%r11),%rax
        self.code(&[0x48, 0x83, 0xc0, 8 * events]); // add $size,%rax
        self.code(&[0x49, 0x3b, 0x43, block::LIMIT as u8]); // cmp limit(%r11),%rax
        self.jump_back(If::Above, &slow);
        // The last event first: a reader stops at a zero, so that all appear at once.
        let mut back = -8i8;
        if to.is_leaf {
            self.code(&[0x48, 0xc7, 0x40, back as u8]); // movq $RETURN,back(%rax)
            self.code(&event_word(RETURN, false).to_le_bytes());
            back -= 8;
        }
        self.code(&[0x48, 0xc7, 0x40, back as u8]); // movq $symbol,back(%rax)
        let word = self.here();
        self.code(&[0; 4]);
        back -= 8;
        self.code(&[0x48, 0xc7, 0x40, back as u8]); // movq $TAIL,back(%rax)
        self.code(&event_word(TAIL, false).to_le_bytes());
        self.code(&[0x49, 0x89, 0x03]); // mov %rax,(%r11)
        if to.is_leaf {
            self.code(&[0x49, 0x83, 0xab]); // subq $ENTRY,top(%r11)
            self.code(&block::TOP.to_le_bytes());
            self.code(&[block::ENTRY as u8]);
        } else {
            self.stub_address(to.start, RegisterOfStub::Rax);
            let place = (block::ENTRY_STUB - block::ENTRY) as u8;
            self.code(&[0x49, 0x89, 0x42, place]); // mov %rax,stub-ENTRY(%r10)
        }
        self.clear_busy();
        self.restore(3);
        self.jump_to(to.body);
        (entry, word)
    }

    /// Records a call and leaves its return address where it is. With two registers: the block's
    /// address is loaded again where it is needed, which costs less than to save a third.
    fn open(&mut self, saved: usize, slow: &Slow, start: u32) -> u32 {
        self.block_or(slow);
        self.set_busy();
        self.room_or(slow);
        self.frame_fits_below(slow);
        // The entry of the shadow stack.
        self.stub_address(start, RegisterOfStub::R11);
        self.code(&[0x4d, 0x89, 0x5a, block::ENTRY_STUB as u8]); // mov %r11,stub(%r10)
        self.code(&[0x4c, 0x8b, 0x1c, 0x24]); // mov (%rsp),%r11
        self.code(&[0x4d, 0x89, 0x1a]); // mov %r11,(%r10)
        self.code(&[0x49, 0x89, 0x62, block::ENTRY_KEY as u8]); // mov %rsp,key(%r10)
        self.code(&[0x49, 0x83, 0xc2, block::ENTRY as u8]); // add $ENTRY,%r10
        self.load_block();
        self.code(&[0x4d, 0x89, 0x93]); // mov %r10,top(%r11)
        self.code(&block::TOP.to_le_bytes());
        // The event: the low half of the return address, then the word that makes it valid.
        self.code(&[0x4d, 0x8b, 0x13]); // mov (%r11),%r10
        self.code(&[0x44, 0x8b, 0x1c, 0x24]); // mov (%rsp),%r11d
        self.code(&[0x45, 0x89, 0x5a, 4]); // mov %r11d,4(%r10)
        self.code(&[0x41, 0xc7, 0x02]); // movl $symbol,(%r10)
        let word = self.here();
        self.code(&[0; 4]);
        self.load_block();
        self.code(&[0x49, 0x83, 0xc2, 8]); // add $8,%r10
        self.code(&[0x4d, 0x89, 0x13]); // mov %r10,(%r11)
        self.clear_busy();
        self.restore(saved);
        word
    }

    /// Goes on only where the slot leads to the target.
    fn gate(&mut self, gate: Gate) {
        self.code(&[0x4c, 0x8b, 0x1d, 0, 0, 0, 0]); // mov slot(%rip),%r11
        let at = self.here() - 4;
        let link = Link::Image {
            address: gate.slot,
            trailing: 0,
        };
        self.link(at, link);
        self.code(&[0x4c, 0x3b, 0x1d, 0, 0, 0, 0]); // cmp target(%rip),%r11
        self.reach(self.here() - 4, gate.target);
        if gate.is_free {
            self.code(&[0x0f, 0x85, 0, 0, 0, 0]); // jne through
        } else {
            let passes = self.jump_ahead(If::Equal);
            self.code(RESTORE[0]);
            self.jump_to(gate.through);
            self.land(passes);
            return;
        }
        self.reach(self.here() - 4, u64::from(gate.through));
    }

    /// Records a call and its return.
    fn leaf(&mut self, saved: usize, slow: &Slow) -> u32 {
        self.block_or(slow);
        self.set_busy();
        self.frame_fits_below(slow);
        self.room_or(slow);
        self.code(&[0x49, 0xc7, 0x02]); // movq $symbol,(%r10)
        let word = self.here();
        self.code(&[0; 4]);
        self.code(&[0x49, 0x83, 0xc2, 8]); // add $8,%r10
        self.code(&[0x4d, 0x89, 0x13]); // mov %r10,(%r11)
        self.clear_busy();
        self.restore(saved);
        word
    }

    /// r10 = cursor; the slow way where there is no room for an event.
    fn room_or(&mut self, slow: &Slow) {
        self.code(&[0x4d, 0x8b, 0x13]); // mov (%r11),%r10
        self.code(&[0x4d, 0x3b, 0x53, block::LIMIT as u8]); // cmp limit(%r11),%r10
        self.jump_back(If::AboveOrEqual, slow);
    }

    fn code(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn body(&mut self, body: &Code) {
        let at = self.here();
        self.code(&body.bytes);
        for (offset, link) in &body.links {
            self.link(at + offset, *link);
        }
    }

    fn save(&mut self, count: usize) {
        for register in &SAVE[..count] {
            self.code(register);
        }
    }

    fn restore(&mut self, count: usize) {
        for register in RESTORE[..count].iter().rev() {
            self.code(register);
        }
    }

    /// The slow way: registers as they were, then the routine.
    fn slow(&mut self, saved: usize, routine: usize) {
        for _ in saved..RESTORE.len() {
            self.code(NOP5);
        }
        self.restore(saved);
        self.code(&[0xff, 0x15, 0, 0, 0, 0]); // call *[routine]
        self.reach(self.here() - 4, 8 * routine as u64);
    }

    /// Where the next exit begins.
    pub(crate) fn next_exit(&self) -> u32 {
        self.here().next_multiple_of(8)
    }

    fn exit_head(&mut self, saved: usize, routine: usize) -> Slow {
        let at = self.exit_entry();
        self.slow(saved, routine);
        Slow { at }
    }

    /// Where an exit is entered: behind its slow way.
    fn exit_entry(&mut self) -> u32 {
        let size = self.bytes.len().next_multiple_of(8);
        self.bytes.resize(size, 0xcc);
        self.here()
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Return { pops: 0 } => self.code(&[0xc3]),
            Then::Return { pops } => {
                self.code(&[0xc2]);
                self.code(&pops.to_le_bytes());
            }
            Then::Jump(link) => {
                let (opcode, field): (&[u8], _) = match link {
                    Link::Slot { .. } | Link::Shadow { .. } => (&[0xff, 0x25], 2),
                    _ => (&[0xe9], 1),
                };
                let at = self.here();
                self.code(opcode);
                self.code(&[0; 4]);
                self.link(at + field, link);
            }
        }
    }

    fn jump_to(&mut self, offset: u32) {
        self.code(&[0xe9, 0, 0, 0, 0]);
        self.reach(self.here() - 4, u64::from(offset));
    }

    /// `mov %fs:thread,%r11`
    fn load_block(&mut self) {
        self.code(&[0x64, 0x4c, 0x8b, 0x1c, 0x25]);
        self.fixups.push(Fixup {
            at: self.here(),
            kind: fixup::THREAD_32,
            value: 0,
        });
        self.code(&[0; 4]);
    }

    /// The thread's block in r11; the slow way where there is none or an event is being recorded.
    fn block_or(&mut self, slow: &Slow) {
        self.load_block();
        self.code(&[0x4d, 0x85, 0xdb]); // test %r11,%r11
        self.jump_back(If::Equal, slow);
        self.test_busy();
        self.jump_back(If::NotEqual, slow);
    }

    /// `cmpq $0,busy(%r11)`
    fn test_busy(&mut self) {
        self.code(&[0x49, 0x83, 0x7b, block::BUSY as u8, 0]);
    }

    /// `mov %rsp,busy(%r11)`
    fn set_busy(&mut self) {
        self.code(&[0x49, 0x89, 0x63, block::BUSY as u8]);
    }

    /// `movq $0,busy(%r11)`
    fn clear_busy(&mut self) {
        self.code(&[0x49, 0xc7, 0x43, block::BUSY as u8, 0, 0, 0, 0]);
    }

    /// r10 = top; its frame must lie above this one and need no second look.
    fn frame_fits_below(&mut self, slow: &Slow) {
        self.load_top();
        self.compare_key();
        self.jump_back(If::AboveOrEqual, slow);
    }

    /// r10 = top; its frame must be this one, with its return address in place.
    fn top_frame_is_plain(&mut self, slow: &Slow) {
        self.load_top();
        self.compare_key();
        self.jump_back(If::NotEqual, slow);
    }

    /// `mov top(%r11),%r10`
    fn load_top(&mut self) {
        self.code(&[0x4d, 0x8b, 0x93]);
        self.code(&block::TOP.to_le_bytes());
    }

    /// `cmp key-ENTRY(%r10),%rsp`
    fn compare_key(&mut self) {
        let key = (block::ENTRY_KEY - block::ENTRY) as u8;
        self.code(&[0x49, 0x3b, 0x62, key]);
    }

    /// `lea stub+PLAIN(%rip),%register`
    fn stub_address(&mut self, start: u32, register: RegisterOfStub) {
        let address = u64::from(start) + block::PLAIN;
        self.code(match register {
            RegisterOfStub::Rax => &[0x48, 0x8d, 0x05, 0, 0, 0, 0],
            RegisterOfStub::R11 => &[0x4c, 0x8d, 0x1d, 0, 0, 0, 0],
        });
        let at = self.here() - 4;
        match register {
            // Of another function.
            RegisterOfStub::Rax => self.reach(at, address),
            RegisterOfStub::R11 => self.set_displacement(at, address),
        }
    }

    fn jump_back(&mut self, condition: If, slow: &Slow) {
        let distance = i64::from(slow.at) - i64::from(self.here() + 2);
        if let Ok(short) = i8::try_from(distance) {
            self.code(&[0x70 | condition as u8, short as u8]);
        } else {
            let distance = i64::from(slow.at) - i64::from(self.here() + 6);
            self.code(&[0x0f, 0x80 | condition as u8]);
            self.code(&(distance as i32).to_le_bytes());
        }
    }

    /// A jump to what comes within 127 bytes; [`Arena::land`] says where.
    fn jump_ahead(&mut self, condition: If) -> usize {
        self.code(&[0x70 | condition as u8, 0]);
        self.bytes.len()
    }

    fn land(&mut self, jump: usize) {
        let distance = self.bytes.len() - jump;
        debug_assert!(distance < 128);
        self.bytes[jump - 1] = distance as u8;
    }
}
