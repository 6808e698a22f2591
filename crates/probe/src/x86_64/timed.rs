//! The routines that read the time of a call that may wait (`lockstep_format::plan`, "Times"). They touch no vector
//! register, since any library function may be called, and call no Rust unless there is no room for a stamp.
//!
//! ```text
//!  rsp ->  4 or 5 registers     pushed here
//!          S + 46 or S + 36     the stub's own return address
//!  slot -> the hook             of the call
//! ```
//! *Costs*: two readings of the time stamp counter a call, and about 5 ns.

use super::routines::{BUSY, exit};
use super::slow::slow;
use crate::thread::{Hot, Thread};
use core::arch::naked_asm;
use core::mem::offset_of;
use lockstep_format::plan::{SHORT, routine, stub};
use lockstep_format::process::stamp;
use lockstep_format::side::point;

const CURSOR: usize = offset_of!(Thread, hot) + offset_of!(Hot, cursor);
const ATTACHED: usize = offset_of!(Thread, hot) + offset_of!(Hot, attached);
const TOP: usize = offset_of!(Thread, top);
const STAMP: usize = offset_of!(Thread, stamp);
const STAMPS_END: usize = offset_of!(Thread, stamps_end);
const BASE: usize = offset_of!(Thread, symbols_base);
const CREDIT: usize = offset_of!(Thread, credit);

// The last stamp, and what the code takes for granted about it.
const _: () = assert!(stamp::SIZE == 16 && stamp::TICKS == 0 && stamp::POINT == 8);
const _: () = assert!(point::BEFORE == point::AFTER + 1 && point::STAMP_BITS == 3);

/// Keeps the time at which a call that ENTER recorded begins. Return addresses may also be in place: then nobody sees its
/// return, and its beginning counts all the same.
#[unsafe(naked)]
pub unsafe extern "C" fn enter_timed() {
    naked_asm!(
        "push rax",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 3f",
        "cmp qword ptr [rax + {busy}], 0",
        "jne 3f",
        "cmp qword ptr [rax + {attached}], 0",
        "je 3f",
        "push rcx",
        "push rdx",
        "push rdi",
        "mov qword ptr [rax + {busy}], rsp",
        // The newest frame is this one, with a hook (its key is the slot less 1) or without.
        "mov rdx, qword ptr [rax + {top}]",
        "mov rdx, qword ptr [rdx - 24]",
        "lea rdi, [rsp + 39]",
        "sub rdx, rdi",
        "cmp rdx, 1",
        "ja 2f",
        // Room for its return as well: what makes room is then part of the call.
        "mov rcx, qword ptr [rax + {stamp}]",
        "lea rdx, [rcx + 16]",
        "cmp rdx, qword ptr [rax + {stamps_end}]",
        "jae 19f",
        "mov rdi, rax",
        "rdtsc",
        "shl rdx, 32",
        "or rdx, rax",
        "mov rax, qword ptr [rdi + {cursor}]",
        "add rax, qword ptr [rdi + {base}]",
        "or rax, {after}",
        "mov qword ptr [rcx], rdx",
        "mov qword ptr [rcx + 8], rax",
        "add rcx, 16",
        "mov qword ptr [rdi + {stamp}], rcx",
        "mov rax, rdi",
        "2:",
        "mov qword ptr [rax + {busy}], 0",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "3:",
        "pop rax",
        "ret",
        "19:",
        "mov qword ptr [rax + {busy}], 0",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "call 4f",
        "ret",
        // A slow routine whose slot holds our own return address: the call's is above it.
        "4:",
        "push {kind}",
        "jmp {slow}",
        busy = const BUSY, attached = const ATTACHED, top = const TOP, cursor = const CURSOR,
        stamp = const STAMP, stamps_end = const STAMPS_END, base = const BASE,
        after = const point::AFTER, kind = const routine::ENTER_TIMED, slow = sym slow,
    )
}

/// Keeps the time at which a call returns, or takes back that of its beginning if it was short; then as EXIT.
#[unsafe(naked)]
pub unsafe extern "C" fn exit_timed() {
    naked_asm!(
        "push rax",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 3f",
        "cmp qword ptr [rax + {busy}], 0",
        "jne 3f",
        "cmp qword ptr [rax + {attached}], 0",
        "je 3f",
        "push rcx",
        "push rdx",
        "push rdi",
        "push rsi",
        "mov qword ptr [rax + {busy}], rsp",
        "mov rdi, rax",
        "lea rdx, [rsp + 47]", // the key of a frame with a hook: slot - 1
        "mov rcx, qword ptr [rdi + {top}]",
        "cmp rdx, qword ptr [rcx - 24]",
        "jne 2f",
        "mov rcx, qword ptr [rdi + {stamp}]",
        "cmp rcx, qword ptr [rdi + {stamps_end}]",
        "jae 19f",
        "rdtsc",
        "shl rdx, 32",
        "or rdx, rax",
        "mov rax, qword ptr [rdi + {cursor}]",
        "add rax, qword ptr [rdi + {base}]",
        "or rax, {after}",
        // Nothing came between: the last stamp is that of this call's beginning. (Before the first lies no stamp, and no
        // return address is so small a number.)
        "cmp rax, qword ptr [rcx - 8]",
        "jne 5f",
        "mov rsi, rdx",
        "sub rsi, qword ptr [rcx - 16]",
        "cmp rsi, {short}",
        "jae 5f",
        "mov rsi, qword ptr [rsp + 40]",
        "cmp dword ptr [rsi - {to_waits}], 0",
        "je 6f",
        "cmp qword ptr [rdi + {credit}], 0",
        "je 6f",
        "dec qword ptr [rdi + {credit}]",
        "5:",
        "inc rax",
        "mov qword ptr [rcx], rdx",
        "mov qword ptr [rcx + 8], rax",
        "add rcx, 16",
        "mov qword ptr [rdi + {stamp}], rcx",
        "2:",
        "mov qword ptr [rdi + {busy}], 0",
        "pop rsi",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "3:",
        "pop rax",
        "jmp {exit}",
        "6:",
        "mov qword ptr [rcx - 8], 0",
        "sub rcx, 16",
        "mov qword ptr [rdi + {stamp}], rcx",
        "jmp 2b",
        "19:",
        "mov qword ptr [rdi + {busy}], 0",
        "pop rsi",
        "pop rdi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "call 4f",
        "jmp {exit}",
        "4:",
        "push {kind}",
        "jmp {slow}",
        busy = const BUSY, attached = const ATTACHED, top = const TOP, cursor = const CURSOR,
        stamp = const STAMP, stamps_end = const STAMPS_END, base = const BASE, credit = const CREDIT,
        after = const point::AFTER, short = const SHORT, to_waits = const 36 - stub::WAITS,
        kind = const routine::EXIT_TIMED, slow = sym slow, exit = sym exit,
    )
}
