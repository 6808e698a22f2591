// Switches that become jump tables: dense, with a default, with cases that return, that call, and that are
// the last thing a function does.
// A right trace shows route and last 4,096 times, and each of the cases' functions 512 times.
#include <stdio.h>

#define CASE(n) __attribute__((noinline)) long case##n(long x) { __asm__ volatile(""); return x * (n + 3) ^ n; }
CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7)

__attribute__((noinline)) long route(long which, long x) {
    switch (which) {
    case 0: return case0(x);
    case 1: x += case1(x); break;
    case 2: x ^= case2(x); break;
    case 3: return case3(x) - 1;
    case 4: x = case4(x) / 3; // falls through
    case 15: x++; break;
    case 5: x -= case5(x); break;
    case 6: return case6(x);
    case 7: x = -case7(x); break;
    default: return 0;
    }
    return x & 0xffffff;
}
__attribute__((noinline)) long last(long which, long x) {
    switch (which & 7) {
    case 0: return x + 1;
    case 1: return x - 5;
    case 2: return x * 3;
    case 3: return x ^ 77;
    case 4: return x >> 1;
    case 5: return x << 2;
    case 6: return ~x;
    default: return x | 9;
    }
}

int main(void) {
    long sum = 0;
    for (long i = 0; i < 4096; i++) sum += route(i & 7, i) ^ last(i, i);
    printf("%ld\n", sum);
    return 0;
}
