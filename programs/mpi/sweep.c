// Sweeps over a grid in the manner of SP: each line of solves goes down the ranks and back up, and a `goto` leads
// into the middle of the loop, where the first rank begins.
//
//   sweep [STEPS]
//
// A right trace has STEPS calls of update in every rank.

#include <mpi.h>
#include <stdlib.h>

enum { CELLS = 300 };

static int rank, size;
static double line[CELLS];

__attribute__((noinline)) static void eliminate(double from) {
    for (int i = 0; i < CELLS; i++) line[i] = (line[i] + from) * 0.5;
}

__attribute__((noinline)) static void substitute(double from) {
    for (int i = CELLS - 1; i >= 0; i--) line[i] -= 0.1 * from;
}

__attribute__((noinline)) static double take(int from, int tag) {
    double in = 0;
    if (from >= 0 && from < size) MPI_Recv(&in, 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in;
}

__attribute__((noinline)) static void give(int to, int tag, double out) {
    if (to >= 0 && to < size) MPI_Send(&out, 1, MPI_DOUBLE, to, tag, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void update(int step) {
    for (int i = 0; i < CELLS; i++) line[i] += 1e-3 * step;
}

__attribute__((noinline)) static void residual(void) {
    double own = line[0], all;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int steps = argc > 1 ? atoi(argv[1]) : 40, step = 0;
    double in = 0;
    if (rank == 0) goto first;
down:
    in = take(rank - 1, 1);
first:
    eliminate(in);
    give(rank + 1, 1, line[CELLS - 1]);
    substitute(take(rank + 1, 2));
    give(rank - 1, 2, line[0]);
    update(step);
    if (step % 5 == 4) residual();
    if (++step < steps) goto down;
    MPI_Finalize();
    return 0;
}
