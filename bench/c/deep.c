/* Recursion, ten thousand calls deep. Prints the number of calls. */
#include <stdio.h>
#include <stdlib.h>

static __attribute__((noinline, noclone)) long down(long depth) {
    __asm__ volatile("" : "+r"(depth));
    if (depth == 0)
        return 1;
    long below = down(depth - 1);
    /* Else the compiler makes a loop of it. */
    __asm__ volatile("" : "+r"(below));
    return below + 1;
}

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    for (long i = 0; i < count; i++)
        x += down(9999);
    printf("%ld\n", 10000 * count);
    return x == 0;
}
