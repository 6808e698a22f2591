// Arguments that go by a rule from round to round, which one rank leaves or two do. 4 ranks; each talks to itself, so that all come
// to their end.
//
//   series fine        nobody
//   series place       rank 1 puts three places too far
//   series tag         rank 3 counts its tag one round ahead, once
//   series copy        rank 2 talks in a copy of the world
//   series columns     rank 3 adds up over its column first, and rank 0 with it, once
//   series any         rank 0 takes from anybody
//   series base N      all ranks count tags from N
//   series data N      how much is sent follows from N, another in each round and rank

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 8, PLACES = 64 };

static int rank, number;
static const char *fault = "fine";
static MPI_Comm copy, row, column;
static MPI_Win window;

static int is(const char *name, int who) { return rank == who && strcmp(fault, name) == 0; }

static void put(int round) {
  double value = round;
  MPI_Aint place = rank * 8 + round;
  if (is("place", 1)) place += 3;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  MPI_Put(&value, 1, MPI_DOUBLE, rank, place, 1, MPI_DOUBLE, window);
  MPI_Win_unlock(rank, window);
}

static void talk(int round) {
  static int sent[PLACES], received[PLACES];
  int tag = round, source = rank, count = 4;
  MPI_Comm talking = MPI_COMM_WORLD;
  MPI_Request request;
  if (is("tag", 3) && round == 4) tag += 1;
  if (is("copy", 2)) talking = copy;
  if (is("any", 0)) source = MPI_ANY_SOURCE;
  if (strcmp(fault, "base") == 0) tag += number;
  if (strcmp(fault, "data") == 0) count = 1 + (number * 7919 + rank * 104729 + round * round * 1299709) % 61;
  MPI_Irecv(received, PLACES, MPI_INT, source, tag, talking, &request);
  MPI_Send(sent, count, MPI_INT, rank, tag, talking);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static double add(double value, MPI_Comm which) {
  double sum;
  MPI_Allreduce(&value, &sum, 1, MPI_DOUBLE, MPI_SUM, which);
  return sum;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc > 1) fault = argv[1];
  if (argc > 2) number = atoi(argv[2]);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &row);
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &column);
  double *places;
  MPI_Win_allocate(PLACES * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &places, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  double value = rank;
  for (int round = 1; round <= ROUNDS; round++) {
    int swaps = strcmp(fault, "columns") == 0 && (rank == 0 || rank == 3) && round == 3;
    put(round);
    talk(round);
    value += add(value, swaps ? column : row);
    value -= add(value, swaps ? row : column);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
