// Ranks 0 and 1 are busy so many times, and wait for each other then. The others are busy for ever.
//
//   polling polls N    they poll for a message that nobody sends; the others send each other one now and then
//   polling rounds N   they exchange messages, by MPI_Sendrecv
//   polling halo N     they exchange messages, by MPI_Irecv, MPI_Isend and MPI_Waitall
//   polling halo N M   the others exchange M messages, and wait in a barrier then (rounds, too)
//
// Rank 0 writes the time at which it begins to wait, in seconds since 1970. A right trace of a run that was
// ended later shows ranks 0 and 1 in MPI_Recv.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, given, got, splits;

static void exchange(int tag) {
    if (splits) {
        MPI_Request both[2];
        MPI_Irecv(&got, 1, MPI_INT, rank ^ 1, tag, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(&given, 1, MPI_INT, rank ^ 1, tag, MPI_COMM_WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        return;
    }
    MPI_Sendrecv(&given, 1, MPI_INT, rank ^ 1, tag, &got, 1, MPI_INT, rank ^ 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    splits = argc > 1 && strcmp(argv[1], "halo") == 0;
    int flag, talks = splits || argc > 1 && strcmp(argv[1], "rounds") == 0;
    long times = argc > 2 ? atol(argv[2]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 2) {
        for (long i = 0; i < times; i++) {
            if (talks) exchange(3);
            else MPI_Iprobe(rank ^ 1, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        }
        exchange(5);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (rank == 0) fprintf(stderr, "waits since %ld.%03ld\n", (long)now.tv_sec, now.tv_nsec / 1000000);
        MPI_Recv(&got, 1, MPI_INT, rank ^ 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    long most = argc > 3 ? atol(argv[3]) : 0;
    for (long i = 0; talks && i < most; i++) exchange(3);
    if (most) MPI_Barrier(MPI_COMM_WORLD);
    while (talks) exchange(3);
    for (;;) {
        MPI_Request both[2];
        MPI_Irecv(&got, 1, MPI_INT, rank ^ 1, 3, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(&given, 1, MPI_INT, rank ^ 1, 3, MPI_COMM_WORLD, &both[1]);
        do MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE); while (!flag);
        for (int i = 0; i < 1000; i++) MPI_Iprobe(rank ^ 1, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}
