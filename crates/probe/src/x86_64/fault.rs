//! The routine FAULT, and what a thread does on the program's own stack when the fault happens.
//!
//! ```text
//!  slot ->  R         where the program's call returns to
//!           A         behind the call of FAULT: [`lockstep_format::fault::place`]
//!           end       (slow path) where the routine ends: `ret`, or one of the functions below
//! ```

use crate::program;
use crate::thread::{Hot, NO_SLOT, Thread};
use crate::x86_64::slow::slow;
use core::arch::naked_asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering};
use lockstep_format::fault::place;
use lockstep_format::plan::routine;

const LEFT: usize = offset_of!(Thread, hot) + offset_of!(Hot, fault_left);
const SLOT: usize = offset_of!(Thread, hot) + offset_of!(Hot, fault_slot);
const ROW: usize = offset_of!(Thread, hot) + offset_of!(Hot, fault_row);

/// Counts a call; the slow path in a thread that nobody has looked at, and at the chosen call.
#[unsafe(naked)]
pub unsafe extern "C" fn fault() {
    naked_asm!(
        thread_or!("2f"),
        "sub qword ptr [rax + {left}], 1",
        "jle 2f",
        "mov rax, qword ptr [rax + {row}]",
        "inc qword ptr [rax]",
        "pop rax",
        "ret",
        "2:",
        slow_below!("ret"),
        left = const LEFT, row = const ROW,
        kind = const routine::FAULT, slow = sym slow,
    )
}

/// Goes on, unless this thread is new, or a call has been postponed in it.
#[unsafe(naked)]
pub unsafe extern "C" fn follow() {
    naked_asm!(
        thread_or!("3f"),
        "cmp qword ptr [rax + {slot}], {none}",
        "jne 3f",
        "pop rax",
        "ret",
        "3:",
        slow_below!("ret"),
        slot = const SLOT, none = const NO_SLOT, kind = const routine::FOLLOW, slow = sym slow,
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
        push!(rax rcx rdx rsi rdi r10 r11),
        "2:",
        "mov eax, 230", // clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)
        "mov edi, 1",
        "mov esi, 1",
        "lea rdx, [rip + {deadline}]",
        "xor r10d, r10d",
        "syscall",
        "cmp rax, -4", // EINTR
        "je 2b",
        pop!(r11 r10 rdi rsi rdx rcx rax),
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

/// How many words of arguments on the stack a postponed call keeps.
pub const STACK_WORDS: usize = 16;

/// A postponed call: one in a process.
#[repr(C)]
struct Call {
    /// rdi, rsi, rdx, rcx, r8, r9, rax, r10
    registers: [u64; 8],
    vectors: [u8; 128],
    stack: [u64; STACK_WORDS],
    /// Where it goes on.
    next: u64,
    /// What lies above the return address of the call that is made before it.
    first: [u64; STACK_WORDS],
}

/// Room for it.
#[repr(transparent)]
pub struct Postponed(UnsafeCell<Call>);

// SAFETY: written by the one thread in which the fault happens, and read by that thread later.
unsafe impl Sync for Postponed {}

/// The postponed call of this process.
pub static POSTPONED: Postponed = Postponed(UnsafeCell::new(Call {
    registers: [0; 8],
    vectors: [0; 128],
    stack: [0; STACK_WORDS],
    next: 0,
    first: [0; STACK_WORDS],
}));

impl Postponed {
    /// Keeps the call that came to `place` with its return address in `slot`.
    ///
    /// # Safety
    /// All of it must be there, and this be the thread in which the fault happens.
    pub unsafe fn keep(
        &self,
        registers: [u64; 8],
        vectors: *const [u8; 128],
        place: u64,
        slot: u64,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            *self.0.get() = Call {
                registers,
                vectors: vectors.read(),
                stack: program::words(slot + 8, slot),
                next: place + place::NEXT as u64,
                first: [0; STACK_WORDS],
            };
        }
    }

    /// Keeps what [`both`] passes to the call with its return address in `slot`, which is made first.
    ///
    /// # Safety
    /// This is the thread in which the fault happens.
    pub unsafe fn keep_first(&self, slot: u64) {
        // SAFETY: the caller's promise.
        unsafe { (*self.0.get()).first = program::words(slot + 8, slot) };
    }
}

/// Makes this call with copies of its arguments, then the postponed one; returns what this one did.
///
/// ```text
///  rbp+24   arguments on the stack, which were kept: there may be fewer
///  rbp+16   R         where the program's call returns to
///  rbp+8    A         behind the call of FOLLOW or FAULT
///  rbp      rbp
///  rbp-48   rax, rdx, xmm0, xmm1 of this call
///  rsp      arguments on the stack, copied: 16 words
/// ```
#[unsafe(naked)]
pub unsafe extern "C" fn both() {
    naked_asm!(
        // Exceptions of either call pass through here.
        ".cfi_startproc",
        ".cfi_def_cfa_offset 16",
        "push rbp",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset rbp, -24",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 184",
        // Registers that are no arguments: r11.
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
        "mov r11, qword ptr [rip + {postponed} + {first} + 8 * \\i]",
        "mov qword ptr [rsp + 8 * \\i], r11",
        ".endr",
        "mov r11, qword ptr [rbp + 8]",
        "add r11, {next}",
        "call r11",
        "mov qword ptr [rbp - 8], rax",
        "mov qword ptr [rbp - 16], rdx",
        "movups [rbp - 32], xmm0",
        "movups [rbp - 48], xmm1",
        "lea rax, [rip + {postponed}]",
        ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
        "mov r11, qword ptr [rax + {stack} + 8 * \\i]",
        "mov qword ptr [rsp + 8 * \\i], r11",
        ".endr",
        ".irp i, 0,1,2,3,4,5,6,7",
        "movups xmm\\i, [rax + {vectors} + 16 * \\i]",
        ".endr",
        "mov rdi, qword ptr [rax]",
        "mov rsi, qword ptr [rax + 8]",
        "mov rdx, qword ptr [rax + 16]",
        "mov rcx, qword ptr [rax + 24]",
        "mov r8, qword ptr [rax + 32]",
        "mov r9, qword ptr [rax + 40]",
        "mov r10, qword ptr [rax + 56]",
        "mov r11, qword ptr [rax + {target}]",
        "mov rax, qword ptr [rax + 48]",
        "call r11",
        "mov rax, qword ptr [rbp - 8]",
        "mov rdx, qword ptr [rbp - 16]",
        "movups xmm0, [rbp - 32]",
        "movups xmm1, [rbp - 48]",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 16",
        ".cfi_restore rbp",
        "lea rsp, [rsp + 8]",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        next = const place::NEXT,
        postponed = sym POSTPONED,
        stack = const offset_of!(Call, stack),
        first = const offset_of!(Call, first),
        vectors = const offset_of!(Call, vectors),
        target = const offset_of!(Call, next),
    )
}
