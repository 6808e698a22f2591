// Ranks 0 and 1 poll for a message that nobody sends, POLLS times, and wait for each other then. The others poll too,
// and send each other a message now and then, for ever.
//
//   polling [POLLS]
//
// Rank 0 writes the time at which it begins to wait, in seconds since 1970. A right trace of a run that was
// ended later shows ranks 0 and 1 in MPI_Recv.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    int rank, flag, given = 0, got;
    long polls = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank < 2) {
        for (long i = 0; i < polls; i++) MPI_Iprobe(rank ^ 1, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&given, 1, MPI_INT, rank ^ 1, 5, &got, 1, MPI_INT, rank ^ 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        if (rank == 0) fprintf(stderr, "waits since %ld.%03ld\n", (long)now.tv_sec, now.tv_nsec / 1000000);
        MPI_Recv(&got, 1, MPI_INT, rank ^ 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (;;) {
        MPI_Request both[2];
        MPI_Irecv(&got, 1, MPI_INT, rank ^ 1, 3, MPI_COMM_WORLD, &both[0]);
        MPI_Isend(&given, 1, MPI_INT, rank ^ 1, 3, MPI_COMM_WORLD, &both[1]);
        do MPI_Testall(2, both, &flag, MPI_STATUSES_IGNORE); while (!flag);
        for (int i = 0; i < 1000; i++) MPI_Iprobe(rank ^ 1, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}
