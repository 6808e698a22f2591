// Many calls whose arguments never repeat: in round i every rank gives (i mod 7) + 1 numbers to the next
// one with tag i, and takes as many from the one before. 12000 rounds, in none of which anything is
// left to chance.
//
// A right trace has every call's arguments. Where only the last events are kept, it ends as the whole
// trace does, arguments included. Needs at least 2 ranks.

#include <mpi.h>

int main(int argc, char **argv) {
    int rank, ranks, sent[8] = {0}, got[8];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < 12000; i++) {
        MPI_Status status;
        MPI_Sendrecv(sent, i % 7 + 1, MPI_INT, next, i, got, 8, MPI_INT, before, i,
                     MPI_COMM_WORLD, &status);
    }
    MPI_Finalize();
    return 0;
}
