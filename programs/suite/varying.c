// Nested loops with random trip counts: what each iteration does is known, how often is not.
// usage: varying [ROUNDS]
//
// A right trace has the shape of one round over and over, with counts from a generator of 1 to 16.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252u;
static volatile unsigned sum;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static void inner(unsigned i) { sum += i; }
__attribute__((noinline)) static void middle(unsigned times) { for (unsigned i = 0; i < times; i++) inner(i); }
__attribute__((noinline)) static void outer(unsigned times) { for (unsigned i = 0; i < times; i++) middle(1 + draw() % 16); }

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 12000;
    for (int i = 0; i < rounds; i++) outer(1 + draw() % 16);
    printf("%u\n", sum);
    return 0;
}
