# A fixed program that takes a library function's address in two ways: the linker makes its own PLT
# stub the function's one address, and the GOT's slot for the address holds that stub. Who calls
# through that slot meets the stub.
        .text
        .globl main
        .type main, @function
main:   .cfi_startproc
        push %rbx
        .cfi_def_cfa_offset 16
        lea text(%rip), %rdi
        call puts
        lea text(%rip), %rdi
        call *puts@GOTPCREL(%rip)
        mov puts@GOTPCREL(%rip), %rdx
        mov $puts, %ecx
        xor %eax, %eax
        cmp %rcx, %rdx
        setne %al
        pop %rbx
        ret
        .cfi_endproc
        .size main, . - main
        .section .rodata
text:   .string "called"
        .section .note.GNU-stack, "", @progbits
