//! Where the kernel enters a signal's handler, and where that returns to.

use crate::handlers::{begin, end};
use core::arch::{global_asm, naked_asm};

/// Entered by the kernel in the place of the program's handler, and goes on there, the stack being as the kernel left it.
///
/// ```text
///  rsp -> restorer      rdi signal, rsi siginfo, rdx ucontext
///         ucontext      (rsp + 8)
/// ```
#[unsafe(naked)]
pub unsafe extern "C" fn dispatch() {
    naked_asm!(
        "cld",
        push!(rdi rsi rdx),
        "call {begin}",
        "mov rcx, rax",
        "xor eax, eax",
        pop!(rdx rsi rdi),
        "jmp rcx",
        begin = sym begin,
    )
}

// Handlers return here, as they otherwise do to libc's `__restore_rt`. Whoever unwinds finds all registers in the kernel's
// frame, which begins at the stack pointer, and is told that it is one (`S`): as there, a byte before belongs to it.
global_asm!(
    ".text",
    ".cfi_startproc",
    ".cfi_signal_frame",
    // DW_CFA_def_cfa_expression: the word at rsp + 160.
    ".cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06",
    // DW_CFA_expression: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip from rsp + 40 on, a word each.
    ".cfi_escape 0x10, 8, 3, 0x77, 0xa8, 0x00",
    ".cfi_escape 0x10, 9, 3, 0x77, 0xb0, 0x00",
    ".cfi_escape 0x10, 10, 3, 0x77, 0xb8, 0x00",
    ".cfi_escape 0x10, 11, 3, 0x77, 0xc0, 0x00",
    ".cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0x00",
    ".cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0x00",
    ".cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0x00",
    ".cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0x00",
    ".cfi_escape 0x10, 5, 3, 0x77, 0xe8, 0x00",
    ".cfi_escape 0x10, 4, 3, 0x77, 0xf0, 0x00",
    ".cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00",
    ".cfi_escape 0x10, 3, 3, 0x77, 0x80, 0x01",
    ".cfi_escape 0x10, 1, 3, 0x77, 0x88, 0x01",
    ".cfi_escape 0x10, 0, 3, 0x77, 0x90, 0x01",
    ".cfi_escape 0x10, 2, 3, 0x77, 0x98, 0x01",
    ".cfi_escape 0x10, 7, 3, 0x77, 0xa0, 0x01",
    ".cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01",
    "nop",
    ".hidden lockstep_restorer",
    ".globl lockstep_restorer",
    ".type lockstep_restorer,@function",
    "lockstep_restorer:",
    "cld",
    "mov rdi, rsp",
    "call {end}",
    "mov eax, 15", // rt_sigreturn
    "syscall",
    "ud2",
    ".cfi_endproc",
    end = sym end,
);

unsafe extern "C" {
    fn lockstep_restorer();
}

/// The address to which handlers return.
pub fn restorer() -> u64 {
    lockstep_restorer as *const () as u64
}

/// Returns to who called the function at whose entry a routine did its work.
#[unsafe(naked)]
pub unsafe extern "C" fn done() {
    naked_asm!("ret")
}
