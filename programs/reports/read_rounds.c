// After pmodels/mpich issue 6585: a two-phase read in rounds; a rank whose read fails returns before the last round.
//
// `bug`: rank 2 returns from two_phase() in the second of four rounds, without the MPI_Alltoall of that round, and goes
// to the MPI_Allreduce of agree(); the others wait for it in MPI_Alltoall.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4, CHUNK = 256 };

static int rank, size, bug;

static int read_chunk(int call, int round, int *chunk) {
    if (bug && rank == 2 && call == 1 && round == 1) return -1;
    for (int i = 0; i < CHUNK * size; i++) chunk[i] = rank * 1000 + call * 10 + round + i;
    return 0;
}

static int two_phase(int call, int *data) {
    int *chunk = malloc(sizeof(int) * CHUNK * size);
    int error = 0;
    for (int round = 0; round < ROUNDS; round++) {
        error = read_chunk(call, round, chunk);
        if (error < 0) break; /* HERE */
        MPI_Alltoall(chunk, CHUNK, MPI_INT, data, CHUNK, MPI_INT, MPI_COMM_WORLD); /* HERE */
    }
    free(chunk);
    return error;
}

static int agree(int error) {
    int worst = 0;
    MPI_Allreduce(&error, &worst, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD); /* HERE */
    return worst;
}

static long checksum(const int *data) {
    long mine = 0, sum = 0;
    for (int i = 0; i < CHUNK * size; i++) mine += data[i];
    MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    int *data = calloc((size_t)CHUNK * size, sizeof *data);
    for (int call = 0; call < 3; call++) {
        int error = two_phase(call, data);
        if (agree(error) < 0) {
            if (rank == 0) fprintf(stderr, "read %d failed\n", call);
            break;
        }
        long sum = checksum(data);
        if (rank == 0) printf("read %d: %ld\n", call, sum);
    }
    free(data);
    MPI_Finalize();
    return 0;
}
