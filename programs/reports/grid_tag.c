// After IPPL-framework/ippl issue 90: tags come round after so many messages, and the tag of the partner beyond the
// periodic boundary is worked out without that.
//
// `bug`: in the step after the tags have come round, rank 0 expects a message from the last rank with tag 1512 where tag
// 512 is sent: it waits in the MPI_Recv of receive_periodic(). The others wait for it in MPI_Allreduce.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TAG = 512, CYCLE = 10, CELLS = 64 };

static int rank, size, bug, message;
static double field[CELLS + 2];

static int next_tag(void) {
    int tag = FIRST_TAG + message;
    message = (message + 1) % CYCLE;
    return tag;
}

// The tag that the partner on the other side of the boundary uses for its next message.
static int matching_tag(int mine) {
    int last = FIRST_TAG + CYCLE - 1;
    if (bug && message == 1) return FIRST_TAG + 1000;
    return mine <= last ? mine : FIRST_TAG;
}

static void receive_inner(int from, int tag) {
    MPI_Recv(&field[0], 1, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void receive_periodic(int from, int tag) {
    int expected = matching_tag(tag);
    MPI_Recv(&field[0], 1, MPI_DOUBLE, from, expected, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* HERE */
}

static void fill_halo(void) {
    MPI_Request request;
    int above = (rank + 1) % size, below = (rank + size - 1) % size, tag = next_tag();
    MPI_Isend(&field[CELLS], 1, MPI_DOUBLE, above, tag, MPI_COMM_WORLD, &request);
    if (rank == 0 && message > 0)
        receive_periodic(below, tag);
    else
        receive_inner(below, tag);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static double relax(void) {
    double mine = 0, all = 0;
    for (int i = 1; i <= CELLS; i++) field[i] = 0.5 * (field[i - 1] + field[i]), mine += field[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    double sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    message = 4;
    for (int i = 0; i < CELLS + 2; i++) field[i] = rank + i;
    for (int step = 0; step < 24; step++) {
        fill_halo();
        sum = relax();
    }
    if (rank == 0) printf("sum %g\n", sum);
    MPI_Finalize();
    return 0;
}
