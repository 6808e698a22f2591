//! Starting another program from inside the host without running any of the host's code, and without
//! the host noticing.

use core::arch::naked_asm;

/// The program could not be executed.
pub const NOT_EXECUTED: u8 = 126;
/// A signal ended it, whose number is added.
pub const SIGNALLED: u8 = 128;

/// Runs a program and waits for its end.
///
/// A child that executes a program announces its end with SIGCHLD whatever was asked for, and the
/// host's handler or its `waitpid(-1)` would see that. So the child that the host has never executes
/// anything: it starts the program as a child of its own, waits for it and ends, with no signal at
/// all; only a wait that asks for such children finds it.
///
/// ```text
///  host ── clone(VM | VFORK | UNTRACED) ──► helper ── clone(VM | VFORK | SIGCHLD) ──► execve
///       ◄───────────── exit ────────────────       ◄───────────── exit ─────────────
/// ```
/// Each sleeps until the next has its own program or is gone, so that no two ever run in this memory
/// at once; they use `stack_end` nevertheless, as nothing of the host's frames may change.
///
/// A debugger that follows the host's children is not told of the helper (`CLONE_UNTRACED`).
///
/// The program inherits no descriptor: it has as many as the limit allows, and what its dynamic linker
/// complains of is not said in the host's name.
///
/// Returns the program's exit status, [`SIGNALLED`] and the signal's number, [`NOT_EXECUTED`], or a
/// negative error. Where the host ignores SIGCHLD nobody knows, and it is 0.
///
/// # Safety
/// `path` and the null-terminated arrays must be valid C strings; `stack_end` the end of 16 KiB of
/// free memory. Signals should be blocked.
#[unsafe(naked)]
pub unsafe extern "C" fn run(
    path: *const u8,
    arguments: *const *const u8,
    environment: *const *const u8,
    stack_end: *mut u8,
) -> isize {
    naked_asm!(
        push!(rbx r12 r13),
        "mov rbx, rdi",
        "mov r12, rsi",
        "mov r13, rdx",
        "mov rsi, rcx",
        "mov edi, 0x804100", // CLONE_VM | CLONE_VFORK | CLONE_UNTRACED, no signal
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "mov eax, 56", // clone
        "syscall",
        "test rax, rax",
        "js 9f",
        "jnz 7f",
        // The helper.
        "lea rsi, [rsp - 8192]",
        "mov edi, 0x4111", // CLONE_VM | CLONE_VFORK | SIGCHLD
        "xor edx, edx",
        "xor r10d, r10d",
        "xor r8d, r8d",
        "mov eax, 56",
        "syscall",
        "test rax, rax",
        "js 5f",
        "jnz 3f",
        // The program.
        "xor edi, edi",
        "mov esi, -1",
        "xor edx, edx",
        "mov eax, 436", // close_range
        "syscall",
        "test eax, eax",
        "jns 2f",
        // Kernels before 5.9 do not have it.
        "mov r8d, 65536",
        "12:",
        "dec r8d",
        "mov edi, r8d",
        "mov eax, 3", // close
        "syscall",
        "test r8d, r8d",
        "jnz 12b",
        "2:",
        "mov rdi, rbx",
        "mov rsi, r12",
        "mov rdx, r13",
        "mov eax, 59", // execve
        "syscall",
        "mov edi, {not_executed}",
        "mov eax, 231", // exit_group
        "syscall",
        "ud2",
        // The helper waits. Where the host ignores SIGCHLD this waits too, and then says that there is
        // no child.
        "3:",
        "mov rbx, rax",
        "push 0",
        "4:",
        "mov rdi, rbx",
        "mov rsi, rsp",
        "xor edx, edx",
        "xor r10d, r10d",
        "mov eax, 61", // wait4
        "syscall",
        "cmp eax, -4", // EINTR
        "je 4b",
        "pop rax",
        "movzx edi, ah",
        "and eax, 0x7f",
        "jz 6f",
        "lea edi, [rax + {signalled}]",
        "jmp 6f",
        "5:",
        "mov edi, {not_executed}",
        "6:",
        "mov eax, 60", // exit
        "syscall",
        "ud2",
        // The host.
        "7:",
        "mov rbx, rax",
        "push 0",
        "8:",
        "mov rdi, rbx",
        "mov rsi, rsp",
        "mov edx, 0x80000000", // __WCLONE
        "xor r10d, r10d",
        "mov eax, 61",
        "syscall",
        "cmp eax, -4",
        "je 8b",
        "pop rax",
        "movzx eax, ah",
        "9:",
        pop!(r13 r12 rbx),
        "ret",
        not_executed = const NOT_EXECUTED,
        signalled = const SIGNALLED,
    )
}
