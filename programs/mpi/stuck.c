// Rank 1 waits for a message that nobody sends; the others wait for it in MPI_Barrier.
//
// A right trace of a run that was killed shows rank 1 inside MPI_Recv with count 5, MPI_LONG, source 0
// and tag 42, and every other rank inside MPI_Barrier.

#include <mpi.h>

int main(int argc, char **argv) {
    long numbers[5];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) MPI_Recv(numbers, 5, MPI_LONG, 0, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
