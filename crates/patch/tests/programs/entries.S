# Function entries that are awkward to patch, one hazard each. `main` calls them all and exits with
# 0 where every result is right.
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

# A loop back to byte 0: not a call. rdi + (rdi-1) + ... into rax (rax is 0 at entry).
        function loop_to_zero
        add %rdi, %rax
        dec %rdi
        jne loop_to_zero
        ret
        end loop_to_zero

# The same with a branch that has 32 bits.
        function wide_loop_to_zero
        add %rdi, %rax
        dec %rdi
        .byte 0x0f, 0x85
        .long wide_loop_to_zero - . - 4
        nopw 0(%rax,%rax,1)
        ret
        end wide_loop_to_zero

# A loop back to byte 2, inside what the jump overwrites.
        function loop_to_two
        xor %eax, %eax
1:      add %rdi, %rax
        dec %rdi
        jne 1b
        ret
        end loop_to_two

# Behind endbr64, which stays; the loop goes back to the endbr64.
        function loop_to_endbr
        endbr64
        add %rdi, %rax
        dec %rdi
        jne loop_to_endbr
        ret
        end loop_to_endbr

# Counted branches have a short form only.
        function counted
        mov %rdi, %rcx
        xor %eax, %eax
        jrcxz 2f
1:      add %rcx, %rax
        loop 1b
2:      ret
        end counted

        function counted_first
        jrcxz 1f
        mov %rcx, %rax
        ret
1:      mov $7, %eax
        ret
        end counted_first

# One instruction, and the padding behind it.
        function only_ret
        ret
        end only_ret

# Three bytes.
        function three
        xor %eax, %eax
        ret
        end three

# The address of the function itself is a pointer, not a branch.
        function own_address
        lea own_address(%rip), %rax
        ret
        end own_address

# A call among the first bytes, last of what is moved.
        function early_call
        sub $8, %rsp
        call three
        add $8, %rsp
        ret
        end early_call

# A call whose return lies among the first bytes.
        function early_indirect_call
        push %rax
        call *%rdi
        pop %rdx
        ret
        end early_indirect_call

# A tail call is the whole function.
        function tail
        jmp three
        end tail

# Data and a branch out in the first bytes.
        function reads_data
        mov seven(%rip), %eax
        cmpl $9, seven(%rip)
        je three
        ret
        end reads_data

# A branch from far back, 32 bits, to byte 3.
        function far_back
        xor %eax, %eax
        nop
1:      inc %eax
        .skip 200, 0x90
        cmp %edi, %eax
        jb 1b
        ret
        end far_back

# A short branch back over a call: cannot be moved.
        function loop_with_call
        push %rbx
        mov %edi, %ebx
1:      call three
        dec %ebx
        jne 1b
        pop %rbx
        ret
        end loop_with_call

# A table of computed jumps leads to byte 2.
        function table_to_two
        xor %eax, %eax
1:      inc %eax
        dec %edi
        js 2f
        lea table(%rip), %rdx
        movslq (%rdx), %rcx
        add %rdx, %rcx
        jmp *%rcx
2:      ret
        end table_to_two

# Entered by a jump, with two words on the stack: no place for a return address of ours.
        .globl framed_helper
        .type framed_helper, @function
framed_helper:
        .cfi_startproc
        .cfi_def_cfa_offset 24
        add $16, %rsp
        .cfi_def_cfa_offset 8
        mov $11, %eax
        ret
        end framed_helper

        function uses_framed_helper
        push %rax
        push %rax
        jmp framed_helper
        end uses_framed_helper

# A second way into a function: its first bytes are done already. Short with padding behind, near, conditional.
        function second_way
        lea 1(%rdi), %eax
        nop
        nop
        jmp first_way + 3
        end second_way

        function third_way
        lea 2(%rdi), %eax
        nop
        nop
        .byte 0xe9
        .long first_way + 3 - . - 4
        end third_way

        function fourth_way
        lea 3(%rdi), %eax
        cmp $2, %edi
        .byte 0x0f, 0x84
        .long first_way + 3 - . - 4
        ret
        end fourth_way

        function first_way
        mov %rdi, %rax
        add %rax, %rax
        jne 1f
        inc %eax
1:      ret
        end first_way

# No room for a near jump; and a way in from what moves itself. Their address is taken.
        function crowded_way
        lea 1(%rdi), %eax
        nop
        nop
        jmp crowded + 3
        .cfi_endproc
        .size crowded_way, . - crowded_way
        .globl crowd
        .type crowd, @function
crowd:
        .cfi_startproc
        xor %eax, %eax
        inc %eax
        ret
        end crowd

        function crowded
        mov %rdi, %rax
        add %rax, %rax
        ret
        end crowded

        function from_first_bytes
        inc %edi
        jmp moved_way + 3
        end from_first_bytes

        function moved_way
        mov %rdi, %rax
        lea (%rax,%rdi), %eax
        ret
        end moved_way

# The same three where pointers lead to them too, so that not every caller is known.
        function taken_loop_with_call
        push %rbx
        mov %edi, %ebx
1:      call three
        dec %ebx
        jne 1b
        pop %rbx
        ret
        end taken_loop_with_call

        function taken_early_indirect_call
        push %rax
        call *%rdi
        pop %rdx
        ret
        end taken_early_indirect_call

        .globl taken_one_byte
        .type taken_one_byte, @function
taken_one_byte:
        .cfi_startproc
        ret
        end taken_one_byte
        .globl unaligned
        .type unaligned, @function
unaligned:
        .cfi_startproc
        mov $5, %eax
        ret
        end unaligned

        function main
        push %rbx
        .macro expect value
        cmp $\value, %eax
        jne bad
        inc %ebx
        .endm
        mov $10, %ebx
        xor %eax, %eax
        mov $4, %edi
        call loop_to_zero
        expect 10
        xor %eax, %eax
        mov $4, %edi
        call wide_loop_to_zero
        expect 10
        mov $4, %edi
        call loop_to_two
        expect 10
        xor %eax, %eax
        mov $4, %edi
        call loop_to_endbr
        expect 10
        mov $4, %edi
        call counted
        expect 10
        xor %edi, %edi
        call counted
        expect 0
        xor %ecx, %ecx
        call counted_first
        expect 7
        mov $3, %ecx
        call counted_first
        expect 3
        call only_ret
        call three
        expect 0
        call own_address
        lea own_address(%rip), %rdx
        sub %rdx, %rax
        expect 0
        call early_call
        expect 0
        lea three(%rip), %rdi
        call early_indirect_call
        expect 0
        call tail
        expect 0
        call reads_data
        expect 7
        mov $5, %edi
        call far_back
        expect 5
        mov $3, %edi
        call loop_with_call
        expect 0
        mov $3, %edi
        call table_to_two
        expect 4
        call uses_framed_helper
        expect 11
        mov $3, %edi
        call taken_loop_with_call
        expect 0
        lea three(%rip), %rdi
        call taken_early_indirect_call
        expect 0
        mov $4, %edi
        call first_way
        expect 8
        mov $4, %edi
        call second_way
        expect 10
        mov $4, %edi
        call third_way
        expect 12
        mov $4, %edi
        call fourth_way
        expect 7
        mov $2, %edi
        call fourth_way
        expect 10
        mov $4, %edi
        call crowded_way
        expect 10
        mov $4, %edi
        call crowded
        expect 8
        call crowd
        expect 1
        xor %eax, %eax
        mov $4, %edi
        call from_first_bytes
        expect 5
        mov $4, %edi
        call moved_way
        expect 8
        call taken_one_byte
        call unaligned
        expect 5
        xor %eax, %eax
        pop %rbx
        ret
bad:    mov %ebx, %eax
        pop %rbx
        ret
        end main

        .section .rodata
        .p2align 2
table:  .long table_to_two + 2 - table
        .long 0
seven:  .long 7
        .section .data.rel.ro, "aw"
        .p2align 3
        .quad taken_loop_with_call, taken_early_indirect_call, taken_one_byte, first_way, crowded, moved_way
        .section .note.GNU-stack, "", @progbits
