//! The routines that stubs call: the event path.
//!
//! A routine is entered by `call *[table]` from a stub (see [`lockstep_format::plan`]) and preserves
//! every register but the flags. What it needs lies in the thread's [`Thread`] block, reached through
//! one thread-local pointer. The fast path of an event: check that nothing special is going on, keep
//! the frame on the private shadow stack, store one staging word. Everything else takes the slow
//! path: signals blocked, registers saved, own stack, Rust ([`crate::event`]).
//!
//! # Signals
//!
//! `busy` holds the stack pointer of an event from before it loads anything that an event changes
//! until after its last store. A handler that runs meanwhile finds it set: its calls become plain
//! jumps, counted. A call made from *above* that address proves that the handler never came back
//! (`siglongjmp`): the slow path then clears it. The slow path itself blocks all signals, which
//! nobody can see (two system calls a batch), so that a handler never meets a half-encoded batch;
//! where no signal has a handler, it blocks none for what is brief ([`crate::signals`]).
//!
//! # Stack of the program while a routine runs
//!
//! ```text
//!  slot ->  R         where the program's call returns to
//!           S + 6     the stub's own return address (rsp at the routine's entry)
//!           saved     5 registers (fast path); 15 words (slow path)
//! ```

use crate::entry::{ENTRY_SIZE, Entry};
use crate::event::{BRIEF, event, nested};
use crate::signals::QUIET;
use crate::thread::{Hot, SPARE, SPARES, STOPPED, Thread};
use core::arch::{global_asm, naked_asm};
use core::mem::{offset_of, size_of};
use lockstep_format::plan::{block, routine, stub};
use lockstep_format::symbol::{RETURN, TAIL, event_word};

// One pointer a thread, in the static TLS block: two instructions to reach, no `__tls_get_addr`.
// Zero in a new thread, which leads it to the slow path.
global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 3",
    ".hidden lockstep_thread",
    ".globl lockstep_thread",
    ".type lockstep_thread,@object",
    ".size lockstep_thread, 8",
    "lockstep_thread:",
    ".zero 8",
    ".text",
);

/// From the return address of a routine to the parts of the stub (see [`lockstep_format::plan`]).
mod from {
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

const CURSOR: usize = offset_of!(Thread, hot) + offset_of!(Hot, cursor);
const LIMIT: usize = offset_of!(Thread, hot) + offset_of!(Hot, limit);
const BUSY: usize = offset_of!(Thread, hot) + offset_of!(Hot, busy);
const TOP: usize = offset_of!(Thread, top);
const LOSS: usize = offset_of!(Thread, loss);
const STACK_END: usize = offset_of!(Thread, stack_end);
const AT_WORK: usize = offset_of!(Thread, at_work);
const INTERRUPTED: usize = offset_of!(Thread, interrupted);

/// How far above its caller's frame a restored frame is taken on trust to be readable memory: no
/// unmapped page fits between.
const NEAR: usize = block::NEAR as usize;

// Entries of the shadow stack, seen from the pointer behind the top entry.
const ENTRY: usize = ENTRY_SIZE;
const _: () = assert!(ENTRY == 32 && STOPPED == u64::MAX);
// What inline code counts on.
const _: () = assert!(
    CURSOR == block::CURSOR as usize
        && LIMIT == block::LIMIT as usize
        && BUSY == block::BUSY as usize
        && TOP == block::TOP as usize
        && ENTRY == block::ENTRY as usize
        && offset_of!(Entry, return_address) == block::ENTRY_RETURN as usize
        && Entry::PLACES.0 == block::ENTRY_KEY as usize
        && Entry::PLACES.1 == 24
        && offset_of!(Entry, stub) == block::ENTRY_STUB as usize
);

/// Record a call and take its return address.
#[unsafe(naked)]
pub unsafe extern "C" fn enter() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 20f",
        "lea rdx, [rsp + 48]", // slot
        "cmp qword ptr [rax + {busy}], 0",
        "jne 10f",
        "mov qword ptr [rax + {busy}], rsp",
        "mov rcx, qword ptr [rax + {top}]",
        "cmp rdx, qword ptr [rcx - 24]",
        "jae 5f",
        "2:",
        "mov rdi, qword ptr [rax + {cursor}]",
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 19f",
        // The entry: return address, key, stub.
        "lea rsi, [rdx - 1]",
        "mov qword ptr [rcx + 8], rsi",
        "mov rsi, qword ptr [rsp + 40]",
        "sub rsi, {to_stub}",
        "mov qword ptr [rcx + 16], rsi",
        "mov rdx, qword ptr [rsp + 48]",
        "mov qword ptr [rcx], rdx",
        // The event: the low half of the return address, then the word that makes it valid.
        "mov esi, dword ptr [rsi]",
        "mov dword ptr [rdi + 4], edx",
        "mov dword ptr [rdi], esi",
        "add rdi, 8",
        "add rcx, {entry}",
        "mov qword ptr [rax + {cursor}], rdi",
        "mov qword ptr [rax + {top}], rcx",
        "4:",
        "mov qword ptr [rax + {busy}], 0",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
        // Not below the top frame, or that is questioned. In the same slot: the top frame jumped here if
        // our own hook lies there, or if it said so. It ends with this call; nothing is pushed.
        "5:",
        "mov rsi, qword ptr [rcx - 24]",
        "test rsi, rsi",
        "jz 7f",
        "lea rdi, [rdx - 1]",
        "cmp rsi, rdi",
        "je 6f",
        "cmp rsi, rdx",
        "jne 19f",
        "test byte ptr [rcx - 16], {handed_over}",
        "jz 19f",
        "mov rsi, qword ptr [rcx - 32]",
        "cmp rsi, qword ptr [rdx]",
        "jne 19f",
        "jmp 8f",
        "6:",
        "mov rsi, qword ptr [rcx - 16]",
        "add rsi, {hook}",
        "cmp rsi, qword ptr [rdx]",
        "jne 19f",
        "8:",
        "mov rdi, qword ptr [rax + {cursor}]",
        "lea rsi, [rdi + 16]",
        "cmp rsi, qword ptr [rax + {limit}]",
        "ja 19f",
        "dec rdx",
        "mov qword ptr [rcx - 24], rdx",
        "mov rsi, qword ptr [rsp + 40]",
        "sub rsi, {to_stub}",
        "mov qword ptr [rcx - 16], rsi",
        "mov esi, dword ptr [rsi]",
        // The second word first: a reader stops at a zero, so both appear at once.
        "mov qword ptr [rdi + 8], rsi",
        "mov qword ptr [rdi], {tail}",
        "add rdi, 16",
        "mov qword ptr [rax + {cursor}], rdi",
        "jmp 4b",
        // The top frame returns without us, being restored: alive as long as its return address
        // still stands in its slot.
        "7:",
        "mov rsi, qword ptr [rcx - 8]",
        "mov rdi, rsi",
        "sub rdi, rdx",
        "jz 19f",
        "cmp rdi, {near}",
        "ja 19f",
        "mov rsi, qword ptr [rsi]",
        "cmp rsi, qword ptr [rcx - 32]",
        "je 2b",
        "jmp 19f",
        // Something below us was interrupted, or recording stopped: a plain jump to the body.
        "10:",
        "cmp rdx, qword ptr [rax + {busy}]",
        "jae 20f",
        "mov rcx, qword ptr [rax + {loss}]",
        "lock inc qword ptr [rcx]",
        "add qword ptr [rsp + 40], {to_body}",
        "jmp 21f",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "20:",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "push {kind}",
        "jmp {slow}",
        "21:",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
        busy = const BUSY, top = const TOP,
        cursor = const CURSOR, limit = const LIMIT, loss = const LOSS,
        hook = const stub::HOOK, to_stub = const from::ENTRY, to_body = const from::ENTRY_TO_BODY,
        handed_over = const block::HANDED_OVER,
        entry = const ENTRY, near = const NEAR, tail = const event_word(TAIL, false) as i32,
        kind = const routine::ENTER, slow = sym slow,
    )
}

/// Record the return and put the return address back.
#[unsafe(naked)]
pub unsafe extern "C" fn exit() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rdi",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 20f",
        "cmp qword ptr [rax + {busy}], 0",
        "jne 20f",
        "mov qword ptr [rax + {busy}], rsp",
        "mov rcx, qword ptr [rax + {top}]",
        "lea rdx, [rsp + 39]", // the key of a frame with a hook: slot - 1
        "cmp rdx, qword ptr [rcx - 24]",
        "jne 19f",
        "mov rdi, qword ptr [rax + {cursor}]",
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 19f",
        "mov rdx, qword ptr [rcx - 32]",
        "mov qword ptr [rsp + 40], rdx",
        "mov qword ptr [rdi], {word}",
        "add rdi, 8",
        "sub rcx, {entry}",
        "mov qword ptr [rax + {cursor}], rdi",
        "mov qword ptr [rax + {top}], rcx",
        "mov qword ptr [rax + {busy}], 0",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "20:",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "push {kind}",
        "jmp {slow}",
        busy = const BUSY, top = const TOP, cursor = const CURSOR,
        limit = const LIMIT, entry = const ENTRY, word = const event_word(RETURN, false) as i32,
        kind = const routine::EXIT, slow = sym slow,
    )
}

/// Record a call and its return at once.
#[unsafe(naked)]
pub unsafe extern "C" fn instant() {
    naked_asm!(
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 20f",
        "lea rdx, [rsp + 48]", // slot
        "cmp qword ptr [rax + {busy}], 0",
        "jne 20f",
        "mov qword ptr [rax + {busy}], rsp",
        "mov rcx, qword ptr [rax + {top}]",
        "cmp rdx, qword ptr [rcx - 24]",
        "jb 2f",
        // A frame that is questioned: see `enter`.
        "cmp qword ptr [rcx - 24], 0",
        "jne 19f",
        "mov rsi, qword ptr [rcx - 8]",
        "mov rdi, rsi",
        "sub rdi, rdx",
        "jz 19f",
        "cmp rdi, {near}",
        "ja 19f",
        "mov rsi, qword ptr [rsi]",
        "cmp rsi, qword ptr [rcx - 32]",
        "jne 19f",
        "2:",
        "mov rdi, qword ptr [rax + {cursor}]",
        "lea rsi, [rdi + 16]",
        "cmp rsi, qword ptr [rax + {limit}]",
        "ja 19f",
        "mov rsi, qword ptr [rsp + 40]",
        "mov esi, dword ptr [rsi - {to_stub}]",
        // The second word first, as for tail calls.
        "mov qword ptr [rdi + 8], {word}",
        "mov qword ptr [rdi], rsi",
        "add rdi, 16",
        "mov qword ptr [rax + {cursor}], rdi",
        "mov qword ptr [rax + {busy}], 0",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "ret",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "20:",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "push {kind}",
        "jmp {slow}",
        busy = const BUSY, top = const TOP, cursor = const CURSOR,
        limit = const LIMIT, near = const NEAR, word = const event_word(RETURN, false) as i32,
        to_stub = const from::ENTRY, kind = const routine::INSTANT, slow = sym slow,
    )
}

/// A routine that always takes the slow path.
macro_rules! slow_routine {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!("push {kind}", "jmp {slow}", kind = const $kind, slow = sym slow)
        }
    };
}

slow_routine!(
    /// Record a call that stays open, restore all return addresses.
    jump, routine::JUMP
);
slow_routine!(
    /// As `instant`; the child is silent.
    vfork, routine::VFORK
);
slow_routine!(
    /// MPI is being initialised.
    mpi, routine::MPI
);
slow_routine!(
    /// The process ends.
    end, routine::END
);
slow_routine!(
    /// A child may come to run in this memory.
    suspend, routine::SUSPEND
);
slow_routine!(
    /// A signal's handler may be about to be set.
    signals, routine::SIGNALS
);
slow_routine!(
    /// Looks whether a library function is a leaf.
    bind, routine::BIND
);
slow_routine!(
    /// The dynamic linker's list of images has changed.
    loaded, routine::LOADED
);
/// The slow way of an entry with inline code. A thread that records nothing any more (its file cannot
/// grow) comes here with every call: that is counted, and no more.
macro_rules! slow_entry {
    ($(#[$doc:meta])* $name:ident, $kind:expr) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                "push rax",
                "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
                "mov rax, qword ptr fs:[rax]",
                "test rax, rax",
                "jz 2f",
                "cmp qword ptr [rax + {busy}], -1",
                "jne 2f",
                "mov rax, qword ptr [rax + {loss}]",
                "lock inc qword ptr [rax]",
                "pop rax",
                "ret",
                "2:",
                "pop rax",
                "push {kind}",
                "jmp {slow}",
                busy = const BUSY, loss = const LOSS, kind = const $kind, slow = sym slow,
            )
        }
    };
}

slow_entry!(
    /// The slow way of an entry with patched returns.
    open, routine::OPEN
);
slow_entry!(
    /// The slow way of a leaf's entry.
    leaf, routine::LEAF
);
slow_routine!(
    /// The slow way of a patched `ret`.
    ret, routine::RETURN
);
slow_routine!(
    /// The slow way of a patched tail jump.
    hand_over, routine::HAND_OVER
);

/// Distance of the thread-local pointer from the thread pointer, the same in every thread.
#[unsafe(naked)]
pub extern "C" fn thread_offset() -> i64 {
    naked_asm!("mov rax, qword ptr [rip + lockstep_thread@gottpoff]", "ret",)
}

/// The block of the thread that is at work, or null.
#[unsafe(naked)]
pub extern "C" fn thread() -> *mut Thread {
    naked_asm!(
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "ret",
    )
}

/// Gives the thread that is at work a block.
#[unsafe(naked)]
pub extern "C" fn set_thread(block: *mut Thread) {
    naked_asm!(
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov qword ptr fs:[rax], rdi",
        "ret",
    )
}

/// Restore all return addresses. A thread without a block has none to restore.
#[unsafe(naked)]
pub unsafe extern "C" fn restore() {
    naked_asm!(
        "push rax",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "cmp qword ptr fs:[rax], 0",
        "pop rax",
        "je 2f",
        "push {kind}",
        "jmp {slow}",
        "2:",
        "ret",
        kind = const routine::RESTORE, slow = sym slow,
    )
}

/// Number of the pseudo routine by which the destructor enters the slow path.
pub const FINISH: u64 = routine::COUNT as u64;

/// Number of the pseudo routine that takes the place of ENTER where return addresses stay.
pub const ENTER_PLAIN: u64 = routine::COUNT as u64 + 1;

slow_routine!(
    /// As ENTER, but the return address stays: the return is seen at the thread's next event.
    enter_plain, ENTER_PLAIN
);

/// The destructor: a slow routine whose "slot" is its own return address.
#[unsafe(naked)]
pub unsafe extern "C" fn finish() {
    naked_asm!(
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "cmp qword ptr fs:[rax], 0",
        "je 2f",
        "call 3f",
        "2:",
        "ret",
        "3:",
        "push {kind}",
        "jmp {slow}",
        kind = const FINISH, slow = sym slow,
    )
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
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r8",
        "push r9",
        "push r10",
        "push r11",
        "push rbx",
        "push rbp",
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
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "movaps [rsp + 128], xmm8",
        "movaps [rsp + 144], xmm9",
        "movaps [rsp + 160], xmm10",
        "movaps [rsp + 176], xmm11",
        "movaps [rsp + 192], xmm12",
        "movaps [rsp + 208], xmm13",
        "movaps [rsp + 224], xmm14",
        "movaps [rsp + 240], xmm15",
        "mov rdi, rbp",
        "mov rsi, rbx",
        "call {event}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "movaps xmm8, [rsp + 128]",
        "movaps xmm9, [rsp + 144]",
        "movaps xmm10, [rsp + 160]",
        "movaps xmm11, [rsp + 176]",
        "movaps xmm12, [rsp + 192]",
        "movaps xmm13, [rsp + 208]",
        "movaps xmm14, [rsp + 224]",
        "movaps xmm15, [rsp + 240]",
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
        "4:",
        "add rsp, 16",
        "pop rbp",
        "pop rbx",
        "pop r11",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
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
        "movaps [rsp], xmm0",
        "movaps [rsp + 16], xmm1",
        "movaps [rsp + 32], xmm2",
        "movaps [rsp + 48], xmm3",
        "movaps [rsp + 64], xmm4",
        "movaps [rsp + 80], xmm5",
        "movaps [rsp + 96], xmm6",
        "movaps [rsp + 112], xmm7",
        "movaps [rsp + 128], xmm8",
        "movaps [rsp + 144], xmm9",
        "movaps [rsp + 160], xmm10",
        "movaps [rsp + 176], xmm11",
        "movaps [rsp + 192], xmm12",
        "movaps [rsp + 208], xmm13",
        "movaps [rsp + 224], xmm14",
        "movaps [rsp + 240], xmm15",
        "mov rdi, rbp",
        "mov rsi, rbx",
        "call {nested}",
        "movaps xmm0, [rsp]",
        "movaps xmm1, [rsp + 16]",
        "movaps xmm2, [rsp + 32]",
        "movaps xmm3, [rsp + 48]",
        "movaps xmm4, [rsp + 64]",
        "movaps xmm5, [rsp + 80]",
        "movaps xmm6, [rsp + 96]",
        "movaps xmm7, [rsp + 112]",
        "movaps xmm8, [rsp + 128]",
        "movaps xmm9, [rsp + 144]",
        "movaps xmm10, [rsp + 160]",
        "movaps xmm11, [rsp + 176]",
        "movaps xmm12, [rsp + 192]",
        "movaps xmm13, [rsp + 208]",
        "movaps xmm14, [rsp + 224]",
        "movaps xmm15, [rsp + 240]",
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
