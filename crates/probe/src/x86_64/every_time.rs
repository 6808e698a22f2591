//! The event path where every event is measured (`record --times all`). The inline code of stubs never records then, since
//! [`Hot::limit`] is null: it calls these routines instead, which record in place and read the time last.
//!
//! What is out of the ordinary takes the slow path, as with the routines of [`super::routines`]: no room for an event or a stamp,
//! a frame that is not the one expected, a child of `fork` or `vfork`.
//!
//! *Costs*: little more than to read the time stamp counter, for a call and its return twice.

use super::routines::{BUSY, CURSOR, ENTRY, TOP};
use super::slow::{from, slow};
use super::timed::{ATTACHED, BASE, END, STAMP, STAMPS_END};
use crate::thread::Thread;
use core::arch::naked_asm;
use core::mem::offset_of;
use lockstep_format::plan::{block, routine};
use lockstep_format::side::point;
use lockstep_format::symbol::{RETURN, event_word};

const SUSPENDED: usize = offset_of!(Thread, suspended);

/// One event: with the thread in rsi, the place behind the top entry in rcx, the slot in rdi and the event's place in rdx, `$check`
/// goes to 19 if the frame is not the one expected, and `$record` stores the event. Both may change rax.
macro_rules! measured {
    ($(#[$doc:meta])* $name:ident, $kind:expr, [$($check:literal),*], [$($record:literal),*], $($constants:tt)*) => {
        $(#[$doc])*
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            naked_asm!(
                thread_or!("3f"),
                push!(rcx rdx rsi rdi),
                "mov rsi, rax",
                "lea rdi, [rsp + 48]", // slot
                // Busy with this very event, or with nothing.
                "mov rcx, qword ptr [rsi + {busy}]",
                "test rcx, rcx",
                "jz 4f",
                "cmp rcx, rdi",
                "jne 18f",
                "4:",
                "cmp qword ptr [rsi + {attached}], 0",
                "je 18f",
                "cmp byte ptr [rsi + {suspended}], 0",
                "jne 18f",
                "mov qword ptr [rsi + {busy}], rsp",
                "mov rcx, qword ptr [rsi + {top}]",
                $($check,)*
                "mov rdx, qword ptr [rsi + {cursor}]",
                "cmp rdx, qword ptr [rsi + {end}]",
                "jae 19f",
                "mov rax, qword ptr [rsi + {stamp}]",
                "cmp rax, qword ptr [rsi + {stamps_end}]",
                "jae 19f",
                $($record,)*
                "lea rcx, [rdx + 8]",
                "mov qword ptr [rsi + {cursor}], rcx",
                "add rcx, qword ptr [rsi + {base}]",
                "or rcx, {after}",
                "mov rdi, qword ptr [rsi + {stamp}]",
                "rdtsc",
                "shl rdx, 32",
                "or rax, rdx",
                "mov qword ptr [rdi], rax",
                "mov qword ptr [rdi + 8], rcx",
                "add rdi, 16",
                "mov qword ptr [rsi + {stamp}], rdi",
                "mov qword ptr [rsi + {busy}], 0",
                pop!(rdi rsi rdx rcx rax),
                "ret",
                "19:",
                "mov qword ptr [rsi + {busy}], 0",
                "18:",
                pop!(rdi rsi rdx rcx),
                "3:",
                "pop rax",
                "push {kind}",
                "jmp {slow}",
                busy = const BUSY, attached = const ATTACHED, suspended = const SUSPENDED, top = const TOP,
                cursor = const CURSOR, end = const END, stamp = const STAMP, stamps_end = const STAMPS_END, base = const BASE,
                after = const point::AFTER, kind = const $kind, slow = sym slow, $($constants)*
            )
        }
    };
}

measured!(
    /// As ENTER.
    enter,
    routine::ENTER,
    ["cmp rdi, qword ptr [rcx - 24]", "jae 19f"],
    [
        "lea rax, [rdi - 1]",
        "mov qword ptr [rcx + 8], rax",
        "mov rdi, qword ptr [rdi]",
        "mov qword ptr [rcx], rdi",
        "mov dword ptr [rdx + 4], edi",
        "mov rax, qword ptr [rsp + 40]",
        "sub rax, {to_stub}",
        "mov qword ptr [rcx + 16], rax",
        "add rcx, {entry}",
        "mov qword ptr [rsi + {top}], rcx",
        "mov eax, dword ptr [rax]",
        "mov dword ptr [rdx], eax"
    ],
    entry = const ENTRY, to_stub = const from::ENTRY,
);
measured!(
    /// As EXIT.
    exit,
    routine::EXIT,
    ["lea rax, [rdi - 1]", "cmp rax, qword ptr [rcx - 24]", "jne 19f"],
    [
        "mov rax, qword ptr [rcx - 32]",
        "mov qword ptr [rdi], rax",
        "mov qword ptr [rdx], {word}",
        "sub rcx, {entry}",
        "mov qword ptr [rsi + {top}], rcx"
    ],
    entry = const ENTRY, word = const event_word(RETURN, false) as i32,
);
measured!(
    /// An entry with patched returns.
    open,
    routine::OPEN,
    ["cmp rdi, qword ptr [rcx - 24]", "jae 19f"],
    [
        "mov qword ptr [rcx + 8], rdi",
        "mov rdi, qword ptr [rdi]",
        "mov qword ptr [rcx], rdi",
        "mov dword ptr [rdx + 4], edi",
        "mov rax, qword ptr [rsp + 40]",
        "sub rax, {to_stub}",
        "lea rdi, [rax + {plain}]",
        "mov qword ptr [rcx + 16], rdi",
        "add rcx, {entry}",
        "mov qword ptr [rsi + {top}], rcx",
        "mov eax, dword ptr [rax]",
        "mov dword ptr [rdx], eax"
    ],
    entry = const ENTRY, plain = const block::PLAIN, to_stub = const from::OPEN,
);
measured!(
    /// A leaf's entry.
    leaf,
    routine::LEAF,
    ["cmp rdi, qword ptr [rcx - 24]", "jae 19f"],
    [
        "mov rax, qword ptr [rsp + 40]",
        "movsxd rax, dword ptr [rax - {to_stub}]",
        "mov qword ptr [rdx], rax"
    ],
    to_stub = const from::OPEN,
);
measured!(
    /// A patched `ret`.
    ret,
    routine::RETURN,
    ["cmp rdi, qword ptr [rcx - 24]", "jne 19f"],
    [
        "mov qword ptr [rdx], {word}",
        "sub rcx, {entry}",
        "mov qword ptr [rsi + {top}], rcx"
    ],
    entry = const ENTRY, word = const event_word(RETURN, false) as i32,
);
