// Mistakes in the use of MPI that need not show in a run: it ends, and the next one, or a larger one, does not;
// 4 ranks. The last three end the job.
//
//   lapses race            a receive from anybody could have taken what the next one needs
//   lapses heads           ranks 0 and 1 send to each other first
//   lapses order           rank 0 calls MPI_Bcast and MPI_Reduce in another order
//   lapses operation       rank 2 reduces with MPI_MAX
//   lapses unreceived      a message that nobody receives
//   lapses uncompleted     a receive that is begun and never waited for
//   lapses datatype        sent as MPI_INT, received as MPI_FLOAT
//   lapses communicator    a copy of the communicator that is not freed
//   lapses unfreed         a datatype, a group, a reduction and a persistent request that are not
//   lapses locked          the window of rank 1 is locked to the end
//   lapses fine            all of these things done right
//   lapses late            MPI_Barrier after MPI_Finalize
//   lapses peer            rank 0 sends to rank 7
//   lapses room            a message that is larger than the receive

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank;
static int value[8];
static MPI_Status status;

static void send(int to, int tag) {
  MPI_Send(value, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
}

static void receive(int from, int tag) {
  MPI_Recv(value, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &status);
}

static void race(void) {
  if (rank == 0) {
    MPI_Recv(value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
    receive(1, 3);
  } else if (rank == 1) {
    usleep(300000);
    send(0, 3);
  } else if (rank == 2) {
    send(0, 3);
  }
}

static void heads(void) {
  if (rank > 1) return;
  send(1 - rank, 3);
  receive(1 - rank, 3);
}

static void order(void) {
  int sum;
  if (rank == 0) MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Reduce(value, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank != 0) MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void operation(void) {
  int result;
  MPI_Allreduce(value, &result, 1, MPI_INT, rank == 2 ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
}

static void unreceived(void) {
  if (rank == 3) send(2, 5);
}

static void uncompleted(void) {
  MPI_Request request;
  if (rank == 0) send(1, 5);
  if (rank == 1) MPI_Irecv(value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
}

static void datatype(void) {
  float number;
  if (rank == 0) send(1, 5);
  if (rank == 1) MPI_Recv(&number, 1, MPI_FLOAT, 0, 5, MPI_COMM_WORLD, &status);
}

static void communicator(void) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Barrier(copy);
}

static void add(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *length; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void make(int frees) {
  MPI_Datatype type;
  MPI_Group group;
  MPI_Op op;
  MPI_Request request;
  MPI_Type_contiguous(4, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Op_create(add, 1, &op);
  MPI_Send_init(value, 1, MPI_INT, (rank + 1) % 4, 6, MPI_COMM_WORLD, &request);
  MPI_Start(&request);
  receive((rank + 3) % 4, 6);
  MPI_Wait(&request, &status);
  if (!frees) return;
  MPI_Request_free(&request);
  MPI_Op_free(&op);
  MPI_Group_free(&group);
  MPI_Type_free(&type);
}

static void unfreed(void) { make(0); }

static void lock(int unlocks) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window);
    if (unlocks) MPI_Win_unlock(1, window);
  }
  MPI_Win_free(&window);
}

static void locked(void) { lock(0); }

static void fine(void) {
  MPI_Comm copy;
  MPI_Request request;
  int sum;
  make(1);
  lock(1);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (rank == 0) {
    // Whose message it was decides whom it asks for the rest.
    for (int i = 1; i < 4; i++) {
      MPI_Recv(value, 1, MPI_INT, MPI_ANY_SOURCE, 3, copy, &status);
      MPI_Recv(value, 1, MPI_INT, status.MPI_SOURCE, 3, copy, &status);
    }
  } else {
    MPI_Send(value, 1, MPI_INT, 0, 3, copy);
    MPI_Isend(value, 1, MPI_INT, 0, 3, copy, &request);
    MPI_Wait(&request, &status);
  }
  MPI_Allreduce(value, &sum, 1, MPI_INT, MPI_SUM, copy);
  MPI_Comm_free(&copy);
}

static void late(void) {
  MPI_Finalize();
  MPI_Barrier(MPI_COMM_WORLD);
  exit(0);
}

static void peer(void) {
  if (rank == 0) send(7, 3);
  if (rank == 1) receive(0, 3);
}

static void room(void) {
  if (rank == 0) MPI_Send(value, 8, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(value, 2, MPI_INT, 0, 3, MPI_COMM_WORLD, &status);
}

static const struct {
  const char *name;
  void (*run)(void);
} KERNELS[] = {
    {"race", race},           {"heads", heads},
    {"order", order},         {"operation", operation},
    {"unreceived", unreceived}, {"uncompleted", uncompleted},
    {"datatype", datatype},   {"communicator", communicator},
    {"unfreed", unfreed},     {"locked", locked},
    {"fine", fine},           {"late", late},
    {"peer", peer},           {"room", room},
};

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
    if (argc > 1 && strcmp(KERNELS[i].name, argv[1]) == 0) KERNELS[i].run();
  }
  MPI_Finalize();
  return 0;
}
