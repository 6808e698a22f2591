// Keeps all its memory, what is mapped later too, from being paged out; then calls odd and even, as the bits of a
// sequence have it. The kernel does not drop pages of such memory.
// A right trace shows 1,500,000 calls of odd and even together. Exit status 77: it may not lock so much.
#include <stdio.h>
#include <sys/mman.h>

static volatile unsigned sum;
__attribute__((noinline, noclone)) void odd(void) { sum += 1; }
__attribute__((noinline, noclone)) void even(void) { sum += 2; }

int main(void) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE)) return 77;
    unsigned bits = 1;
    for (int i = 0; i < 1500000; i++) {
        bits = bits * 1664525u + 1013904223u;
        if (bits >> 31) odd();
        else even();
    }
    printf("%u\n", sum);
    return 0;
}
