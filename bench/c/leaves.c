/* Where nearly all calls are of leaves: nine of ten. Prints the number of calls. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static APART long leaf(long x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

static APART long inner(long x) {
    x = leaf(x); x = leaf(x); x = leaf(x);
    x = leaf(x); x = leaf(x); x = leaf(x);
    x = leaf(x); x = leaf(x); x = leaf(x);
    return x + 1;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    for (long i = 0; i < count; i++)
        x = inner(x);
    printf("%ld\n", 10 * count);
    return x == 0;
}
