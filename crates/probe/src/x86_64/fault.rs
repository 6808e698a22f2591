//! The routine FAULT, and what a thread does on the program's own stack when the fault happens.
//!
//! ```text
//!  slot ->  R         where the program's call returns to
//!           A         behind the call of FAULT: [`lockstep_format::fault::place`]
//!           end       (slow path) where the routine ends: `ret`, or one of the functions below
//! ```

use crate::thread::{Hot, Thread};
use crate::x86_64::routines::slow;
use core::arch::naked_asm;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::plan::routine;

const LEFT: usize = offset_of!(Thread, hot) + offset_of!(Hot, fault_left);
const ROW: usize = offset_of!(Thread, hot) + offset_of!(Hot, fault_row);

/// Counts a call; the slow path in a thread that nobody has looked at, and at the chosen call.
#[unsafe(naked)]
pub unsafe extern "C" fn fault() {
    naked_asm!(
        "push rax",
        "mov rax, qword ptr [rip + lockstep_thread@gottpoff]",
        "mov rax, qword ptr fs:[rax]",
        "test rax, rax",
        "jz 2f",
        "sub qword ptr [rax + {left}], 1",
        "jle 2f",
        "mov rax, qword ptr [rax + {row}]",
        "inc qword ptr [rax]",
        "pop rax",
        "ret",
        "2:",
        "pop rax",
        "call 3f",
        "ret",
        "3:",
        "push {kind}",
        "jmp {slow}",
        left = const LEFT, row = const ROW,
        kind = const routine::FAULT, slow = sym slow,
    )
}

/// Sleeps for ever, ten milliseconds at a time. Signals are handled as always.
#[unsafe(naked)]
pub unsafe extern "C" fn hang() {
    naked_asm!(
        "push 10000000",
        "push 0",
        "2:",
        "mov eax, 35", // nanosleep
        "mov rdi, rsp",
        "xor esi, esi",
        "syscall",
        "jmp 2b",
    )
}

/// Computes for ever.
#[unsafe(naked)]
pub unsafe extern "C" fn spin() {
    naked_asm!("2:", "pause", "jmp 2b")
}

/// Seconds and nanoseconds on the monotonic clock.
static DEADLINE: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// When [`delay`] goes on: one call of a process is delayed.
pub fn set_deadline(nanoseconds: u64) {
    let [seconds, rest] = &DEADLINE;
    seconds.store(nanoseconds / 1_000_000_000, Ordering::Relaxed);
    rest.store(nanoseconds % 1_000_000_000, Ordering::Relaxed);
}

/// Sleeps until the deadline, whatever signals are handled meanwhile, and goes on at A.
#[unsafe(naked)]
pub unsafe extern "C" fn delay() {
    naked_asm!(
        "pushfq",
        "push rax",
        "push rcx",
        "push rdx",
        "push rsi",
        "push rdi",
        "push r10",
        "push r11",
        "2:",
        "mov eax, 230", // clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)
        "mov edi, 1",
        "mov esi, 1",
        "lea rdx, [rip + {deadline}]",
        "xor r10d, r10d",
        "syscall",
        "cmp rax, -4", // EINTR
        "je 2b",
        "pop r11",
        "pop r10",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "popfq",
        "ret",
        deadline = sym DEADLINE,
    )
}

static RESULT: AtomicU64 = AtomicU64::new(0);

/// What [`skip`] returns to callers that expect a floating-point number.
pub fn set_result(float: u64) {
    RESULT.store(float, Ordering::Relaxed);
}

/// Returns to the program's caller.
#[unsafe(naked)]
pub unsafe extern "C" fn skip() {
    naked_asm!(
        "movq xmm0, qword ptr [rip + {result}]",
        "lea rsp, [rsp + 8]",
        "ret",
        result = sym RESULT,
    )
}
