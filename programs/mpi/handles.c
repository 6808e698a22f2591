// Mistakes with what MPI gave a name to: matched messages, requests, and what was freed; 2 ranks.
//
//   handles unreceived   a message that MPI_Mprobe took, and that nobody receives
//   handles uncompleted  MPI_Imrecv of it, never waited for
//   handles restarted    MPI_Start of a request that is not persistent
//   handles datatype     a datatype is used after it was freed
//   handles reduction    a reduction is
//   handles communicator a communicator is
//   handles fine         all of these things done right
//   handles threads      a thread waits for a request of another, which is right, too

#include <mpi.h>
#include <pthread.h>
#include <string.h>

static int rank;
static int value[4];
static MPI_Request request = MPI_REQUEST_NULL;

static void take(int receives, int waits) {
  MPI_Message message;
  if (rank == 0) MPI_Send(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 0) return;
  MPI_Mprobe(0, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  if (receives) MPI_Imrecv(value, 1, MPI_INT, &message, &request);
  if (waits) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void unreceived(void) { take(0, 0); }
static void uncompleted(void) { take(1, 0); }

static void restarted(void) {
  if (rank == 0) MPI_Irecv(value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD, &request);
  if (rank == 0) MPI_Start(&request);
  if (rank == 1) MPI_Send(value, 1, MPI_INT, 0, 4, MPI_COMM_WORLD);
  if (rank == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void pairs(int frees) {
  MPI_Datatype pair, old;
  MPI_Type_contiguous(2, MPI_INT, &pair);
  MPI_Type_commit(&pair);
  old = pair;
  if (frees) MPI_Type_free(&pair);
  if (rank == 0) MPI_Send(value, 1, old, 1, 5, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(value, 2, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!frees) MPI_Type_free(&pair);
}

static void datatype(void) { pairs(1); }

static void add(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void reduce(int frees) {
  MPI_Op sum, old;
  int all;
  MPI_Op_create(add, 1, &sum);
  old = sum;
  if (frees) MPI_Op_free(&sum);
  MPI_Allreduce(value, &all, 1, MPI_INT, old, MPI_COMM_WORLD);
  if (!frees) MPI_Op_free(&sum);
}

static void reduction(void) { reduce(1); }

static void meet(int frees) {
  MPI_Comm copy, old;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  old = copy;
  if (frees) MPI_Comm_free(&copy);
  MPI_Comm_size(old, value);
  if (!frees) MPI_Comm_free(&copy);
}

static void communicator(void) { meet(1); }

// Two names of one group: each is freed.
static void groups(void) {
  MPI_Group one, two, first;
  int ranks[] = {0};
  MPI_Comm_group(MPI_COMM_WORLD, &one);
  MPI_Comm_group(MPI_COMM_WORLD, &two);
  MPI_Group_free(&one);
  MPI_Group_incl(two, 1, ranks, &first);
  MPI_Group_free(&first);
  MPI_Group_free(&two);
}

static void *wait_for_it(void *nothing) {
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return nothing;
}

static void threads(void) {
  pthread_t thread;
  if (rank == 0) MPI_Send(value, 1, MPI_INT, 1, 6, MPI_COMM_WORLD);
  if (rank == 0) return;
  MPI_Irecv(value, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &request);
  pthread_create(&thread, NULL, wait_for_it, NULL);
  pthread_join(thread, NULL);
}

static void fine(void) {
  take(1, 1);
  for (int i = 0; i < 3; i++) pairs(0);
  for (int i = 0; i < 3; i++) reduce(0);
  for (int i = 0; i < 3; i++) meet(0);
  groups();
}

static const struct {
  const char *name;
  void (*run)(void);
} CASES[] = {
    {"unreceived", unreceived}, {"uncompleted", uncompleted},   {"restarted", restarted},
    {"datatype", datatype},     {"reduction", reduction},       {"communicator", communicator},
    {"fine", fine},             {"threads", threads},
};

int main(int argc, char **argv) {
  int given;
  const char *name = argc > 1 ? argv[1] : "";
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    if (strcmp(CASES[i].name, name) == 0) CASES[i].run();
  }
  MPI_Finalize();
  return 0;
}
