//! Starting another program from inside the host without running any of the host's code.

use core::arch::naked_asm;

/// `clone(CLONE_VM | CLONE_VFORK)` with SIGCHLD as exit signal, then `execve` in the child: the
/// caller sleeps until the child has its own program, so that the two never run in the same memory
/// at once; the child uses `stack_end` nevertheless, as nothing of the caller's frames may change.
///
/// Returns the child's process id or a negative error; the child ends with 127 if `execve` fails.
///
/// # Safety
/// `path` and the null-terminated arrays must be valid C strings; `stack_end` the end of free
/// memory.
#[unsafe(naked)]
pub unsafe extern "C" fn spawn(
    path: *const u8,
    arguments: *const *const u8,
    environment: *const *const u8,
    stack_end: *mut u8,
) -> isize {
    naked_asm!(
        "push rbx",
        "push r12",
        "push r13",
        "mov rbx, rdi",
        "mov r12, rsi",
        "mov r13, rdx",
        "mov rsi, rcx",
        "mov edi, 0x4111", // CLONE_VM | CLONE_VFORK | SIGCHLD
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "mov eax, 56", // clone
        "syscall",
        "test rax, rax",
        "jnz 2f",
        "mov rdi, rbx",
        "mov rsi, r12",
        "mov rdx, r13",
        "mov eax, 59", // execve
        "syscall",
        "mov edi, 127",
        "mov eax, 231", // exit_group
        "syscall",
        "ud2",
        "2:",
        "pop r13",
        "pop r12",
        "pop rbx",
        "ret",
    )
}
