/* Functions that keep every register but rax, and callers that count on it: what compilers make of a convention of their own
   (preserve_most, no_caller_saved_registers) across images, through pointers, and in a tail jump. Written as assembly, so
   that every compiler makes the same of it. -DLIBRARY: the library. */
#include <stdio.h>

#define FUNCTION(name, body)                                                                                            \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" body          \
            "\n.cfi_endproc\n.size " #name ", . - " #name "\n")

#ifdef LIBRARY
/* A leaf; one that loops; one that hands over to the leaf; one that calls another which keeps as much. */
FUNCTION(kept_leaf, "lea 1(%rdi), %rax\nret");
FUNCTION(kept_loop, "mov $3, %eax\n1: dec %eax\njnz 1b\nlea 1(%rdi), %rax\nret");
FUNCTION(kept_jump, "jmp kept_leaf@PLT");
FUNCTION(kept_call, "sub $8, %rsp\n.cfi_def_cfa_offset 16\ncall kept_loop@PLT\nadd $8, %rsp\n.cfi_def_cfa_offset 8\nret");
/* Takes an argument in r10 and one in r11. */
FUNCTION(takes_both, "lea (%r10,%r11), %rax\nret");
#else
extern long kept_leaf(long), kept_loop(long), kept_jump(long), kept_call(long), own_leaf(long);
FUNCTION(own_leaf, "lea 1(%rdi), %rax\nret");
FUNCTION(own_jump, "jmp kept_leaf@PLT");

/* 0 where r10 and r11 came through the call. */
#define CALLER(name, call)                                                                                              \
    FUNCTION(name, "sub $8, %rsp\n.cfi_def_cfa_offset 16\nlea 5(%rdi), %r10\nlea 9(%rdi), %r11\n" call                  \
                   "\nlea 5(%rdi), %rax\nsub %r10, %rax\nlea 9(%rdi), %rcx\nsub %r11, %rcx\nor %rcx, %rax\n"            \
                   "add $8, %rsp\n.cfi_def_cfa_offset 8\nret")
CALLER(by_stub, "call kept_leaf@PLT");
CALLER(by_slot, "call *kept_leaf@GOTPCREL(%rip)");
CALLER(by_loop, "call kept_loop@PLT");
CALLER(by_jump, "call kept_jump@PLT");
CALLER(by_call, "call kept_call@PLT");
CALLER(by_pointer, "call *library_pointer(%rip)");
CALLER(by_own_pointer, "call *own_pointer(%rip)");
CALLER(by_own_jump, "call own_jump");
/* The callee gets both. */
FUNCTION(gives_both, "sub $8, %rsp\n.cfi_def_cfa_offset 16\nlea 5(%rdi), %r10\nlea 9(%rdi), %r11\ncall takes_both@PLT\n"
                     "sub %r10, %rax\nsub %r11, %rax\nadd $8, %rsp\n.cfi_def_cfa_offset 8\nret");

long (*volatile library_pointer)(long);
long (*volatile own_pointer)(long) = own_leaf;
extern long by_stub(long), by_slot(long), by_loop(long), by_jump(long), by_call(long), by_pointer(long),
    by_own_pointer(long), by_own_jump(long), gives_both(long);

int main(void) {
    static const struct {
        const char *name;
        long (*call)(long);
    } all[] = {{"stub", by_stub},       {"slot", by_slot},       {"loop", by_loop},
               {"jump", by_jump},       {"call", by_call},       {"pointer", by_pointer},
               {"own pointer", by_own_pointer}, {"own jump", by_own_jump}, {"both", gives_both}};
    library_pointer = kept_leaf;
    for (unsigned row = 0; row < sizeof all / sizeof *all; row++) {
        long lost = 0;
        for (long round = 0; round < 100; round++) lost += all[row].call(round * 1000003) != 0;
        printf("%s: %ld lost\n", all[row].name, lost);
    }
    return 0;
}
#endif
