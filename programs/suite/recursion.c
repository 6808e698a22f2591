// Recursion: Ackermann's function, the towers of Hanoi, and mutual recursion.
// usage: recursion [TIMES]
//
// A right trace nests deeply, and equal subproblems are equal subtrees.

#include <stdio.h>
#include <stdlib.h>

static unsigned long moves;

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static unsigned ackermann(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__attribute__((noinline)) static void move(void) { moves++; }

__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static void hanoi(int disks) {
    if (disks == 0) return;
    hanoi(disks - 1);
    move();
    hanoi(disks - 1);
}

__attribute__((noinline)) static int is_odd(int n);
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int is_even(int n) { return n == 0 ? 1 : is_odd(n - 1); }
__attribute__((noinline, optimize("no-optimize-sibling-calls"))) static int is_odd(int n) { return n == 0 ? 0 : is_even(n - 1); }

int main(int argc, char **argv) {
    int times = argc > 1 ? atoi(argv[1]) : 6;
    unsigned long check = 0;
    for (int i = 0; i < times; i++) {
        check += ackermann(2, 60 + i);
        hanoi(15);
        check += is_even(5000 + i);
    }
    printf("%lu %lu\n", check, moves);
    return 0;
}
