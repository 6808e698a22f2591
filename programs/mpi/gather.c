// Every rank sends one number to rank 0, which receives them in the order of the ranks.
//
// A right trace shows MPI_Init MPI_Comm_rank MPI_Comm_size, then in rank 0 one MPI_Recv for each
// other rank and in those a single MPI_Send, then MPI_Finalize: two kinds of rank, told apart by
// nothing but MPI_Recv and MPI_Send.

#include <mpi.h>
#include <stdio.h>

int gather(int ranks) {
    int sum = 0;
    for (int from = 1; from < ranks; from++) {
        int number;
        MPI_Recv(&number, 1, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += number;
    }
    return sum;
}

void give(int rank) {
    int number = rank * rank;
    MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0) printf("sum %d\n", gather(ranks));
    else give(rank);
    MPI_Finalize();
    return 0;
}
