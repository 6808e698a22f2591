/* Calls in an order that nobody can predict, of 64 functions. Prints the number of calls. */
#include <stdio.h>
#include <stdlib.h>

#define F(n) \
    static __attribute__((noinline, noclone)) long f##n(long x) { \
        __asm__ volatile("" : "+r"(x)); \
        if (__builtin_expect(x == -n - 1, 0)) \
            abort(); \
        return x + n; \
    }
#define FOUR(n) F(n##0) F(n##1) F(n##2) F(n##3)
#define SIXTEEN(n) FOUR(n##0) FOUR(n##1) FOUR(n##2) FOUR(n##3)
SIXTEEN(1) SIXTEEN(2) SIXTEEN(3) SIXTEEN(4)
#define N(n) f##n,
#define N4(n) N(n##0) N(n##1) N(n##2) N(n##3)
#define N16(n) N4(n##0) N4(n##1) N4(n##2) N4(n##3)

static long (*const functions[64])(long) = {N16(1) N16(2) N16(3) N16(4)};

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0, x = 1;
    unsigned long state = 88172645463325252ul;
    for (long i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        x = functions[state >> 58](x) & 0xffffff;
    }
    printf("%ld\n", count);
    return x == 0;
}
