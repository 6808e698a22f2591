//! The fast path of calls whose returns nobody sees ([`crate::pending`]), and of the events that find them over.
//!
//! What has to be looked up takes the slow path: which stack it is, what a library's stub says, what lies in another page than
//! the stack pointer. Entries are taken off one by one, each with its event, so that the slow path can go on anywhere.
//!
//! Between each other these routines pass the thread in rax, the place behind the newest entry in rcx, and the slot in rdx. They change
//! rsi and rdi, and set the carry flag where the slow path has to go on.
//!
//! *Costs*: about 2 ns for the call, and 3 for the event behind it.

use super::routines::{BUSY, CURSOR, ENTER_PLAIN, ENTRY, LIMIT, PAGE, TOP};
use super::slow::{from, slow};
use super::timed::BASE;
use crate::inferred::{Inferred, Window};
use crate::load::MAIN;
use crate::pending::HOOKS;
use crate::thread::Thread;
use core::arch::naked_asm;
use core::mem::offset_of;
use lockstep_format::plan::{block, routine, stub};
use lockstep_format::symbol::{RETURN, TAIL, event_word};

const MARK: usize = offset_of!(Thread, mark);
const OLDEST: usize = offset_of!(Thread, base);
const UNHOOKED: usize = offset_of!(Thread, unhooked);
const HOME: usize = offset_of!(Thread, home);
const SYMBOLS: usize = offset_of!(Thread, inferred) + offset_of!(Inferred, symbols);
const WINDOW: usize = offset_of!(Thread, inferred) + offset_of!(Inferred, window);

/// Flags of an entry.
const FLAGS: usize = stub::ALIGNMENT as usize - 1;
/// Those of a call that is pending.
const PENDING: u64 = block::PLAIN | block::JUMP | block::PENDING;
/// Gaps that two bytes can tell.
const MOST: usize = 1 << 14;

/// Takes the newest entry off, which is over, and tells of its return.
#[unsafe(naked)]
unsafe extern "C" fn over() {
    naked_asm!(
        "mov rdi, qword ptr [rax + {at}]",
        "cmp rdi, qword ptr [rax + {end}]",
        "jae 9f",
        "mov rdi, qword ptr [rax + {cursor}]",
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 9f",
        // How many symbols came since the last one that was told of.
        "mov rsi, rdi",
        "add rsi, qword ptr [rax + {base}]",
        "shr rsi, 3",
        "sub rsi, qword ptr [rax + {symbols}]",
        "cmp rsi, {most}",
        "jae 9f",
        "mov qword ptr [rdi], {word}",
        "add rdi, 8",
        "mov qword ptr [rax + {cursor}], rdi",
        "sub rcx, {entry}",
        "mov qword ptr [rax + {top}], rcx",
        "push r8",
        "add rdi, qword ptr [rax + {base}]",
        "shr rdi, 3",
        "mov qword ptr [rax + {next}], rdi",
        "mov r8, qword ptr [rax + {at}]",
        "cmp esi, 128",
        "jb 2f",
        "mov edi, esi",
        "or edi, 128",
        "mov byte ptr [r8], dil",
        "inc r8",
        "shr esi, 7",
        "2:",
        "mov byte ptr [r8], sil",
        "inc r8",
        "mov qword ptr [rax + {at}], r8",
        "mov rdi, qword ptr [rax + {next}]",
        "mov qword ptr [rax + {symbols}], rdi",
        "mov qword ptr [rax + {settled}], r8",
        "sub r8, qword ptr [rax + {origin}]",
        "mov rdi, qword ptr [rax + {stream_word}]",
        "mov qword ptr [rdi], r8",
        "pop r8",
        "clc",
        "ret",
        "9:",
        "stc",
        "ret",
        at = const WINDOW + offset_of!(Window, at),
        end = const WINDOW + offset_of!(Window, end),
        origin = const WINDOW + offset_of!(Window, origin),
        stream_word = const WINDOW + offset_of!(Window, word),
        next = const WINDOW + offset_of!(Window, next),
        settled = const WINDOW + offset_of!(Window, settled),
        symbols = const SYMBOLS, base = const BASE, most = const MOST,
        cursor = const CURSOR, limit = const LIMIT, top = const TOP, entry = const ENTRY,
        word = const event_word(RETURN, false) as i32,
    )
}

/// Whether the code that calls is that of the function whose entry's stub and flags are in rsi: carry then.
#[unsafe(naked)]
unsafe extern "C" fn owns() {
    naked_asm!(
        "test sil, {plain}",
        "jz 9f",
        "test sil, {not}",
        "jnz 9f",
        "and rsi, {start}",
        "mov rdi, rsi",
        "sub rdi, qword ptr [rip + {main}]",
        "cmp rdi, qword ptr [rip + {main} + 8]",
        "jae 9f",
        "movsxd rdi, dword ptr [rsi + {range}]",
        "lea rdi, [rdi + rsi + {range} + 4]",
        "sub rdi, qword ptr [rdx]",
        "neg rdi",
        "mov esi, dword ptr [rsi + {length}]",
        "cmp rdi, rsi",
        "ret",
        "9:",
        "clc",
        "ret",
        plain = const block::PLAIN, not = const block::THROUGH | block::HANDED_OVER,
        start = const !(FLAGS as i32), main = sym MAIN,
        range = const stub::RANGE, length = const stub::LENGTH,
    )
}

/// Takes off what is over when something is called at the slot. No carry: the newest frame that is left is there, and the slot lies
/// below its own.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn settle() {
    naked_asm!(
        "2:",
        "cmp rdx, qword ptr [rcx - 24]",
        "jb 8f",
        "cmp qword ptr [rcx - 24], 0",
        "jne 9f",
        "mov rsi, qword ptr [rcx - 16]",
        "test sil, {pending}",
        "jz 6f",
        "cmp rcx, qword ptr [rax + {mark}]",
        "je 7f",
        // The frame below may be pending, too: then it stands for all that is older, and it is enough that the newest lies below the
        // slot.
        "cmp qword ptr [rcx - 56], 0",
        "jne 4f",
        "test byte ptr [rcx - 48], {pending}",
        "jz 7f",
        "mov rdi, rdx",
        "sub rdi, qword ptr [rcx - 8]",
        "cmp rdi, {page}",
        "jb 5f",
        // Else the code that calls has to be that of the frame below, and not of one that calls itself.
        "4:",
        "mov rsi, qword ptr [rcx - 48]",
        "call {owns}",
        "jnc 7f",
        "cmp qword ptr [rcx - 8], rdx",
        "jbe 5f",
        "mov rsi, qword ptr [rcx - 16]",
        "call {owns}",
        "jc 7f",
        "5:",
        "call {over}",
        "jnc 2b",
        "ret",
        // The slow path may prove that it is there, so that nobody asks any more.
        "6:",
        "and esi, {flags}",
        "cmp esi, {plain}",
        "je 9f",
        // Whether its return address still stands in its slot: that is read here in the page of the stack pointer only.
        "7:",
        "mov rsi, qword ptr [rcx - 8]",
        "cmp rsi, rdx",
        "jbe 9f",
        "lea rdi, [rsi + 7]",
        "xor rdi, rdx",
        "cmp rdi, {page}",
        "jae 9f",
        "mov rsi, qword ptr [rsi]",
        "cmp rsi, qword ptr [rcx - 32]",
        "jne 9f",
        "8:",
        "clc",
        "ret",
        "9:",
        "stc",
        "ret",
        mark = const MARK, flags = const FLAGS, page = const PAGE,
        plain = const block::PLAIN, pending = const block::PENDING, owns = sym owns, over = sym over,
    )
}

/// Takes off what is over when the frame returns whose slot this is. No carry: it is the newest one then.
#[unsafe(naked)]
pub(super) unsafe extern "C" fn settle_return() {
    naked_asm!(
        "2:",
        "cmp rdx, qword ptr [rcx - 24]",
        "je 8f",
        "cmp qword ptr [rcx - 24], 0",
        "jne 9f",
        "test byte ptr [rcx - 16], {pending}",
        "jz 9f",
        "cmp rcx, qword ptr [rax + {mark}]",
        "je 9f",
        "cmp rdx, qword ptr [rcx - 56]",
        "je 5f",
        "cmp qword ptr [rcx - 56], 0",
        "jne 9f",
        "test byte ptr [rcx - 48], {pending}",
        "jz 9f",
        "mov rdi, rdx",
        "sub rdi, qword ptr [rcx - 8]",
        "cmp rdi, {page}",
        "jae 9f",
        "5:",
        "call {over}",
        "jnc 2b",
        "ret",
        "8:",
        "clc",
        "ret",
        "9:",
        "stc",
        "ret",
        mark = const MARK, pending = const block::PENDING, page = const PAGE, over = sym over,
    )
}

/// Records a call whose return nobody sees. `$then` is done in its own frame when it was recorded.
macro_rules! pending_call {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $flags:expr, [$($then:literal),*], $($constants:tt)*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                thread_or!("3f"),
                push!(rcx rdx rsi rdi),
                "lea rdx, [rsp + 48]", // slot
                "cmp qword ptr [rax + {busy}], 0",
                "jne 18f",
                "mov qword ptr [rax + {busy}], rsp",
                // Nothing has to be put back, and the slot and the oldest frame lie on one stack.
                "mov rsi, qword ptr [rip + {hooks}]",
                "cmp rsi, qword ptr [rax + {unhooked}]",
                "jne 19f",
                "mov rsi, qword ptr [rax + {home}]",
                "mov rdi, rdx",
                "sub rdi, rsi",
                "cmp rdi, qword ptr [rax + {home} + 8]",
                "jae 19f",
                "mov rdi, qword ptr [rax + {oldest}]",
                "cmp rdi, qword ptr [rax + {top}]",
                "je 19f",
                "mov rcx, qword ptr [rdi + 8]",
                "test rcx, rcx",
                "cmovz rcx, qword ptr [rdi + 24]",
                "sub rcx, rsi",
                "cmp rcx, qword ptr [rax + {home} + 8]",
                "jae 19f",
                "mov rcx, qword ptr [rax + {top}]",
                "cmp rdx, qword ptr [rcx - 24]",
                "je 5f",
                "call {settle}",
                "jc 19f",
                "mov rdi, qword ptr [rax + {cursor}]",
                "cmp rdi, qword ptr [rax + {limit}]",
                "jae 19f",
                "mov rsi, qword ptr [rsp + 40]",
                "sub rsi, {to_stub}",
                // The entry: questioned, its slot, return address, stub.
                "mov qword ptr [rcx + 8], 0",
                "mov qword ptr [rcx + 24], rdx",
                "mov rdx, qword ptr [rdx]",
                "mov qword ptr [rcx], rdx",
                "mov dword ptr [rdi + 4], edx",
                "lea rdx, [rsi + {pending}]",
                "mov qword ptr [rcx + 16], rdx",
                // The event: the low half of the return address, then the word that makes it valid.
                "mov esi, dword ptr [rsi]",
                "mov dword ptr [rdi], esi",
                "add rdi, 8",
                "add rcx, {entry}",
                "mov qword ptr [rax + {cursor}], rdi",
                "mov qword ptr [rax + {top}], rcx",
                "4:",
                "mov qword ptr [rax + {busy}], 0",
                $($then,)*
                pop!(rdi rsi rdx rcx rax),
                "ret",
                // In the slot of the newest frame: that jumped here, if it said so, and its return address is its own.
                "5:",
                "test byte ptr [rcx - 16], {handed_over}",
                "jz 19f",
                "mov rsi, qword ptr [rcx - 32]",
                "cmp rsi, qword ptr [rdx]",
                "jne 19f",
                "mov rdi, qword ptr [rax + {cursor}]",
                "lea rsi, [rdi + 16]",
                "cmp rsi, qword ptr [rax + {limit}]",
                "ja 19f",
                "mov qword ptr [rcx - 8], rdx",
                "mov rsi, qword ptr [rsp + 40]",
                "sub rsi, {to_stub}",
                "lea rdx, [rsi + {pending}]",
                "mov qword ptr [rcx - 16], rdx",
                "mov qword ptr [rcx - 24], 0",
                "mov esi, dword ptr [rsi]",
                // The second word first: a reader stops at a zero, so both appear at once.
                "mov qword ptr [rdi + 8], rsi",
                "mov qword ptr [rdi], {tail}",
                "add rdi, 16",
                "mov qword ptr [rax + {cursor}], rdi",
                "jmp 4b",
                "19:",
                "mov qword ptr [rax + {busy}], 0",
                "18:",
                pop!(rdi rsi rdx rcx),
                "3:",
                "pop rax",
                "push {kind}",
                "jmp {slow}",
                busy = const BUSY, top = const TOP, cursor = const CURSOR, limit = const LIMIT, oldest = const OLDEST,
                hooks = sym HOOKS, unhooked = const UNHOOKED, home = const HOME, entry = const ENTRY,
                pending = const PENDING | $flags, handed_over = const block::HANDED_OVER, to_stub = const from::ENTRY,
                tail = const event_word(TAIL, false) as i32, settle = sym settle,
                kind = const $kind, slow = sym slow, $($constants)*
            )
        }
    };
}

pending_call!(
    /// Record a call whose return nobody sees. Before the slow path records one, it restores all return addresses.
    jump,
    routine::JUMP,
    0,
    [],
);
pending_call!(
    /// As ENTER, but the return address stays: the return is seen at the thread's next event.
    enter_plain,
    ENTER_PLAIN,
    block::THROUGH,
    ["add qword ptr [rsp + 40], {to_body}"],
    to_body = const from::ENTRY_TO_BODY,
);
