// Calls of one function from two lines of one caller.
//
//   two_lines [early]
//
// A right trace has, in each of 20 steps, MPI_Barrier and then MPI_Allreduce. With `early`, rank 1 calls MPI_Allreduce
// before MPI_Barrier from step 10 on: from the first of the two lines that call it, where all others use the second.

#include <mpi.h>

__attribute__((noinline)) static int step(int early) {
    int own = 1, sum = 0;
    if (early) MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_SELF);
    if (!early) MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    return sum;
}

int main(int argc, char **argv) {
    int rank, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) sum += step(argc > 1 && rank == 1 && i >= 10);
    MPI_Finalize();
    return sum != 20;
}
