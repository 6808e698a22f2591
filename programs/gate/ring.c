// Ranks in a ring that exchange the ends of their fields. The gate's campaign changes it and builds it again
// (crates/testkit/src/gate.rs has the changes as edits of these lines).
#include <mpi.h>
#include <stdio.h>

enum { CELLS = 32, HALO = 2, TAG = 7 };

static int rank, ranks, waited;
static double field[CELLS], halo[HALO];

void start(double value) {
    for (int i = 0; i < CELLS; i++)
        field[i] = value + i;
}

void smooth(void) {
    for (int i = 1; i < CELLS; i++)
        field[i] = 0.5 * (field[i] + field[i - 1]);
}

void idle(void) {
    waited++;
}

void take_halo(void) {
    field[0] = 0.5 * (field[0] + halo[HALO - 1]);
}

void exchange(void) {
    MPI_Request both[2];
    int done = 0;
    MPI_Irecv(halo, HALO, MPI_DOUBLE, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD, &both[0]);
    MPI_Isend(field + CELLS - HALO, HALO, MPI_DOUBLE, (rank + 1) % ranks, TAG, MPI_COMM_WORLD, &both[1]);
    while (!done) {
        MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
        if (!done)
            idle();
    }
    take_halo();
}

double residual(void) {
    double own = field[CELLS - 1] - field[0], all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

void print(double value) {
    printf("%g\n", value);
}

int main(int argc, char **argv) {
    double value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    start(1.0);
    for (int step = 0; step < 12; step++) {
        smooth();
        exchange();
        if (step % 3 == 0)
            value = residual();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        print(value);
    MPI_Finalize();
    return 0;
}
