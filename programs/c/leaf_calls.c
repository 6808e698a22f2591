// Calls in a loop, nested and recursive, with arguments in registers and on the stack.
// A right trace shows main > sum_of_powers 3 times, each with power 4 times, then fibonacci(10) as a
// tree of 177 calls, then nine.
#include <stdio.h>

long power(long base, int exponent) {
    long result = 1;
    while (exponent-- > 0) result *= base;
    return result;
}

long sum_of_powers(int exponent) {
    long sum = 0;
    for (long base = 1; base <= 4; base++) sum += power(base, exponent);
    return sum;
}

int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

int nine(int a, int b, int c, int d, int e, int f, int g, int h, int i) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

int main(void) {
    for (int exponent = 1; exponent <= 3; exponent++) printf("%ld\n", sum_of_powers(exponent));
    printf("%d\n", fibonacci(10));
    printf("%d\n", nine(1, 2, 3, 4, 5, 6, 7, 8, 9));
    return 0;
}
