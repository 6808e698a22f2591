// Mistakes with windows, between which and how much of them is accessed; 4 ranks.
//
//   windows outside     rank 0 puts behind the last element of the window of rank 1
//   windows columns     rank 0 puts to every other element of rank 2, and rank 1 gets one of these
//   windows reductions  ranks 0 and 1 accumulate one element of rank 2, by addition and by multiplication
//   windows flushed     MPI_Win_flush between fences
//   windows unfenced    MPI_Win_lock after a put that no fence has ended
//   windows own         rank 0 gets and puts one element of rank 1 under a lock that it has alone
//   windows counted     all but rank 1 add to an element of it by a get and a put under locks that they share
//   windows attached    ranks 0 and 2 put to one place of memory that rank 1 attached
//   windows unended     the window is freed after a put that no fence has ended
//   windows outsider    rank 0 puts to rank 2 in an epoch for rank 1
//   windows reposted    rank 1 posts twice
//   windows fine        all of these things done right

#include <mpi.h>
#include <string.h>

enum { ELEMENTS = 16 };

static int rank;
static int part[ELEMENTS];
static int value[4];
static MPI_Win window;

static void put(int to, int at) {
  if (rank == 0) MPI_Put(value, 1, MPI_INT, to, at, 1, MPI_INT, window);
}

static void last(int at) {
  MPI_Win_fence(0, window);
  put(1, at);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

static void outside(void) { last(ELEMENTS); }

static void every_other(int gets_at) {
  MPI_Datatype column;
  MPI_Type_vector(4, 1, 2, MPI_INT, &column);
  MPI_Type_commit(&column);
  MPI_Win_fence(0, window);
  if (rank == 0) MPI_Put(value, 4, MPI_INT, 2, 0, 1, column, window); // a column
  if (rank == 1) MPI_Get(value, 1, MPI_INT, 2, gets_at, 1, MPI_INT, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Type_free(&column);
}

static void columns(void) { every_other(4); }

static void accumulate(MPI_Op other) {
  MPI_Win_fence(0, window);
  if (rank < 2) MPI_Accumulate(value, 1, MPI_INT, 2, 0, 1, MPI_INT, rank ? other : MPI_SUM, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

static void reductions(void) { accumulate(MPI_PROD); }

static void flush(int locks) {
  if (!locks) MPI_Win_fence(0, window);
  if (rank == 0 && locks) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
  put(1, 0);
  if (rank == 0) MPI_Win_flush(1, window);
  if (rank == 0 && locks) MPI_Win_unlock(1, window);
  if (!locks) MPI_Win_fence(0, window);
}

static void flushed(void) { flush(0); }

static void lock(int fences) {
  MPI_Win_fence(0, window);
  put(1, 0);
  if (fences) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
  put(1, 1);
  if (rank == 0) MPI_Win_unlock(1, window);
  if (!fences) MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void unfenced(void) { lock(0); }

static void own(int flushes) {
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    MPI_Get(value, 2, MPI_INT, 1, 0, 2, MPI_INT, window); // before the put
    if (flushes) MPI_Win_flush(1, window);
    MPI_Put(&value[2], 2, MPI_INT, 1, 1, 2, MPI_INT, window);
    MPI_Win_unlock(1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void gets_and_puts(void) { own(0); }

static void count(int lock) {
  if (rank != 1) {
    MPI_Win_lock(lock, 1, 0, window);
    MPI_Get(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window); // reads
    MPI_Win_flush(1, window);
    value[0]++;
    MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_unlock(1, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void counted(void) { count(MPI_LOCK_SHARED); }

static void attach(int apart) {
  static int memory[4];
  MPI_Win dynamic;
  MPI_Aint at;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
  MPI_Win_attach(dynamic, memory, sizeof memory);
  MPI_Get_address(memory, &at);
  MPI_Bcast(&at, 1, MPI_AINT, 1, MPI_COMM_WORLD);
  if (rank == 2) at = MPI_Aint_add(at, apart * (MPI_Aint)sizeof *memory);
  MPI_Win_fence(0, dynamic);
  if (rank % 2 == 0) MPI_Put(value, 1, MPI_INT, 1, at, 1, MPI_INT, dynamic); // attached
  MPI_Win_fence(MPI_MODE_NOSUCCEED, dynamic);
  MPI_Win_detach(dynamic, memory);
  MPI_Win_free(&dynamic);
}

static void attached(void) { attach(0); }

static void unended(void) {
  MPI_Win_fence(0, window);
  put(1, 0);
}

// An epoch of rank 0 for rank 1, which it lets in so often.
static void introduced(int to, int posts) {
  MPI_Group all, zero, one;
  int ranges[2][3] = {{0, 0, 1}, {2, 3, 1}}, first = 0;
  MPI_Win_get_group(window, &all);
  MPI_Group_incl(all, 1, &first, &zero);
  MPI_Group_range_excl(all, 2, ranges, &one);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  if (rank == 0) {
    MPI_Win_start(one, 0, window);
    put(to, 0);
    MPI_Win_complete(window);
  }
  if (rank == 1) {
    for (int i = 0; i < posts; i++) MPI_Win_post(zero, 0, window); // lets rank 0 in
    MPI_Win_wait(window);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&zero);
  MPI_Group_free(&one);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void outsider(void) { introduced(2, 1); }
static void reposted(void) { introduced(1, 2); }

static void fine(void) {
  last(ELEMENTS - 1);
  every_other(3);
  accumulate(MPI_SUM);
  flush(1);
  MPI_Barrier(MPI_COMM_WORLD);
  lock(1);
  own(1);
  count(MPI_LOCK_EXCLUSIVE);
  attach(1);
  introduced(1, 1);
}

static const struct {
  const char *name;
  void (*run)(void);
} CASES[] = {
    {"outside", outside},
    {"columns", columns},
    {"reductions", reductions},
    {"flushed", flushed},
    {"unfenced", unfenced},
    {"own", gets_and_puts},
    {"counted", counted},
    {"attached", attached},
    {"unended", unended},
    {"outsider", outsider},
    {"reposted", reposted},
    {"fine", fine},
};

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win_create(part, sizeof part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    if (strcmp(CASES[i].name, name) == 0) CASES[i].run();
  }
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
