// V-cycles in the manner of a multigrid solver: the coarser the level, the farther the neighbours; a recursion
// within a loop.
//
//   multigrid [CYCLES]
//
// A right trace has CYCLES calls of norm in every rank, and as many of coarsest.

#include <mpi.h>
#include <stdlib.h>

enum { CELLS = 256, LEVELS = 3 };

static int rank, size;
static double grid[LEVELS][CELLS];

__attribute__((noinline)) static void smooth(int level) {
    for (int i = 1; i < CELLS >> level; i++) grid[level][i] = 0.5 * (grid[level][i] + grid[level][i - 1]);
}

__attribute__((noinline)) static void halo(int level) {
    int distance = (1 << level) % size, up = (rank + distance) % size, down = (rank + size - distance) % size;
    double out = grid[level][0], in;
    MPI_Sendrecv(&out, 1, MPI_DOUBLE, up, level, &in, 1, MPI_DOUBLE, down, level, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    grid[level][0] += 1e-3 * in;
}

__attribute__((noinline)) static void restrict_to(int level) {
    for (int i = 0; i < CELLS >> level; i++) grid[level][i] = grid[level - 1][2 * i];
}

__attribute__((noinline)) static void prolong(int level) {
    for (int i = 0; i < CELLS >> level; i++) grid[level - 1][2 * i] += 0.1 * grid[level][i];
}

__attribute__((noinline)) static void coarsest(void) {
    double own = grid[LEVELS - 1][0], all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    grid[LEVELS - 1][0] = all / size;
}

__attribute__((noinline)) static void cycle(int level) {
    smooth(level);
    halo(level);
    if (level + 1 == LEVELS) {
        coarsest();
        return;
    }
    restrict_to(level + 1);
    cycle(level + 1);
    prolong(level + 1);
    smooth(level);
    halo(level);
}

__attribute__((noinline)) static void norm(void) {
    double own = grid[0][CELLS - 1], all;
    MPI_Reduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int cycles = argc > 1 ? atoi(argv[1]) : 30;
    for (int i = 0; i < CELLS; i++) grid[0][i] = i % 5 + rank;
    for (int i = 0; i < cycles; i++) {
        cycle(0);
        norm();
    }
    MPI_Finalize();
    return 0;
}
