// After 4C-multiphysics/4C pull request 2058: sizes and data go with two tags, and the probe for sizes takes any tag.
//
// `bug`: rank 0 probes for a size with MPI_ANY_TAG and finds the data message of the fast rank 1: 1000 integers come
// into the room of one. MPI ends the job with "message truncated", in rank 0's MPI_Recv of receive_size().

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1234, DATA = 5678, MOST = 1000 };

static int rank, size, bug;

static int receive_size(int *from, int any_tag) {
    MPI_Status status;
    int count = 0;
    MPI_Probe(MPI_ANY_SOURCE, any_tag ? MPI_ANY_TAG : SIZE, MPI_COMM_WORLD, &status); /* HERE */
    MPI_Recv(&count, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* HERE */
    *from = status.MPI_SOURCE;
    return count;
}

static long collect(int step) {
    int counts[64] = {0};
    int *data = malloc(MOST * sizeof *data);
    long sum = 0;
    for (int other = 1; other < size; other++) {
        int from, count = receive_size(&from, bug && step == 2);
        counts[from] = count;
        usleep(1000);
    }
    for (int other = 1; other < size; other++) {
        MPI_Recv(data, counts[other], MPI_INT, other, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < counts[other]; i++) sum += data[i] + step;
    }
    free(data);
    return sum;
}

static void contribute(int step) {
    int count = MOST / (step % 2 + 1);
    int *data = malloc(count * sizeof *data);
    for (int i = 0; i < count; i++) data[i] = rank + i;
    // Rank 1 is on the near socket: both of its messages are there before the others' first.
    if (rank > 1 && step == 2) usleep(300000);
    MPI_Send(&count, 1, MPI_INT, 0, SIZE, MPI_COMM_WORLD);
    MPI_Send(data, count, MPI_INT, 0, DATA, MPI_COMM_WORLD);
    free(data);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    for (int step = 0; step < 4; step++) {
        if (rank == 0)
            printf("step %d: %ld\n", step, collect(step));
        else
            contribute(step);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
