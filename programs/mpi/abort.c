// Rank 1 calls MPI_Abort after a second, while the others compute, or wait for it.
// A right trace shows MPI_Abort open in rank 1, and in the others what they were at: nothing is lost.
#include <mpi.h>
#include <unistd.h>

static volatile double x = 1;
__attribute__((noinline)) void compute(void) {
    for (int i = 0; i < 100000; i++) x = x * 1.0000001;
}

int main(int argc, char **argv) {
    int rank, token;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) sleep(1), MPI_Abort(MPI_COMM_WORLD, 7);
    if (rank == 2) MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (;;) compute();
}
