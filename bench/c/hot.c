/* The same call over and over, of a function that calls something else, though never here: it is no leaf.
 * Prints the number of calls. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static APART long step(long x) {
    __asm__ volatile("" : "+r"(x));
    if (__builtin_expect(x == -1, 0))
        abort();
    return (x * 3 + 1) & 0xffffff;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    for (long i = 0; i < count; i++)
        x = step(x);
    printf("%ld\n", count);
    return x == 0;
}
