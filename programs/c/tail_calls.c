// Functions that end by jumping to another: a chain, and an even/odd pair that would need 1,000 frames
// without it.
// A right trace (with optimisation) shows first ~> second ~> third, and is_even(999) ~> is_odd ~> ...:
// nested, each frame ending with its successor; without optimisation the same calls, returning.
#include <stdio.h>

int is_even(unsigned n);
__attribute__((noinline)) int third(int x) { return x * 3 + (x & 1); }
__attribute__((noinline)) int second(int x) { return third(x + 2); }
__attribute__((noinline)) int first(int x) { return second(x - 1); }
__attribute__((noinline)) int is_odd(unsigned n) {
    if (n == 0) return 0;
    return is_even(n - 1);
}
__attribute__((noinline)) int is_even(unsigned n) {
    if (n == 0) return 1;
    return is_odd(n - 1);
}

int main(void) {
    volatile int five = 5;
    volatile unsigned many = 999;
    printf("%d %d\n", first(five), is_even(many));
    return 0;
}
