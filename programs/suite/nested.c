// Constant nested loops: a stencil of rows and points, sweep after sweep.
// usage: nested [SWEEPS]
//
// A right trace repeats one sweep exactly: the best case of every codec.

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 40, POINTS = 50 };
static double grid[ROWS][POINTS];

__attribute__((noinline)) static double point(int row, int column) {
    double left = grid[row][(column + POINTS - 1) % POINTS], right = grid[row][(column + 1) % POINTS];
    return 0.5 * grid[row][column] + 0.25 * (left + right);
}

__attribute__((noinline)) static void sweep_row(int row) {
    for (int column = 0; column < POINTS; column++) grid[row][column] = point(row, column);
}

__attribute__((noinline)) static void sweep(void) {
    for (int row = 0; row < ROWS; row++) sweep_row(row);
}

int main(int argc, char **argv) {
    int sweeps = argc > 1 ? atoi(argv[1]) : 500;
    for (int row = 0; row < ROWS; row++) grid[row][0] = row;
    for (int i = 0; i < sweeps; i++) sweep();
    printf("%.6f\n", grid[7][3]);
    return 0;
}
