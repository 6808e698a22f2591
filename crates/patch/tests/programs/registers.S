# Who waits for r10 and r11; `registers.rs` says whose inline code must save them. `main` calls them all and
# exits with 0.
        .text

        .macro function name
        .p2align 4
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
        .endm
        .macro end name
        .cfi_endproc
        .size \name, . - \name
        .endm

# Nobody waits for anything.
        function plain
        lea 1(%rdi,%rdi), %eax
        ret
        end plain

# Gets a pointer in r10, as nested functions do.
        function takes
        mov (%r10), %rax
        add %rdi, %rax
        ret
        end takes

# Does not touch r10, and goes on where it is taken.
        function hands_on
        add $1, %rdi
        jmp takes
        end hands_on

# Sets it, and waits for nothing itself.
        function gives
        sub $24, %rsp
        .cfi_def_cfa_offset 32
        mov %rdi, 8(%rsp)
        lea 8(%rsp), %r10
        call hands_on
        add $24, %rsp
        .cfi_def_cfa_offset 8
        ret
        end gives

# Other images see it, and it changes nothing that they might count on.
        function seen
        mov %rdi, %rax
        ret
        end seen

# The same, but it leaves its argument changed: who calls it by pointer keeps to the ABI.
        function seen_ordinary
        add $1, %rdi
        mov %rdi, %rax
        ret
        end seen_ordinary

# Puts back what it changed, as functions do that keep more than the ABI says.
        function seen_keeping
        push %rcx
        .cfi_def_cfa_offset 16
        mov $5, %ecx
        lea (%rdi,%rcx), %rax
        pop %rcx
        .cfi_def_cfa_offset 8
        ret
        end seen_keeping

# Only the call that does not return is behind the change.
        function seen_failing
        test %rdi, %rdi
        js 1f
        mov %rdi, %rax
        ret
1:      push %rax
        .cfi_def_cfa_offset 16
        mov $1, %edi
        call abort@PLT
        end seen_failing

# Called by one that keeps nothing and changes nothing: its own callers may wait for what it leaves alone.
        function seen_between
        call below
        ret
        end seen_between

        function below
        lea 3(%rdi), %rax
        ret
        end below

# Its caller keeps something in r11 meanwhile, as it knows that nothing here changes it.
        function kept
        lea 2(%rdi), %rax
        ret
        end kept

        function keeps
        sub $8, %rsp
        .cfi_def_cfa_offset 16
        mov %rdi, %r11
        call kept_between
        add %r11, %rax
        add $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end keeps

        function kept_between
        sub $8, %rsp
        .cfi_def_cfa_offset 16
        add $1, %rdi
        call kept
        add $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end kept_between

# Writes r11 behind the call before it reads it.
        function forgets
        sub $8, %rsp
        .cfi_def_cfa_offset 16
        add $1, %rdi
        call forgotten
        mov %rax, %r11
        lea 1(%r11), %rax
        add $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end forgets

        function forgotten
        lea 3(%rdi), %rax
        ret
        end forgotten

# Reads part of r10: the rest of it came from somewhere.
        function takes_part
        movzbl %r10b, %eax
        and $0, %eax
        ret
        end takes_part

        function main
        sub $8, %rsp
        .cfi_def_cfa_offset 16
        mov $1, %edi
        call plain
        call gives
        call keeps
        call forgets
        call seen_between
        call takes_part
        add $8, %rsp
        .cfi_def_cfa_offset 8
        ret
        end main

        .data
        .quad seen, seen_ordinary, seen_keeping, seen_failing, seen_between

        .section .note.GNU-stack,"",@progbits
