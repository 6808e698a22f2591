// After open-mpi/ompi issue 6078: an array of requests of which only those of present neighbours are set.
//
// `bug`: rank 0 lies in a corner, has no neighbour to the left, and gives the MPI_Waitall of finish() a request that was
// never set: it dies there.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDES = 2, WIDTH = 128 };

struct halo {
    MPI_Request requests[2 * SIDES];
    double out[SIDES][WIDTH], in[SIDES][WIDTH];
};

static int rank, size, bug;

static int neighbour(int side) {
    int other = side == 0 ? rank - 1 : rank + 1;
    return other < 0 || other >= size ? MPI_PROC_NULL : other;
}

static void start(struct halo *halo, int step) {
    for (int side = 0; side < SIDES; side++) {
        int other = neighbour(side);
        if (other == MPI_PROC_NULL) {
            // In step 2 a new array has been made, and only the first run through it is cleared.
            if (!(bug && rank == 0 && step == 2)) {
                halo->requests[2 * side] = MPI_REQUEST_NULL;
                halo->requests[2 * side + 1] = MPI_REQUEST_NULL;
            }
            continue;
        }
        for (int i = 0; i < WIDTH; i++) halo->out[side][i] = rank + 0.1 * i + step;
        MPI_Irecv(halo->in[side], WIDTH, MPI_DOUBLE, other, 1 - side, MPI_COMM_WORLD, &halo->requests[2 * side]);
        MPI_Isend(halo->out[side], WIDTH, MPI_DOUBLE, other, side, MPI_COMM_WORLD, &halo->requests[2 * side + 1]);
    }
}

static void finish(struct halo *halo) {
    MPI_Waitall(2 * SIDES, halo->requests, MPI_STATUSES_IGNORE); /* HERE */
}

static struct halo *make_halo(void) {
    struct halo *halo = malloc(sizeof *halo);
    memset(halo, 0x5a, sizeof *halo); // As memory is that had another use.
    return halo;
}

static double residual(const struct halo *halo) {
    double mine = 0, most = 0;
    for (int side = 0; side < SIDES; side++)
        if (neighbour(side) != MPI_PROC_NULL) mine += halo->in[side][0];
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    for (int step = 0; step < 5; step++) {
        struct halo *halo = make_halo();
        start(halo, step);
        finish(halo);
        double most = residual(halo);
        if (rank == 0) printf("step %d: %g\n", step, most);
        free(halo);
    }
    MPI_Finalize();
    return 0;
}
