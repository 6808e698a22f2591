//! The routines that read the time of a call that may wait (`lockstep_format::plan`, "Times"). They touch no vector
//! register, since any library function may be called, and call no Rust unless there is no room.
//!
//! The program may read its own clock just before the call and just behind it. So what takes long is done between the two
//! readings: a batch that is nearly full is stored when the call has begun, which costs nothing if it waits; and the end is
//! read when its return has been recorded, since all that this touches has left the caches during a wait.
//!
//! ```text
//!  own clock ── ENTER ── begin ──╴nearly full: store╶── the call ── record the return ── end ── own clock
//! ```
//!
//! ```text
//!  rsp ->  4 or 5 registers     pushed here
//!          S + 46 or S + 36     the stub's own return address
//!  slot -> the hook             of the call
//! ```
//! *Costs*: two readings of the time stamp counter a call, and about 5 ns.

use super::routines::{BUSY, ENTRY, LIMIT, exit};
use super::slow::slow;
use crate::side::ROOM;
use crate::thread::{Hot, Thread};
use core::arch::naked_asm;
use core::mem::offset_of;
use lockstep_format::plan::{SHORT, routine, stub};
use lockstep_format::process::stamp;
use lockstep_format::side::point;
use lockstep_format::symbol::{RETURN, event_word};

const CURSOR: usize = offset_of!(Thread, hot) + offset_of!(Hot, cursor);
pub(super) const ATTACHED: usize = offset_of!(Thread, hot) + offset_of!(Hot, attached);
const TOP: usize = offset_of!(Thread, top);
pub(super) const STAMP: usize = offset_of!(Thread, stamp);
pub(super) const STAMPS_END: usize = offset_of!(Thread, stamps_end);
pub(super) const BASE: usize = offset_of!(Thread, symbols_base);
const CREDIT: usize = offset_of!(Thread, credit);
const BEGAN: usize = offset_of!(Thread, began);
pub(super) const END: usize = offset_of!(Thread, room);

// The last stamp, and what the code takes for granted about it.
const _: () = assert!(stamp::SIZE == 16 && stamp::TICKS == 0 && stamp::POINT == 8);
const _: () = assert!(point::BEFORE == point::AFTER + 1 && point::STAMP_BITS == 3);

/// Keeps the time at which a call that ENTER recorded begins. Return addresses may also be in place: then nobody sees its
/// return, and its beginning counts all the same.
#[unsafe(naked)]
pub unsafe extern "C" fn enter_timed() {
    naked_asm!(
        thread_or!("3f"),
        "cmp qword ptr [rax + {busy}], 0",
        "jne 3f",
        "cmp qword ptr [rax + {attached}], 0",
        "je 3f",
        push!(rcx rdx rdi),
        "mov rdi, rax",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov qword ptr [rdi + {began}], rax",
        "mov qword ptr [rdi + {busy}], rsp",
        // The newest frame is this one, with a hook (its key is the slot less 1) or without.
        "mov rdx, qword ptr [rdi + {top}]",
        "mov rdx, qword ptr [rdx - 24]",
        "lea rcx, [rsp + 39]",
        "sub rdx, rcx",
        "cmp rdx, 1",
        "ja 2f",
        // Room for its return as well, and for events behind it.
        "mov rdx, qword ptr [rdi + {cursor}]",
        "lea rcx, [rdx + {room}]",
        "cmp rcx, qword ptr [rdi + {end}]",
        "ja 19f",
        "mov rcx, qword ptr [rdi + {stamp}]",
        "add rcx, 16",
        "cmp rcx, qword ptr [rdi + {stamps_end}]",
        "jae 19f",
        "add rdx, qword ptr [rdi + {base}]",
        "or rdx, {after}",
        "mov qword ptr [rcx - 16], rax",
        "mov qword ptr [rcx - 8], rdx",
        "mov qword ptr [rdi + {stamp}], rcx",
        "2:",
        "mov qword ptr [rdi + {busy}], 0",
        pop!(rdi rdx rcx),
        "3:",
        "pop rax",
        "ret",
        "19:",
        "mov qword ptr [rdi + {busy}], 0",
        pop!(rdi rdx rcx),
        slow_below!("ret"),
        busy = const BUSY, attached = const ATTACHED, top = const TOP, cursor = const CURSOR,
        stamp = const STAMP, stamps_end = const STAMPS_END, base = const BASE,
        began = const BEGAN, room = const ROOM * 8, end = const END,
        after = const point::AFTER, kind = const routine::ENTER_TIMED, slow = sym slow,
    )
}

/// As EXIT, then keeps the time at which the call returns, or takes back that of its beginning if it was short.
#[unsafe(naked)]
pub unsafe extern "C" fn exit_timed() {
    naked_asm!(
        thread_or!("3f"),
        "cmp qword ptr [rax + {busy}], 0",
        "jne 3f",
        "cmp qword ptr [rax + {attached}], 0",
        "je 3f",
        push!(rcx rdx rdi rsi),
        "mov qword ptr [rax + {busy}], rsp",
        "mov rdi, rax",
        "lea rdx, [rsp + 47]", // the key of a frame with a hook: slot - 1
        "mov rcx, qword ptr [rdi + {top}]",
        "cmp rdx, qword ptr [rcx - 24]",
        "jne 2f",
        "mov rsi, qword ptr [rdi + {stamp}]",
        "cmp rsi, qword ptr [rdi + {stamps_end}]",
        "jae 19f",
        "mov rax, qword ptr [rdi + {cursor}]",
        "cmp rax, qword ptr [rdi + {limit}]",
        "jae 19f",
        "mov rdx, qword ptr [rcx - 32]",
        "mov qword ptr [rsp + 48], rdx",
        "mov qword ptr [rax], {word}",
        "sub rcx, {entry}",
        "mov qword ptr [rdi + {top}], rcx",
        "lea rcx, [rax + 8]",
        "mov qword ptr [rdi + {cursor}], rcx",
        "mov rcx, rax",
        "add rcx, qword ptr [rdi + {base}]",
        "or rcx, {after}",
        "rdtsc",
        "shl rdx, 32",
        "or rdx, rax",
        // Nothing came between: the last stamp is that of this call's beginning. (Before the first lies no stamp, and no
        // return address is so small a number.)
        "cmp rcx, qword ptr [rsi - 8]",
        "jne 5f",
        "mov rax, rdx",
        "sub rax, qword ptr [rsi - 16]",
        "cmp rax, {short}",
        "jae 5f",
        "mov rax, qword ptr [rsp + 40]",
        "cmp byte ptr [rax - {to_waits}], 0",
        "je 6f",
        "cmp qword ptr [rdi + {credit}], 0",
        "je 6f",
        "dec qword ptr [rdi + {credit}]",
        "5:",
        "inc rcx",
        "mov qword ptr [rsi], rdx",
        "mov qword ptr [rsi + 8], rcx",
        "add rsi, 16",
        "7:",
        "mov qword ptr [rdi + {stamp}], rsi",
        "mov qword ptr [rdi + {busy}], 0",
        pop!(rsi rdi rdx rcx rax),
        "ret",
        "6:",
        "mov qword ptr [rsi - 8], 0",
        "sub rsi, 16",
        "jmp 7b",
        "2:",
        "mov qword ptr [rdi + {busy}], 0",
        pop!(rsi rdi rdx rcx),
        "3:",
        "pop rax",
        "jmp {exit}",
        "19:",
        "mov qword ptr [rdi + {busy}], 0",
        pop!(rsi rdi rdx rcx),
        slow_below!("jmp {exit}"),
        busy = const BUSY, attached = const ATTACHED, top = const TOP, cursor = const CURSOR, limit = const LIMIT,
        stamp = const STAMP, stamps_end = const STAMPS_END, base = const BASE, credit = const CREDIT,
        after = const point::AFTER, short = const SHORT, to_waits = const 36 - stub::WAITS,
        entry = const ENTRY, word = const event_word(RETURN, false) as i32,
        kind = const routine::EXIT_TIMED, slow = sym slow, exit = sym exit,
    )
}
