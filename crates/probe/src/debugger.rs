//! What a debugger needs to walk through frames whose return address is kept here: a small ELF object for
//! each arena, in memory, made known by gdb's interface for code that is made as a program runs
//! (`__jit_debug_register_code`, `__jit_debug_descriptor`; lldb reads it too). No debugger, no cost but
//! the object.
//!
//! The object has one symbol, `lockstep`, and one frame description for all of the arena. A call-through
//! stub is left by a call, so that its caller's return address is where we keep it: the description is an
//! expression that looks for the frame's slot in the shadow stacks, thread by thread. Everywhere else in
//! an arena the stack is taken to be as at a function's entry; that is wrong within instructions that
//! were moved from behind a `push`, a few of each function.
//!
//! ```text
//!  body's frame          rsp + 8 -> S + 25, the hook          (gdb: in lockstep)
//!  hook's frame          CFA: rsp; return address: entry of slot CFA - 8
//!  caller                goes on as ever
//! ```

use crate::entry::{ENTRY_SIZE, Entry};
use crate::process::Process;
use crate::syscall;
use crate::thread::Thread;
use core::arch::global_asm;
use core::mem::offset_of;
use core::ptr::null_mut;

// The debugger finds both by name in the symbol table, sets a breakpoint at the function, and reads the
// descriptor. They are hidden: a host may have its own.
global_asm!(
    ".text",
    ".hidden __jit_debug_register_code",
    ".globl __jit_debug_register_code",
    ".type __jit_debug_register_code,@function",
    "__jit_debug_register_code:",
    "ret",
    ".size __jit_debug_register_code, 1",
    ".data",
    ".p2align 3",
    ".hidden __jit_debug_descriptor",
    ".globl __jit_debug_descriptor",
    ".type __jit_debug_descriptor,@object",
    ".size __jit_debug_descriptor, 24",
    "__jit_debug_descriptor:",
    ".long 1, 0",
    ".quad 0, 0",
    ".text",
);

unsafe extern "C" {
    safe fn __jit_debug_register_code();
    static mut __jit_debug_descriptor: Descriptor;
}

/// `struct jit_descriptor`
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Record,
    first: *mut Record,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// `struct jit_code_entry`, and the object that it speaks of.
#[repr(C)]
struct Record {
    next: *mut Record,
    previous: *mut Record,
    object_at: *const u8,
    object_size: u64,
    arena: u64,
    object: Object,
}

/// Bytes that are written one behind the other; what does not fit is missing.
#[repr(C)]
struct Object {
    length: usize,
    bytes: [u8; ROOM],
}

const ROOM: usize = 1024 - 48;
/// Records that are mapped at a time.
const RECORDS: usize = 64;

/// Records that nobody uses.
static mut FREE: *mut Record = null_mut();

/// Tells debuggers of an arena. One at a time.
pub fn know(arena: u64, size: u64) {
    let Some(process) = Process::get() else {
        return;
    };
    let Some(record) = take() else { return };
    // SAFETY: a record of ours that nobody else uses; whoever reads the list is stopped with us.
    unsafe {
        let object = &raw mut (*record).object;
        (*object).length = 0;
        (*object).write(arena, size, process.threads_at());
        (*record).arena = arena;
        (*record).object_at = (&raw const (*object).bytes).cast();
        (*record).object_size = (*object).length as u64;
        let descriptor = &raw mut __jit_debug_descriptor;
        let first = (*descriptor).first;
        (*record).next = first;
        (*record).previous = null_mut();
        if !first.is_null() {
            (*first).previous = record;
        }
        (*descriptor).first = record;
        (*descriptor).relevant = record;
        (*descriptor).action = REGISTER;
    }
    __jit_debug_register_code();
}

/// An arena is gone. One at a time.
pub fn forget(arena: u64) {
    // SAFETY: as above.
    unsafe {
        let descriptor = &raw mut __jit_debug_descriptor;
        let mut record = (*descriptor).first;
        while !record.is_null() && (*record).arena != arena {
            record = (*record).next;
        }
        if record.is_null() {
            return;
        }
        let (next, previous) = ((*record).next, (*record).previous);
        if previous.is_null() {
            (*descriptor).first = next;
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
        (*descriptor).relevant = record;
        (*descriptor).action = UNREGISTER;
        __jit_debug_register_code();
        (*record).next = FREE;
        FREE = record;
    }
}

/// A record that nobody uses.
fn take() -> Option<*mut Record> {
    // SAFETY: one at a time; the pages are ours, and large enough.
    unsafe {
        if FREE.is_null() {
            let fresh = syscall::map(RECORDS * size_of::<Record>()).ok()?;
            let fresh = fresh.cast::<Record>();
            for index in 0..RECORDS {
                let record = fresh.add(index);
                (*record).next = FREE;
                FREE = record;
            }
        }
        let record = FREE;
        FREE = (*record).next;
        Some(record)
    }
}

/// Opcodes of DWARF expressions.
mod op {
    pub const DEREF: u8 = 0x06;
    pub const CONST_1: u8 = 0x08;
    pub const CONST_4: u8 = 0x0c;
    pub const CONST_8: u8 = 0x0e;
    pub const DUP: u8 = 0x12;
    pub const DROP: u8 = 0x13;
    pub const OVER: u8 = 0x14;
    pub const PICK: u8 = 0x15;
    pub const AND: u8 = 0x1a;
    pub const MINUS: u8 = 0x1c;
    pub const PLUS: u8 = 0x23;
    pub const BRANCH: u8 = 0x28;
    pub const EQUAL: u8 = 0x29;
    pub const AT_LEAST: u8 = 0x2a;
    pub const SKIP: u8 = 0x2f;
    pub const LITERAL: u8 = 0x30;
    pub const REGISTER: u8 = 0x70;
    pub const DEREF_SIZE: u8 = 0x94;
    /// Numbers of registers.
    pub const RSP: u8 = 7;
    pub const RIP: u8 = 16;
}

impl Object {
    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    fn number(&mut self, value: usize) {
        let mut rest = value;
        loop {
            let more = rest > 0x7f;
            self.push(&[(rest & 0x7f) as u8 | if more { 0x80 } else { 0 }]);
            rest >>= 7;
            if !more {
                return;
            }
        }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    /// A branch to what comes later; [`Object::land`] says where.
    fn ahead(&mut self, operation: u8) -> usize {
        self.push(&[operation, 0, 0]);
        self.length
    }

    fn land(&mut self, branch: usize) {
        let distance = (self.length - branch) as i16;
        self.put(branch - 2, &distance.to_le_bytes());
    }

    fn back(&mut self, operation: u8, to: usize) {
        let distance = to as i64 - (self.length as i64 + 3);
        self.push(&[operation]);
        self.push(&(distance as i16).to_le_bytes());
    }

    /// A rule of a frame description: its opcode (and register), and an expression whose length comes first.
    fn rule(&mut self, opcode: &[u8], expression: impl FnOnce(&mut Self)) {
        self.push(opcode);
        // Two bytes, whatever the length.
        self.push(&[0x80, 0]);
        let start = self.length;
        expression(self);
        let length = self.length - start;
        self.put(
            start - 2,
            &[(length & 0x7f) as u8 | 0x80, (length >> 7) as u8],
        );
    }

    /// Where the frame begins: behind the return address; at the hook that is gone already. The hook is
    /// `lea -8(%rsp),%rsp`, 48 8d 64 24 f8.
    fn frame(&mut self) {
        let (pc, sp) = (op::REGISTER + op::RIP, op::REGISTER + op::RSP);
        self.push(&[pc, 0, op::DEREF_SIZE, 4, op::CONST_4]);
        self.push(&[0x48, 0x8d, 0x64, 0x24]);
        self.push(&[op::EQUAL, pc, 4, op::DEREF_SIZE, 1, op::CONST_1, 0xf8]);
        self.push(&[op::EQUAL, op::AND]);
        let hook = self.ahead(op::BRANCH);
        self.push(&[sp, 8]);
        let end = self.ahead(op::SKIP);
        self.land(hook);
        self.push(&[sp, 0]);
        self.land(end);
    }

    /// The return address: that of the entry with the frame's slot, in any thread's shadow stack; else what
    /// the slot holds. The stack of the expression begins with the frame's address.
    fn return_address(&mut self, threads: u64) {
        // slot, thread
        self.push(&[op::LITERAL + 8, op::MINUS, op::CONST_8]);
        self.push(&threads.to_le_bytes());
        self.push(&[op::DEREF]);
        let each_thread = self.length;
        self.push(&[op::DUP]);
        let is_thread = self.ahead(op::BRANCH);
        self.push(&[op::DROP, op::DEREF]);
        let nowhere = self.ahead(op::SKIP);
        self.land(is_thread);
        // slot, thread, behind an entry
        self.push(&[op::DUP, op::PLUS]);
        self.number(offset_of!(Thread, top));
        self.push(&[op::DEREF]);
        let each_entry = self.length;
        self.push(&[op::OVER, op::PLUS]);
        self.number(offset_of!(Thread, base));
        self.push(&[op::DEREF, op::OVER, op::AT_LEAST]);
        let no_more = self.ahead(op::BRANCH);
        // slot, thread, entry; where a hook stands in the slot, its key is one less.
        self.push(&[op::CONST_1, ENTRY_SIZE as u8, op::MINUS]);
        self.push(&[op::DUP, op::PLUS, Entry::PLACES.0 as u8, op::DEREF]);
        self.push(&[op::PLUS, 1, op::PICK, 3, op::EQUAL]);
        let found = self.ahead(op::BRANCH);
        self.back(op::SKIP, each_entry);
        self.land(no_more);
        self.push(&[op::DROP, op::PLUS]);
        self.number(offset_of!(Thread, next));
        self.push(&[op::DEREF]);
        self.back(op::SKIP, each_thread);
        self.land(found);
        self.push(&[op::DEREF]);
        self.land(nowhere);
    }

    /// The whole object. Addresses of sections are where they are.
    fn write(&mut self, arena: u64, size: u64, threads: u64) {
        const NAMES: &[u8] = b"\0lockstep\0.text\0.eh_frame\0.symtab\0.strtab\0";
        let base = self.bytes.as_ptr() as u64;
        // ELF for x86-64, relocatable: symbols are relative to sections.
        self.push(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
        self.push(&[1, 0, 62, 0, 1, 0, 0, 0]);
        self.push(&[0; 16]);
        let sections_at = self.length;
        self.push(&[0; 12]);
        self.push(&[64, 0, 0, 0, 0, 0, 64, 0, 5, 0, 4, 0]);

        let frames = self.length;
        self.push(&[0; 8]);
        // Version, augmentation, alignments, return address's column, absolute addresses.
        self.push(&[1, b'z', b'R', 0, 1, 0x78, op::RIP, 1, 0]);
        self.rule(&[0x0f], Self::frame);
        self.rule(&[0x16, op::RIP], |object| object.return_address(threads));
        let description = self.length;
        let length = (description - frames - 4) as u32;
        self.put(frames, &length.to_le_bytes());
        self.push(&21u32.to_le_bytes());
        self.push(&((description + 4 - frames) as u32).to_le_bytes());
        self.push(&arena.to_le_bytes());
        self.push(&size.to_le_bytes());
        self.push(&[0]);
        self.push(&[0; 4]);
        let frames_end = self.length;

        let symbols = self.length;
        self.push(&[0; 24]);
        // A global function at the start of section 1.
        self.push(&[1, 0, 0, 0, 0x12, 0, 1, 0]);
        self.push(&0u64.to_le_bytes());
        self.push(&size.to_le_bytes());
        let names = self.length;
        self.push(NAMES);

        let sections = self.length as u64;
        self.put(sections_at, &sections.to_le_bytes());
        self.push(&[0; 64]);
        let section = |object: &mut Self, head: [u32; 2], rest: [u64; 4], links: [u32; 2]| {
            for word in head {
                object.push(&word.to_le_bytes());
            }
            for word in rest {
                object.push(&word.to_le_bytes());
            }
            for word in links {
                object.push(&word.to_le_bytes());
            }
        };
        let align = |object: &mut Self, align: u64, entry: u64| {
            object.push(&align.to_le_bytes());
            object.push(&entry.to_le_bytes());
        };
        // Name, type; flags, address, place, size; link, information.
        section(self, [10, 8], [6, arena, 0, size], [0, 0]);
        align(self, 16, 0);
        let (at, length) = (frames as u64, (frames_end - frames) as u64);
        section(self, [16, 1], [2, base + at, at, length], [0, 0]);
        align(self, 1, 0);
        section(self, [26, 2], [0, 0, symbols as u64, 48], [4, 1]);
        align(self, 1, 24);
        section(
            self,
            [34, 3],
            [0, 0, names as u64, NAMES.len() as u64],
            [0, 0],
        );
        align(self, 1, 0);
    }
}

// `DW_OP_plus_uconst` and `DW_OP_pick` of an entry's slot; its return address comes first.
const _: () = assert!(ENTRY_SIZE < 256 && size_of::<Record>() == 1024);
