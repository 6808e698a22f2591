# Ways out of functions, one hazard each; the mechanism that each must get is in `matrix.rs`. `main`
# calls them all and exits with 0 where every result is right.
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
        # No room behind, and none in padding near by.
        .macro crowd
        .fill 160, 1, 0xf4
        .endm

# Calls nothing, loops nowhere.
        function leaf
        lea 1(%rdi,%rdi), %eax
        test %edi, %edi
        jns 1f
        neg %eax
1:      ret
        end leaf

# A leaf with a switch, whose table leads on.
        function leaf_switch
        xor %eax, %eax
        cmp $2, %edi
        ja 4f
        mov %edi, %edi
        lea leaf_table(%rip), %rdx
        movslq (%rdx,%rdi,4), %rcx
        add %rdx, %rcx
        notrack jmp *%rcx
1:      mov $5, %eax
        ret
2:      mov $6, %eax
        ret
3:      mov $7, %eax
4:      ret
        .section .rodata
        .p2align 2
leaf_table: .long 1b - leaf_table, 2b - leaf_table, 3b - leaf_table
        .text
        end leaf_switch

# No leaves: a loop, a lock, a pause, a system call, a call.
        function loops
        xor %eax, %eax
1:      add %edi, %eax
        dec %edi
        jnz 1b
        ret
        end loops
        function locks
        mov $1, %eax
        lock addl $1, counter(%rip)
        ret
        end locks
        function pauses
        mov $1, %eax
        pause
        ret
        end pauses
        function asks_system
        mov $39, %eax
        syscall
        mov $1, %eax
        ret
        end asks_system
        function calls
        push %rbx
        mov %edi, %ebx
        call leaf
        add %ebx, %eax
        pop %rbx
        ret
        end calls

# Tail jumps: to a leaf, to patched returns, to a library, in two widths, through its slot.
        function tail_leaf
        inc %edi
        jmp leaf
        end tail_leaf
        function tail_calls
        call leaf
        mov %eax, %edi
        .byte 0xe9
        .long calls - . - 4
        end tail_calls
        function tail_library
        call leaf
        mov %eax, %edi
        jmp abs@PLT
        end tail_library
        function tail_slot
        call leaf
        mov %eax, %edi
        jmp *abs@GOTPCREL(%rip)
        end tail_slot
        function tail_maybe
        call leaf
        cmp $7, %eax
        mov %eax, %edi
        .byte 0x0f, 0x85
        .long calls - . - 4
        ret
        end tail_maybe

# Bytes of arguments taken off, and the prefixed form.
        function pops
        push %rbx
        call leaf
        pop %rbx
        ret $8
        end pops
        function prefixed
        push %rbx
        call leaf
        pop %rbx
        rep ret
        end prefixed

# A wide branch into the window: it is led to the copy.
        function wide_into_window
        push %rbx
        call leaf
        cmp $3, %eax
        .byte 0x0f, 0x84
        .long 1f - . - 4
        mov $9, %eax
        add $0, %eax
1:      pop %rbx
        ret
        crowd
        end wide_into_window

# A short branch into what would be the window, and no padding: call-through.
        function short_into_window
        push %rbx
        jmp 2f
        crowd
2:      call leaf
        cmp $3, %eax
        je 1f
        mov $9, %eax
        add $0, %eax
1:      pop %rbx
        ret
        crowd
        end short_into_window

# The same with padding near enough for a short jump.
        function short_jump
        push %rbx
        call leaf
        cmp $3, %eax
        je 1f
        mov $9, %eax
1:      pop %rbx
        ret
        mov $1, %eax
        .byte 0xf4
        end short_jump
        .p2align 4
        nopw 0(%rax,%rax,1)
        nopl 0(%rax)

# A call returns to the window's start.
        function call_before_window
        push %rbx
        call leaf
        nop
        add $1, %eax
        pop %rbx
        ret
        crowd
        end call_before_window

# A computed tail call; a computed goto with a frame.
        function tail_pointer
        call leaf
        mov %eax, %edi
        lea calls(%rip), %rax
        jmp *%rax
        end tail_pointer
        function computed_goto
        push %rbx
        .cfi_def_cfa_offset 16
        call leaf
        lea labels(%rip), %rdx
        and $1, %edi
        movslq (%rdx,%rdi,4), %rcx
        add %rdx, %rcx
        jmp *%rcx
1:      add $1, %eax
2:      pop %rbx
        .cfi_def_cfa_offset 8
        ret
        .section .rodata
        .p2align 2
labels: .long 1b - labels, 2b - labels
        .text
        end computed_goto

# A return address made by hand; entries in the midst; a way into another function's midst.
        function pushes_return
        push %rbx
        call leaf
        pop %rbx
        pop %rcx
        push %rcx
        ret
        end pushes_return
        function has_entry
        push %rbx
        call leaf
        .globl second_entry
        .type second_entry, @function
second_entry:
        add $1, %eax
        pop %rbx
        ret
        end has_entry
        function into_other
        push %rbx
        call leaf
        jmp shared_end
        end into_other
        function has_shared
        push %rbx
        call leaf
        add $1, %eax
shared_end:
        add $1, %eax
        pop %rbx
        ret
        end has_shared

# Results in the flags, and what passes them on; flags looked at first.
        function returns_flags
        push %rbx
        call leaf
        cmp $3, %eax
        pop %rbx
        ret
        end returns_flags
        function passes_flags
        call leaf
        jmp returns_flags
        end passes_flags
        function reads_flags
        adc $0, %edi
        mov %edi, %eax
        jmp calls
        end reads_flags

# A loop to its own first byte is no call; a short function moves whole.
        function spin
        dec %edi
        jnz spin
        call leaf
        ret
        end spin
        function short
        cmp $4, %edi
        jne 1f
        jmp calls
1:      ret
        end short

# A cold part has a return of its own.
        function has_part
        push %rbx
        call leaf
        cmp $3, %eax
        jne has_part.cold
        add $1, %eax
        pop %rbx
        ret
        end has_part
        .section .text.unlikely, "ax"
        .type has_part.cold, @function
has_part.cold:
        .cfi_startproc
        .cfi_def_cfa_offset 16
        mov $2, %eax
        pop %rbx
        ret
        end has_part.cold
        .text

# Returns twice.
        function my_setjmp
        mov (%rsp), %rax
        mov %rax, (%rdi)
        xor %eax, %eax
        ret
        end my_setjmp

        function main
        push %rbx
        .macro expect value
        cmp $\value, %eax
        jne bad
        inc %ebx
        .endm
        .macro try name, argument, value
        mov $\argument, %edi
        call \name
        expect \value
        .endm
        mov $10, %ebx
        try leaf 1 3
        try leaf_switch 0 5
        try leaf_switch 1 6
        try leaf_switch 2 7
        try leaf_switch 3 0
        try loops 4 10
        try locks 0 1
        try pauses 0 1
        try asks_system 0 1
        try calls 2 7
        try tail_leaf 1 5
        try tail_calls 1 10
        try tail_library 1 3
        try tail_slot 1 3
        try tail_maybe 3 7
        try tail_maybe 1 10
        sub $8, %rsp
        mov $1, %edi
        call pops
        expect 3
        try prefixed 1 3
        try wide_into_window 1 3
        try wide_into_window 2 9
        try short_into_window 1 3
        try short_into_window 2 9
        try short_jump 1 3
        try call_before_window 1 4
        try tail_pointer 1 10
        try computed_goto 2 6
        try computed_goto 1 3
        try pushes_return 1 3
        try has_entry 1 4
        try into_other 1 4
        try has_shared 1 5
        mov $1, %edi
        call returns_flags
        jne bad
        mov $1, %edi
        call passes_flags
        jne bad
        mov $1, %edi
        stc
        call reads_flags
        expect 7
        try spin 3 1
        try short 4 13
        try short 5 13
        try has_part 1 4
        try has_part 2 2
        lea buffer(%rip), %rdi
        call my_setjmp
        expect 0
        xor %eax, %eax
        pop %rbx
        ret
bad:    mov %ebx, %eax
        nop
        pop %rbx
        ret
        end main

        .bss
counter: .long 0
buffer: .quad 0
        .section .note.GNU-stack, "", @progbits
