// A sparse solver: matrix times vector, row after row, over a random pattern.
// usage: sparse [ITERATIONS] [changing]
//
// A right trace repeats a long irregular iteration exactly; with `changing`, every iteration has a
// pattern of its own.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 6000, MOST = 14 };
static int count[ROWS], column[ROWS][MOST];
static double x[ROWS], y[ROWS];
static uint64_t state = 88172645463325252u;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static double entry(int row, int k) { return x[column[row][k]] / (1 + k); }

__attribute__((noinline)) static double row_times(int row) {
    double sum = 0;
    for (int k = 0; k < count[row]; k++) sum += entry(row, k);
    return sum;
}

static void make(void) {
    for (int row = 0; row < ROWS; row++) {
        count[row] = 1 + draw() % MOST;
        for (int k = 0; k < count[row]; k++) column[row][k] = draw() % ROWS;
    }
}

__attribute__((noinline)) static void multiply(void) {
    for (int row = 0; row < ROWS; row++) y[row] = row_times(row);
}

int main(int argc, char **argv) {
    int iterations = argc > 1 ? atoi(argv[1]) : 60, changing = argc > 2;
    make();
    for (int i = 0; i < ROWS; i++) x[i] = 1.0 / (1 + i);
    for (int i = 0; i < iterations; i++) {
        if (changing) make();
        multiply();
        for (int row = 0; row < ROWS; row++) x[row] = y[row] * 0.3;
    }
    printf("%.9f\n", x[5]);
    return 0;
}
