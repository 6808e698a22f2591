// Calls functions of `leaf_library.c` and of libm and libc, each a hundred times, from a function of its own that a signal's
// handler interrupts, too; one as the last thing that a function does.
// build: -lm -fno-builtin -rdynamic
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

long closed_sum(long a, long b);
long closed_divide(long a, long b);
long closed_choice(long a);
long loops(const char *text);
long calls_back(long (*other)(long), long a);
long enters_kernel(void);
long locks(long *place);
long recurs(long depth);

static long backs;
static volatile sig_atomic_t handled;

__attribute__((noinline)) long other(long a) {
    __asm__ volatile("");
    return a + backs;
}

void called_back(void) { backs++; }

static void handler(int number) { handled += closed_sum(number, 1) > 0; }

__attribute__((noinline)) long hands_over(long a) { return closed_sum(a, a); }

int main(void) {
    long sum = 0, place = 0;
    double value = 0;
    signal(SIGUSR1, handler);
    for (long i = 0; i < 100; i++) {
        sum += closed_sum(i, 1) + closed_divide(i, i % 10) + closed_choice(i);
        sum += loops("four") + calls_back(other, i) + enters_kernel() + locks(&place) + recurs(2);
        sum += hands_over(i) + (long)strlen("text");
        value += log(i + 1.0) + sqrt(i) + exp(-i) + log(-0.0 * i);
        if (i % 25 == 0) raise(SIGUSR1);
    }
    printf("%ld %d %d %ld\n", sum, value < 0, (int)handled, backs);
    return 0;
}
