// Collective operations in which each rank says how much it has for, or expects of, each other: one of them is wrong.
// 3 ranks; mostly all come to their end, since less is sent than there is room for.
//
//   amounts alltoallv        rank 1 sends one integer to rank 2, which expects two
//   amounts alltoallv_kinds  rank 1 gives numbers of another kind than all others
//   amounts gatherv          rank 2 sends one integer, and the root expects two
//   amounts scatterv         the root has one integer for rank 2, which expects two
//   amounts allgatherv       rank 1 sends one integer, and all expect two
//   amounts reduce_scatter   rank 2 would have the results go elsewhere
//   amounts allgather        rank 1 sends one integer, and expects two of everybody
//   amounts alltoall         rank 1 sends numbers of another kind than all expect
//   amounts fine             all of these things done right, some of them in place

#include <mpi.h>
#include <string.h>

enum { RANKS = 3 };

static int rank;
static int from[16], to[16];
// Where an array means nothing, its address need not be one.
#define NOWHERE 0x123456789000
static const int at[RANKS] = {0, 4, 8};

static void alltoallv(int less) {
  int sent[RANKS] = {2, 2, 2}, expected[RANKS] = {2, 2, 2};
  if (rank == 1) sent[2] -= less;
  MPI_Alltoallv(from, sent, at, MPI_INT, to, expected, at, MPI_INT, MPI_COMM_WORLD);
}

static void alltoallv_kinds(int differs) {
  int each[RANKS] = {2, 2, 2};
  MPI_Datatype kind = rank == 1 && differs ? MPI_FLOAT : MPI_INT;
  MPI_Alltoallv(from, each, at, kind, to, each, at, kind, MPI_COMM_WORLD);
}

static void gatherv(int less) {
  int expected[RANKS] = {2, 2, 2};
  const int *counts = rank == 0 ? expected : (int *)NOWHERE;
  MPI_Gatherv(from, rank == 2 ? 2 - less : 2, MPI_INT, to, counts, at, MPI_INT, 0, MPI_COMM_WORLD);
}

static void scatterv(int less) {
  int sent[RANKS] = {2, 2, 2 - less};
  MPI_Scatterv(from, rank == 0 ? sent : (int *)NOWHERE, at, MPI_INT, to, 2, MPI_INT, 0, MPI_COMM_WORLD);
}

static void allgatherv(int less) {
  int expected[RANKS] = {2, 2, 2};
  MPI_Allgatherv(from, rank == 1 ? 2 - less : 2, MPI_INT, to, expected, at, MPI_INT, MPI_COMM_WORLD);
}

static void reduce_scatter(int more) {
  int counts[RANKS] = {1, 1, 1};
  if (rank == 2) counts[0] += more, counts[1] -= more;
  MPI_Reduce_scatter(from, to, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(int less) {
  MPI_Allgather(from, rank == 1 ? 2 - less : 2, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
}

static void alltoall(void) {
  MPI_Alltoall(from, 2, rank == 1 ? MPI_FLOAT : MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
}

static void fine(void) {
  int counts[RANKS] = {2, 2, 2};
  alltoallv(0);
  alltoallv_kinds(0);
  gatherv(0);
  scatterv(0);
  allgatherv(0);
  reduce_scatter(0);
  allgather(0);
  // What is in place has no counts, nor need there be an array of them.
  MPI_Alltoallv(MPI_IN_PLACE, (int *)NOWHERE, NULL, MPI_INT, to, counts, at, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgatherv(MPI_IN_PLACE, 7, MPI_INT, to, counts, at, MPI_INT, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 7, MPI_INT, to, 2, MPI_INT, MPI_COMM_WORLD);
  // As many, told otherwise.
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  MPI_Gatherv(from, 1, pair, to, counts, at, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Allgather(from, 1, pair, to, 2, MPI_INT, MPI_COMM_WORLD);
  MPI_Type_free(&pair);
  // Bytes stand for anything.
  MPI_Allgather(from, 4, MPI_BYTE, to, 1, MPI_INT, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  const char *lapse = argc > 1 ? argv[1] : "";
  int size;
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(lapse, "alltoallv") == 0) alltoallv(1);
  if (strcmp(lapse, "alltoallv_kinds") == 0) alltoallv_kinds(1);
  if (strcmp(lapse, "gatherv") == 0) gatherv(1);
  if (strcmp(lapse, "scatterv") == 0) scatterv(1);
  if (strcmp(lapse, "allgatherv") == 0) allgatherv(1);
  if (strcmp(lapse, "reduce_scatter") == 0) reduce_scatter(1);
  if (strcmp(lapse, "allgather") == 0) allgather(1);
  if (strcmp(lapse, "alltoall") == 0) alltoall();
  if (strcmp(lapse, "fine") == 0) fine();
  MPI_Finalize();
  return 0;
}
