// Callers that know which registers a function of the same file changes, and keep their values in the
// others across the call, call-clobbered or not (gcc's -fipa-ra, part of -O2). The functions are written
// so that they change nothing but rax.
// A right trace shows quiet, twice and outer 30,000 times each; the sum tells whether a register was lost.
#include <stdio.h>

static volatile long counter;
__attribute__((noinline)) static long quiet(long x) {
    __asm__ volatile("" : "+r"(x));
    return x + 1;
}
__attribute__((noinline)) static long twice(long x) {
    __asm__ volatile("" : "+r"(x));
    return quiet(x) * 2;
}
__attribute__((noinline)) static long outer(long a, long b, long c, long d, long e, long f) {
    long r = twice(a);
    // All of them live across the call, in whatever registers the compiler thinks are safe.
    return r + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + (a ^ b ^ c ^ d ^ e ^ f);
}

int main(void) {
    long sum = 0;
    double x = 0.5, y = 1.5, z = 2.5;
    for (long i = 0; i < 30000; i++) {
        sum += outer(i, i + 1, i * 3, i ^ 5, i - 7, i << 2);
        x += y;
        y += z;
        counter = sum;
    }
    printf("%ld %.1f %.1f\n", sum, x, y);
    return counter == sum ? 0 : 1;
}
