//! Where inline code cannot go on: the routines of patched functions.
//!
//! Most come here since the newest frame is one whose return nobody sees, and is over ([`super::pending`]); or since it is questioned,
//! and there. Both are recorded in place. So is nothing, but counted, in a thread that records no more: its file cannot grow.

use super::pending::{settle, settle_return};
use super::routines::{BUSY, CURSOR, ENTRY, LIMIT, LOSS, TOP};
use super::slow::{from, slow};
use core::arch::naked_asm;
use lockstep_format::plan::{block, routine};
use lockstep_format::symbol::{RETURN, TAIL, event_word};

/// One event: `$settle` brings the stack of frames to where it belongs, and `$record` records, with the event's place in rdi, the thread
/// in rax, the stub in rsi, the place behind the newest entry in rcx, and the slot in rdx. `$other` is where a call goes in the
/// newest frame's own slot.
macro_rules! beside_inline {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $other:literal, $settle:expr, [$($record:literal),*], $($constants:tt)*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                thread_or!("3f"),
                "cmp qword ptr [rax + {busy}], -1",
                "je 2f",
                push!(rcx rdx rsi rdi),
                "lea rdx, [rsp + 48]", // slot
                // Busy with this very event, or with nothing.
                "mov rcx, qword ptr [rax + {busy}]",
                "test rcx, rcx",
                "jz 4f",
                "cmp rcx, rdx",
                "jne 18f",
                "4:",
                "mov qword ptr [rax + {busy}], rsp",
                "mov rcx, qword ptr [rax + {top}]",
                "cmp rdx, qword ptr [rcx - 24]",
                concat!("je ", $other),
                "call {settle}",
                "jc 19f",
                "6:",
                "mov rdi, qword ptr [rax + {cursor}]",
                "mov rsi, qword ptr [rsp + 40]",
                $($record,)*
                "7:",
                "mov qword ptr [rax + {busy}], 0",
                pop!(rdi rsi rdx rcx rax),
                "ret",
                "2:",
                "mov rax, qword ptr [rax + {loss}]",
                "lock inc qword ptr [rax]",
                "pop rax",
                "ret",
                "19:",
                "mov qword ptr [rax + {busy}], 0",
                "18:",
                pop!(rdi rsi rdx rcx),
                "3:",
                "pop rax",
                "push {kind}",
                "jmp {slow}",
                busy = const BUSY, top = const TOP, cursor = const CURSOR, loss = const LOSS,
                settle = sym $settle, kind = const $kind, slow = sym slow, $($constants)*
            )
        }
    };
}

beside_inline!(
    /// The slow way of an entry with patched returns.
    open,
    routine::OPEN,
    "5f",
    settle,
    [
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 19f",
        "sub rsi, {to_stub}",
        // The entry: return address, key, stub.
        "mov qword ptr [rcx + 8], rdx",
        "mov rdx, qword ptr [rdx]",
        "mov qword ptr [rcx], rdx",
        "mov dword ptr [rdi + 4], edx",
        "lea rdx, [rsi + {plain}]",
        "mov qword ptr [rcx + 16], rdx",
        "add rcx, {entry}",
        "mov qword ptr [rax + {top}], rcx",
        // The event: the low half of the return address, then the word that makes it valid.
        "mov esi, dword ptr [rsi]",
        "mov dword ptr [rdi], esi",
        "add rdi, 8",
        "mov qword ptr [rax + {cursor}], rdi",
        "jmp 7f",
        // The newest frame jumped here, if it said so, and its return address is its own.
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
        "mov rsi, qword ptr [rsp + 40]",
        "sub rsi, {to_stub}",
        "lea rdx, [rsi + {plain}]",
        "mov qword ptr [rcx - 16], rdx",
        "mov esi, dword ptr [rsi]",
        // The second word first: a reader stops at a zero, so both appear at once.
        "mov qword ptr [rdi + 8], rsi",
        "mov qword ptr [rdi], {tail}",
        "add rdi, 16",
        "mov qword ptr [rax + {cursor}], rdi"
    ],
    limit = const LIMIT, to_stub = const from::OPEN, plain = const block::PLAIN, entry = const ENTRY,
    handed_over = const block::HANDED_OVER, tail = const event_word(TAIL, false) as i32,
);
beside_inline!(
    /// The slow way of a leaf's entry.
    leaf,
    routine::LEAF,
    "19f",
    settle,
    [
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 19f",
        "movsxd rsi, dword ptr [rsi - {to_stub}]",
        "mov qword ptr [rdi], rsi",
        "add rdi, 8",
        "mov qword ptr [rax + {cursor}], rdi"
    ],
    limit = const LIMIT, to_stub = const from::OPEN,
);
beside_inline!(
    /// The slow way of a patched `ret`.
    ret,
    routine::RETURN,
    "6f",
    settle_return,
    [
        "cmp rdi, qword ptr [rax + {limit}]",
        "jae 19f",
        "mov qword ptr [rdi], {word}",
        "add rdi, 8",
        "mov qword ptr [rax + {cursor}], rdi",
        "sub qword ptr [rax + {top}], {entry}"
    ],
    limit = const LIMIT, word = const event_word(RETURN, false) as i32, entry = const ENTRY,
);
beside_inline!(
    /// The slow way of a patched tail jump.
    hand_over,
    routine::HAND_OVER,
    "6f",
    settle_return,
    ["or byte ptr [rcx - 16], {handed_over}"],
    handed_over = const block::HANDED_OVER,
);
