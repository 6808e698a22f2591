// A program with a layer of its own between itself and MPI: MPI_Recv is its own function, and calls PMPI_Recv. 2 ranks.
//
//   profiled               rank 1 receives what rank 0 sends
//   profiled unreceived    but for the last message

#include <mpi.h>
#include <string.h>

static int calls;

int MPI_Recv(void *buffer, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status) {
  calls++;
  return PMPI_Recv(buffer, count, datatype, source, tag, comm, status);
}

int main(int argc, char **argv) {
  int rank, value = 0, messages = 4;
  int received = argc > 1 && strcmp(argv[1], "unreceived") == 0 ? messages - 1 : messages;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < messages; i++) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    if (rank == 1 && i < received) MPI_Recv(&value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
