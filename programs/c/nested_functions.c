// Nested functions of GNU C: called directly they find their frame in r10, called through a pointer they
// come by a few instructions on the stack.
// build: -Wno-trampolines
// A right trace shows apply 3 times, each with 4 calls of the nested function; the sums tell whether r10
// survived.
#include <stdio.h>

__attribute__((noinline)) long apply(long (*f)(long), int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += f(i);
    return sum;
}
__attribute__((noinline)) long scaled(long factor, int direct) {
    __attribute__((noinline)) long scale(long x) { return factor * x + direct; }
    long sum = 0;
    if (direct) for (int i = 0; i < 4; i++) sum += scale(i);
    else sum = apply(scale, 4);
    factor++;
    return sum + scale(1);
}

int main(void) {
    for (long factor = 1; factor <= 3; factor++) printf("%ld %ld\n", scaled(factor, 0), scaled(factor, 1));
    return 0;
}
