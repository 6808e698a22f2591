/* Calls of a frame below which somebody unwound the stack, in a program that handles a signal: four leaves of five. Prints the number of calls. */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static APART long leaf(long x) {
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}

static APART long inner(long x) {
    x = leaf(x);
    return x + 1;
}

static void handle(int signal) { (void)signal; }

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    void *addresses[8];
    signal(SIGUSR1, handle);
    if (backtrace(addresses, 8) == 0)
        return 1;
    for (long i = 0; i < count; i++) {
        x = leaf(x); x = leaf(x); x = leaf(x);
        x = inner(x);
    }
    printf("%ld\n", 5 * count);
    return x == 0;
}
