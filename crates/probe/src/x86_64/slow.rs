//! The slow path: what the event path ([`super::routines`]) cannot do in a few instructions.
//!
//! Signals blocked, registers saved, own stack, Rust ([`crate::event`]). *Costs*: about 100 ns, and two system calls more where
//! signals are blocked.

use super::routines::{BUSY, ENTER_PLAIN};
use crate::event::{BRIEF, event, nested};
use crate::signals::QUIET;
use crate::thread::{SPARE, SPARES, Thread};
use core::arch::naked_asm;
use core::mem::{offset_of, size_of};
use lockstep_format::plan::routine;

const STACK_END: usize = offset_of!(Thread, stack_end);
const AT_WORK: usize = offset_of!(Thread, at_work);
const INTERRUPTED: usize = offset_of!(Thread, interrupted);

/// From the return address of a routine to the parts of the stub (see [`lockstep_format::plan`]).
pub(super) mod from {
    use lockstep_format::plan::stub;
    /// ENTER, INSTANT, JUMP, VFORK and hooks: to the stub's start.
    pub const ENTRY: usize = stub::AFTER_ENTRY as usize;
    /// OPEN, LEAF: to the stub's start.
    pub const OPEN: usize = stub::AFTER_OPEN as usize;
    /// ENTER: to the body.
    pub const ENTRY_TO_BODY: usize = (stub::INLINE - stub::AFTER_ENTRY) as usize;
    /// EXIT, called from start + 30: to the hook.
    pub const EXIT_TO_HOOK: usize = 36 - stub::HOOK as usize;
}

/// All signals.
static EVERY_SIGNAL: u64 = u64::MAX;

/// What the slow path keeps on the program's stack, lowest address first.
#[repr(C)]
pub struct Frame {
    /// The signal mask to go back to.
    mask: u64,
    /// What `rt_sigprocmask` said: nothing is put back where it was refused, or not asked.
    masked: i64,
    registers: [u64; 12],
    /// Which routine.
    pub kind: u64,
    /// Where the routine returns to, within the stub.
    pub stub: u64,
    /// The program's return address, or our hook in its place; its address is the *slot*.
    pub slot: u64,
}

impl Frame {
    /// The program's first argument, as the routine found it.
    pub fn first_argument(&self) -> u64 {
        self.registers[REGISTER_RDI]
    }

    /// What the program's call returns as an integer.
    pub fn result(&self) -> u64 {
        self.registers[REGISTER_RAX]
    }

    /// Replaces what the program's call returns as an integer.
    pub fn set_result(&mut self, value: u64) {
        self.registers[REGISTER_RAX] = value;
    }

    /// Replaces argument `number`, from 1; false where it is not in a register.
    pub fn set_argument(&mut self, number: u32, value: u64) -> bool {
        const ARGUMENTS: [usize; 6] = [REGISTER_RDI, 7, 8, 9, 5, 4];
        let place = (number as usize)
            .checked_sub(1)
            .and_then(|index| ARGUMENTS.get(index))
            .and_then(|register| self.registers.get_mut(*register));
        place.map(|place| *place = value).is_some()
    }

    /// The registers of integer arguments, as the routine found them.
    pub fn arguments(&self) -> [u64; 6] {
        // rdi, rsi, rdx, rcx, r8, r9
        [6, 7, 8, 9, 5, 4].map(|index| self.registers.get(index).copied().unwrap_or(0))
    }

    /// rdi, rsi, rdx, rcx, r8, r9, rax and r10 as the routine found them.
    pub fn of_call(&self) -> [u64; 8] {
        [REGISTER_RDI, 7, 8, 9, 5, 4, REGISTER_RAX, 3].map(|register| self.registers[register])
    }

    /// The frame of a slow path that has just unblocked signals, where these are its address and stack pointer: what is left to
    /// do is to take the program's registers from it and return to the stub.
    ///
    /// # Safety
    /// They are, if the address is.
    pub unsafe fn of_unblocked<'a>(address: u64, stack: u64) -> Option<&'a Self> {
        let is_it = address == lockstep_unblocked as *const () as u64;
        // SAFETY: the frame lies at the stack pointer there.
        is_it.then(|| unsafe { &*(stack as *const Self) })
    }

    /// The program's registers, in the order of a signal's context up to the stack pointer.
    pub fn all_registers(&self, r12_to_r15: [u64; 4]) -> [u64; 16] {
        let [rbp, rbx, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax, _] = self.registers;
        let [r12, r13, r14, r15] = r12_to_r15;
        let stack = &raw const self.slot as u64;
        [
            r8, r9, r10, r11, r12, r13, r14, r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, stack,
        ]
    }

    /// The start of the stub that called a routine of an entry.
    pub fn stub_start(&self) -> u64 {
        let to_stub = match self.kind as usize {
            routine::OPEN | routine::LEAF => from::OPEN,
            _ => from::ENTRY,
        };
        self.stub - to_stub as u64
    }

    /// The hook of the stub that called EXIT.
    pub fn hook_of_exit(&self) -> u64 {
        self.stub - from::EXIT_TO_HOOK as u64
    }

    /// Makes ENTER a plain jump to the body.
    pub fn skip(&mut self) {
        self.stub += from::ENTRY_TO_BODY as u64;
    }
}

unsafe extern "C" {
    fn lockstep_unblocked();
}

/// Places in [`Frame::registers`]; behind rdi: rsi, rdx, rcx; before it: r8, r9 downwards.
const REGISTER_RDI: usize = 6;
const REGISTER_RAX: usize = 10;
/// Bytes at the end of the slow path's stack: xmm0 to xmm15 as the routine found them.
pub const XMM_ROOM: usize = 256;

/// Saves what Rust may change, goes to the thread's own stack and calls [`event`].
#[unsafe(naked)]
pub(super) unsafe extern "C" fn slow() {
    naked_asm!(
        "pushfq",
        push!(rax rcx rdx rsi rdi r8 r9 r10 r11 rbx rbp),
        "cld",
        "sub rsp, 16",
        "mov rbx, rsp",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rbp, qword ptr fs:[rax]",
        // Signals are blocked, but in what is brief where none has a handler.
        "test rbp, rbp",
        "jz 7f",
        "cmp qword ptr [rip + {quiet}], 0",
        "je 7f",
        "mov eax, dword ptr [rbx + {kind_at}]",
        "mov ecx, {brief}",
        "mov qword ptr [rbx + 8], 1",
        "bt ecx, eax",
        "jc 2f",
        "7:",
        "mov eax, 14", // rt_sigprocmask(SIG_SETMASK)
        "mov edi, 2",
        "lea rsi, [rip + {every_signal}]",
        "mov rdx, rsp",
        "mov r10d, 8",
        "syscall",
        "mov qword ptr [rsp + 8], rax",
        "test rbp, rbp",
        "jnz 2f",
        // A new thread: the block of one that is gone, or another, all zeros.
        "lea rdx, [rip + {spare}]",
        "mov ecx, {spares}",
        "22:",
        "cmp qword ptr [rdx + 8*rcx - 8], 0",
        "je 23f",
        "xor eax, eax",
        "xchg rax, qword ptr [rdx + 8*rcx - 8]",
        "test rax, rax",
        "jnz 24f",
        "23:",
        "dec ecx",
        "jnz 22b",
        "mov eax, 9", // mmap
        "xor edi, edi",
        "mov esi, {size}",
        "mov edx, 3",
        "mov r10d, 0x4022", // private, anonymous, no reserve
        "mov r8, -1",
        "xor r9d, r9d",
        "syscall",
        "cmp rax, -4096",
        "ja 5f",
        // Written to before they are read: see `crate::encoder::touch`.
        "mov qword ptr [rax + {busy}], 0",
        "mov qword ptr [rax + {at_work}], 0",
        "24:",
        "mov rbp, rax",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov qword ptr fs:[rax], rbp",
        "2:",
        // Its stack is in use, or nobody's: then what a handler calls from here on is led here too.
        "cmp qword ptr [rbp + {at_work}], 0",
        "jne 8f",
        "mov qword ptr [rbp + {at_work}], rbx",
        "mov rax, qword ptr [rbp + {busy}]",
        "mov qword ptr [rbp + {interrupted}], rax",
        "cmp rax, -1",
        "je 9f",
        "mov qword ptr [rbp + {busy}], rbx",
        "9:",
        "lea rsp, [rbp + {stack_end} - {xmm_room}]",
        vectors!(save),
        "mov rdi, rbp",
        "mov rsi, rbx",
        "call {event}",
        vectors!(load),
        "mov rsp, rbx",
        "cmp qword ptr [rbp + {busy}], -1",
        "je 9f",
        "mov rax, qword ptr [rbp + {interrupted}]",
        "mov qword ptr [rbp + {busy}], rax",
        "9:",
        "mov qword ptr [rbp + {at_work}], 0",
        // Back on the program's stack: a handler that was held back may run from here on, and be
        // recorded.
        "3:",
        "cmp qword ptr [rsp + 8], 0",
        "jne 4f",
        "mov eax, 14",
        "mov edi, 2",
        "mov rsi, rsp",
        "xor edx, edx",
        "mov r10d, 8",
        "syscall",
        // What was held back is handled here, see `Frame::of_unblocked`.
        ".hidden lockstep_unblocked",
        ".globl lockstep_unblocked",
        "lockstep_unblocked:",
        "4:",
        "add rsp, 16",
        pop!(rbp rbx r11 r10 r9 r8 rdi rsi rdx rcx rax),
        "popfq",
        "lea rsp, [rsp + 8]",
        "ret",
        // No memory: the call goes on unrecorded. (EXIT cannot come here: its thread has a block.)
        "5:",
        "mov rax, qword ptr [rip + {without_memory}]",
        "lock inc qword ptr [rax]",
        "cmp qword ptr [rsp + {kind_at}], {enter}",
        "je 6f",
        "cmp qword ptr [rsp + {kind_at}], {enter_plain}",
        "jne 3b",
        "6:",
        "add qword ptr [rsp + {stub_at}], {body}",
        "jmp 3b",
        // In a handler that interrupted the slow path.
        "8:",
        "sub rsp, {xmm_room}",
        "and rsp, -16",
        vectors!(save),
        "mov rdi, rbp",
        "mov rsi, rbx",
        "call {nested}",
        vectors!(load),
        "mov rsp, rbx",
        "jmp 3b",
        every_signal = sym EVERY_SIGNAL,
        size = const size_of::<Thread>(),
        spare = sym SPARE,
        spares = const SPARES,
        stack_end = const STACK_END,
        xmm_room = const XMM_ROOM,
        event = sym event,
        nested = sym nested,
        quiet = sym QUIET,
        brief = const BRIEF,
        busy = const BUSY,
        at_work = const AT_WORK,
        interrupted = const INTERRUPTED,
        without_memory = sym crate::thread::WITHOUT_MEMORY,
        kind_at = const offset_of!(Frame, kind),
        stub_at = const offset_of!(Frame, stub),
        enter = const routine::ENTER,
        enter_plain = const ENTER_PLAIN,
        body = const from::ENTRY_TO_BODY,
    )
}
