// A function whose loop jumps back to its very first byte (the body has no prologue): a place where a
// patched entry would be passed many times in one call.
// A right trace shows count_down called once, not five times, and then once more.
#include <stdio.h>

int count_down(int n);
__asm__(".text\n"
        ".globl count_down\n"
        ".type count_down, @function\n"
        "count_down:\n"
        ".cfi_startproc\n"
        "    sub $1, %edi\n"
        "    nopl 0(%rax)\n"
        "    cmp $0, %edi\n"
        "    jg count_down\n"
        "    mov $42, %eax\n"
        "    ret\n"
        ".cfi_endproc\n"
        ".size count_down, .-count_down\n");

int main(void) {
    volatile int five = 5;
    printf("%d %d\n", count_down(five), count_down(1));
    return 0;
}
