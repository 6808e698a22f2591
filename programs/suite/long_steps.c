// Long time steps: each is 250,000 events of phases that vary over the step, and the next is the same.
// usage: long_steps [STEPS]
//
// A right trace repeats with a period longer than most windows.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 20000 };
static unsigned char kind[CELLS];
static double value[CELLS];
static uint64_t state = 88172645463325252u;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static double gas(int cell) { return value[cell] * 0.99; }
__attribute__((noinline)) static double solid(int cell) { return value[cell] * 0.5 + gas(cell); }
__attribute__((noinline)) static double plasma(int cell) { return solid(cell) + gas(cell); }

__attribute__((noinline)) static void update(int cell) {
    switch (kind[cell]) {
    case 0: value[cell] = gas(cell); break;
    case 1: value[cell] = solid(cell); break;
    default: value[cell] = plasma(cell); break;
    }
}

__attribute__((noinline)) static void step(void) { for (int cell = 0; cell < CELLS; cell++) update(cell); }

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 40;
    for (int cell = 0; cell < CELLS; cell++) kind[cell] = draw() % 3, value[cell] = 1;
    for (int i = 0; i < steps; i++) step();
    printf("%.9f\n", value[3]);
    return 0;
}
