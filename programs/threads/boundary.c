/* A relaxation with boundary conditions that are set now and then: by a call, by a table of functions, by a call back. Compilers
   inline what is small. MISSED, UNREACHED and UNSORTED never come to one of these calls, and have them in their code. */
#include <stdio.h>
#include <stdlib.h>

#define CELLS 24
#define KEPT __attribute__((noinline))

#ifndef MISSED
#define MISSED 0
#endif
#ifndef UNREACHED
#define UNREACHED 0
#endif
#ifndef UNSORTED
#define UNSORTED 0
#endif

struct grid {
    double cells[CELLS];
    int steps;
};

static double square(double x) { return x * x; }

KEPT static void set_boundary(struct grid *grid)
{
    grid->cells[0] = 1;
    grid->cells[CELLS - 1] = 0;
    for (int i = 1; i < 3; i++)
        grid->cells[i] += square(0.01 * i);
}

/* Its last call is a jump where compilers optimise. */
KEPT void end_step(struct grid *grid, int step)
{
    grid->steps++;
    if (MISSED ? step > CELLS : step < CELLS)
        set_boundary(grid);
}

KEPT static void advance(struct grid *grid, int i)
{
    grid->cells[i] = (grid->cells[i - 1] + grid->cells[i + 1]) / 2;
}

KEPT static void reflect(struct grid *grid, int i) { grid->cells[i] = square(grid->cells[CELLS - i]) / 16; }

static void (*const handlers[])(struct grid *, int) = { advance, reflect };

KEPT static void sweep(struct grid *grid, int step)
{
    for (int i = 1; i < CELLS - 1; i++)
        handlers[UNREACHED ? grid->steps < 0 : (i + step) % 2](grid, i);
}

KEPT static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    (void)argv;
    struct grid grid = { .steps = argc };
    for (int i = 0; i < CELLS; i++)
        grid.cells[i] = i % 5;
    for (int step = 0; step < 8; step++) {
        sweep(&grid, step);
        end_step(&grid, step);
    }
    qsort(grid.cells, UNSORTED ? argc : CELLS, sizeof(double), by_size);
    printf("%d %.3f\n", grid.steps, grid.cells[CELLS / 2]);
    return 0;
}
