/* A mixed tree: fifteen calls of four functions, eight of them of a leaf. Prints the number of calls. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static APART long d(long x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

static APART long c(long x) { return d(d(x)) + 1; }

static APART long b(long x) { return c(c(x)) + 1; }

static APART long a(long x) { return b(b(x)) + 1; }

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    for (long i = 0; i < count; i++)
        x = a(x);
    printf("%ld\n", 15 * count);
    return x == 0;
}
