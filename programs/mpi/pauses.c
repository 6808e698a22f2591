// A receive that waits 0.2 s for its message, a computation, a barrier; and what the program's own clock says before and behind
// each call, as in c/pauses.c, a line RANK NAME BEFORE BEHIND.
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
#include "../own_clock.h"

static int rank;

static struct {
  const char *name;
  unsigned long before, behind;
} said[1000];
static int count;

#define CLOCKED(function, ...)      \
  do {                              \
    unsigned long before = now();   \
    function(__VA_ARGS__);          \
    said[count].behind = now();     \
    said[count].before = before;    \
    said[count++].name = #function; \
  } while (0)

int main(int argc, char **argv) {
  struct reading first = reading();
  int value = 1;
  MPI_Request request;
  CLOCKED(MPI_Init, &argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int round = 0; round < 2; round++) {
    if (rank == 0) {
      CLOCKED(usleep, 200000);
      CLOCKED(MPI_Send, &value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    } else {
      CLOCKED(MPI_Recv, &value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 200; i++) {
      if (rank == 0)
        CLOCKED(MPI_Isend, &value, 1, MPI_INT, 1, i, MPI_COMM_WORLD, &request);
      else
        CLOCKED(MPI_Irecv, &value, 1, MPI_INT, 0, i, MPI_COMM_WORLD, &request);
      CLOCKED(MPI_Wait, &request, MPI_STATUS_IGNORE);
    }
    CLOCKED(MPI_Barrier, MPI_COMM_WORLD);
  }
  struct reading last = reading();
  FILE *out = fopen(rank ? "pauses.1" : "pauses.0", "w");
  for (int i = 0; i < count; i++)
    fprintf(out, "%s %ld %ld\n", said[i].name, scaled(said[i].before, first, last), scaled(said[i].behind, first, last));
  fclose(out);
  CLOCKED(MPI_Finalize);
  return 0;
}
