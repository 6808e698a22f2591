//! The system call instruction.

use core::arch::asm;

/// System call `number` with six arguments; the kernel's result, negative error numbers included.
///
/// # Safety
/// As the system call: whatever it does to memory must be allowed.
#[inline]
pub unsafe fn syscall(number: usize, arguments: [usize; 6]) -> isize {
    let result;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the registers are those of the kernel's convention; the caller answers for the effect.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
