// Sums up a tree of ranks and down again, eight times. With an argument, rank 4 does not tell its last child in round 6: rank 5 waits
// for that, rank 4 for the next sum of rank 5, and rank 6 has sent its own, which nobody received.

#include <mpi.h>
#include <stdio.h>

static int rank, size;

__attribute__((noinline)) static int receive(int from) {
    int value;
    MPI_Recv(&value, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return value;
}

__attribute__((noinline)) static void give(int to, int value) { MPI_Send(&value, 1, MPI_INT, to, 0, MPI_COMM_WORLD); }

__attribute__((noinline)) static int up(int value) {
    for (int step = 1; step < size; step *= 2) {
        if (rank & step) {
            give(rank - step, value);
            break;
        }
        if (rank + step < size) value += receive(rank + step);
    }
    return value;
}

__attribute__((noinline)) static int down(int value, int forgets) {
    int step = 1;
    while (step < size && !(rank & step)) step *= 2;
    if (rank) value = receive(rank - step);
    for (step /= 2; step >= 1; step /= 2) {
        if (forgets && step == 1) break;
        if (rank + step < size) give(rank + step, value);
    }
    return value;
}

int main(int argc, char **argv) {
    int sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 1; round <= 8; round++) sum += down(up(rank), argc > 1 && rank == 4 && round == 6);
    if (rank == 0) printf("%d\n", sum);
    MPI_Finalize();
    return 0;
}
