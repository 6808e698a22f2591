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

use super::slow::{from, slow};
use crate::entry::{ENTRY_SIZE, Entry};
use crate::thread::{Hot, STOPPED, Thread};
use core::arch::{global_asm, naked_asm};
use core::mem::offset_of;
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

pub(super) const CURSOR: usize = offset_of!(Thread, hot) + offset_of!(Hot, cursor);
pub(super) const LIMIT: usize = offset_of!(Thread, hot) + offset_of!(Hot, limit);
pub(super) const BUSY: usize = offset_of!(Thread, hot) + offset_of!(Hot, busy);
pub(super) const TOP: usize = offset_of!(Thread, top);
pub(super) const LOSS: usize = offset_of!(Thread, loss);

/// A restored frame is looked at in the page of the stack pointer: see [`crate::program`].
pub(super) const PAGE: usize = crate::program::PAGE as usize;

// Entries of the shadow stack, seen from the pointer behind the top entry.
pub(super) const ENTRY: usize = ENTRY_SIZE;
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
        push!(rax rcx rdx rsi rdi),
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
        pop!(rdi rsi rdx rcx rax),
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
        // still stands in its slot. That is read here in the page of the stack pointer only.
        "7:",
        "mov rsi, qword ptr [rcx - 8]",
        "cmp rsi, rdx",
        "jbe 19f",
        "lea rdi, [rsi + 7]",
        "xor rdi, rdx",
        "cmp rdi, {page}",
        "jae 19f",
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
        pop!(rdi rsi rdx rcx rax),
        "push {kind}",
        "jmp {slow}",
        "21:",
        pop!(rdi rsi rdx rcx rax),
        "ret",
        busy = const BUSY, top = const TOP,
        cursor = const CURSOR, limit = const LIMIT, loss = const LOSS,
        hook = const stub::HOOK, to_stub = const from::ENTRY, to_body = const from::ENTRY_TO_BODY,
        handed_over = const block::HANDED_OVER,
        entry = const ENTRY, page = const PAGE, tail = const event_word(TAIL, false) as i32,
        kind = const routine::ENTER, slow = sym slow,
    )
}

/// Record the return and put the return address back.
#[unsafe(naked)]
pub unsafe extern "C" fn exit() {
    naked_asm!(
        push!(rax rcx rdx rdi),
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
        pop!(rdi rdx rcx rax),
        "ret",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "20:",
        pop!(rdi rdx rcx rax),
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
        push!(rax rcx rdx rsi rdi),
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
        "cmp rsi, rdx",
        "jbe 19f",
        "lea rdi, [rsi + 7]",
        "xor rdi, rdx",
        "cmp rdi, {page}",
        "jae 19f",
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
        pop!(rdi rsi rdx rcx rax),
        "ret",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "20:",
        pop!(rdi rsi rdx rcx rax),
        "push {kind}",
        "jmp {slow}",
        busy = const BUSY, top = const TOP, cursor = const CURSOR,
        limit = const LIMIT, page = const PAGE, word = const event_word(RETURN, false) as i32,
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
    /// A program is about to be executed.
    exec, routine::EXEC
);
slow_routine!(
    /// Looks whether a library function is a leaf.
    bind, routine::BIND
);
slow_routine!(
    /// The dynamic linker's list of images has changed.
    loaded, routine::LOADED
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
