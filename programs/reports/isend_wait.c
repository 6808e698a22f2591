// After rsmpi/rsmpi issue 144: a scope that waits for each nonblocking send at its end, before any receive is posted.
//
// Packets go to ranks by a table. `bug`: in step 3 ranks 1 and 2 send each other packets that are too large to be
// buffered, and each waits in the MPI_Wait of send_scoped() until the other receives. Ranks 0 and 3 wait in MPI_Allreduce.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 300000, STEPS = 6 };

static int rank, size, bug;
static double *out, *in;

// How many doubles go from one rank to another in a step.
static int amount(int from, int to, int step) {
    if (from + to == 3 && abs(from - to) == 1) return bug && step == 3 ? LARGE : 50;
    return (from + 1) % size == to ? 20 : 0;
}

static void send_scoped(int to, int count) {
    MPI_Request request;
    MPI_Isend(out, count, MPI_DOUBLE, to, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE); /* HERE */
}

static void receive_scoped(int from, int count) {
    MPI_Request request;
    MPI_Irecv(in, count, MPI_DOUBLE, from, 7, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void exchange(int step) {
    for (int to = 0; to < size; to++)
        if (to != rank && amount(rank, to, step) > 0) send_scoped(to, amount(rank, to, step));
    for (int from = 0; from < size; from++)
        if (from != rank && amount(from, rank, step) > 0) receive_scoped(from, amount(from, rank, step));
}

static long packets(int step) {
    long mine = 0, all = 0;
    for (int to = 0; to < size; to++) mine += to != rank && amount(rank, to, step) > 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    out = calloc(LARGE, sizeof *out);
    in = calloc(LARGE, sizeof *in);
    for (int step = 0; step < STEPS; step++) {
        exchange(step);
        long all = packets(step);
        if (rank == 0) printf("step %d: %ld packets\n", step, all);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
