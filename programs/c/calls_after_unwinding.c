// A frame below which the stack was unwound goes on to call functions of its own, leaves and others, and one that calls
// itself: calls_after_unwinding [COUNT]. A right recording: each as often as it is called, all of them in main.
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

APART long leaf(long x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}
APART long inner(long x) {
    x = leaf(x);
    return x + 1;
}
APART long again(long depth, long x) { return depth == 0 ? leaf(x) : again(depth - 1, x) + 1; }
// Arguments on the stack: its frame's place is lower than that of others.
APART long wide(long a, long b, long c, long d, long e, long f, long g, long h) {
    __asm__ volatile("" : "+r"(a));
    return leaf(a + b + c + d) + e + f + g + h;
}
static void handle(int signal) { (void)signal; }
APART int unwinds(void) {
    void *addresses[8];
    return backtrace(addresses, 8);
}
int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 100, x = 1;
    signal(SIGUSR1, handle);
    if (unwinds() == 0) return 1;
    for (long i = 0; i < count; i++) {
        x = leaf(x);
        x = inner(x);
        x = wide(x, 1, 2, 3, 4, 5, 6, 7);
        x = again(3, x);
        if (i % 7 == 0) raise(SIGUSR1);
    }
    printf("%ld\n", x);
    return 0;
}
