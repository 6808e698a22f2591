// Mistakes in the use of MPI that need not show in a run: it ends, and the next one, or a larger one, does not;
// 4 ranks. The last twelve end the job. A number behind the name: so many seconds go by before the end.
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
//   lapses objects         an info object, an error handler and an attribute key that are not freed
//   lapses threads         a thread receives, though MPI_THREAD_FUNNELED was asked for
//   lapses unmade          rank 1 waits for a request of nobody
//   lapses omitted         rank 2 leaves a small message out, and the next one is too large for who waits for it
//   lapses misnumbered     rank 2 sends it with another tag
//   lapses restarted       a persistent receive is started while it runs
//   lapses relocked        the window of rank 1 is locked twice
//   lapses unbuffered      MPI_Bsend without a buffer
//   lapses conflict        ranks 0 and 2 put to one place between two fences
//   lapses shared          ranks 0 and 2 put to one place under shared locks
//   lapses ordered         they do, and operations of a communicator order them
//   lapses unready         MPI_Rsend before the receive
//   lapses lines           the third of four sends has a tag of its own
//   lapses elements        sent as a vector of doubles, received as integers
//   lapses structure       sent as an integer and a double, received the other way round
//   lapses returned        rank 0 sends to rank 7, and errors are returned
//   lapses attached        a buffer is attached where there is one
//   lapses unwaited        a read of a file that is begun and never waited for
//   lapses readonly        a write to a file that was opened for reading
//   lapses unclosed        a file that is not closed
//   lapses given_up        the request of a receive is freed before it is over
//   lapses cancelled       a receive is cancelled, and what was meant for it comes later
//   lapses exposed         a window is exposed, and that never ends
//   lapses unstarted       a persistent receive is waited for and freed, never started
//   lapses split           an operation on a file that one call begins, and none ends
//   lapses dims            rank 3 makes a grid of another form
//   lapses periods         or one that is not closed to a ring
//   lapses last            MPI_Put behind the last fence, and errors are returned
//   lapses nobody          MPI_Reduce to nobody, and errors are returned
//   lapses ends            what is put is not of the target's type, and errors are returned
//   lapses nofile          a file is read that could not be opened
//   lapses unfinalized     no MPI_Finalize
//   lapses fine            all of these things done right
//   lapses late            MPI_Barrier after MPI_Finalize
//   lapses peer            rank 0 sends to rank 7
//   lapses room            a message that is larger than the receive
//   lapses freed           MPI_Barrier in a communicator that was freed
//   lapses again           MPI_Init twice
//   lapses scattered       rank 2 has too little room for what MPI_Scatter brings
//   lapses gathered        the root of MPI_Gather has too little room for what the others send
//   lapses neighbours      rank 3 sends its neighbours in a ring two elements, and the others send one
//   lapses epoch           MPI_Put without an epoch
//   lapses unlocked        MPI_Win_unlock of what was not locked
//   lapses copied          MPI_Wait for a copy of a request that is over
//   lapses early           MPI_Comm_size before MPI_Init

#include <mpi.h>
#include <pthread.h>
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
  int sent = rank;
  MPI_Send_init(&sent, 1, MPI_INT, (rank + 1) % 4, 6, MPI_COMM_WORLD, &request);
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

static void handles(int frees) {
  MPI_Info info;
  MPI_Errhandler handler;
  int key;
  MPI_Info_create(&info);
  MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)abort, &handler);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  if (!frees) return;
  MPI_Info_free(&info);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free_keyval(&key);
}

static void objects(void) { handles(0); }

static void *other_thread(void *nothing) {
  receive(0, 3);
  return nothing;
}

static void threads(void) {
  pthread_t thread;
  if (rank == 0) send(1, 3);
  if (rank != 1) return;
  pthread_create(&thread, NULL, other_thread, NULL);
  pthread_join(thread, NULL);
}

static void unmade(void) {
  MPI_Request request;
  if (rank != 1) return;
  memset(&request, 0x11, sizeof request);
  MPI_Wait(&request, &status); // that no call made
}

// Each pair of ranks: a large message, and a small one.
static void exchanges(int missing, int tag) {
  static int large[200], small[2];
  int peer = rank ^ 1;
  for (int step = 0; step < 20; step++) {
    MPI_Request request;
    int is_it = rank == 2 && step == 12;
    MPI_Irecv(large, 100, MPI_INT, peer, 1, MPI_COMM_WORLD, &request);
    MPI_Send(large + 100, 100, MPI_INT, peer, 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    MPI_Irecv(small, 1, MPI_INT, peer, 1, MPI_COMM_WORLD, &request);
    if (!is_it || !missing)
      MPI_Send(small + 1, 1, MPI_INT, peer, is_it ? tag : 1, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
  }
}

static void omitted(void) { exchanges(1, 1); }
static void misnumbered(void) { exchanges(0, 77); }

static void persistent(int starts) {
  MPI_Request request;
  // Not before it was started as often as it is: else the last start would wait for another one.
  if (rank == 1 && starts) {
    MPI_Recv(NULL, 0, MPI_INT, 0, 4, MPI_COMM_WORLD, &status);
    send(0, 3);
  }
  if (rank != 0) return;
  MPI_Recv_init(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
  for (int i = 0; i < starts; i++)
    MPI_Start(&request);
  if (starts) MPI_Send(NULL, 0, MPI_INT, 1, 4, MPI_COMM_WORLD);
  MPI_Wait(&request, &status);
  MPI_Request_free(&request); // at rest
}

static void restarted(void) { persistent(2); }

static void relocked(void) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window); // the second lock
    MPI_Win_unlock(1, window);
  }
  MPI_Win_free(&window);
}

static void buffered(int attaches) {
  static char buffer[1000 + MPI_BSEND_OVERHEAD];
  void *last;
  int size;
  if (attaches) MPI_Buffer_attach(buffer, sizeof buffer);
  if (rank == 0) MPI_Bsend(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) receive(0, 3);
  if (attaches) MPI_Buffer_detach(&last, &size);
}

static void unbuffered(void) { buffered(0); }

// What was meant for a receive that was cancelled comes after it, or instead of it, or finds another receive.
static void cancel(int waits) {
  MPI_Request request;
  if (rank == 0) {
    MPI_Irecv(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) send(0, 3);
  if (rank == 0 && waits) receive(1, 3);
}

static void cancelled(void) { cancel(0); }

// Nobody asks how it ended.
static void let_go(void) {
  MPI_Request request;
  MPI_Irecv(value, 1, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &request);
  MPI_Cancel(&request);
  MPI_Request_free(&request);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Messages that a probe takes which does not wait are received.
static void matched(void) {
  MPI_Message message;
  MPI_Request request;
  int flag;
  if (rank == 1)
    for (int i = 0; i < 2; i++) MPI_Ssend(value, 1, MPI_INT, 0, 3 + i, MPI_COMM_WORLD);
  for (int left = 2; rank == 0 && left > 0; left -= flag) {
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
    if (!flag) continue;
    if (left == 2) {
      MPI_Mrecv(value, 1, MPI_INT, &message, &status);
    } else {
      MPI_Imrecv(value, 1, MPI_INT, &message, &request);
      MPI_Wait(&request, &status);
    }
  }
}

// Rank 0 receives what is there first, in any order, which need not be that of rank 1: with other timing it is the other.
static void either(void) {
  int flag, had[2] = {0, 0};
  if (rank == 1) {
    send(0, 3);
    send(0, 4);
  }
  if (rank == 0) usleep(300000);
  for (int i = 1; rank == 0 && !(had[0] && had[1]); i = 1 - i) {
    MPI_Iprobe(1, 3 + i, MPI_COMM_WORLD, &flag, &status);
    if (flag) receive(1, status.MPI_TAG);
    had[i] |= flag;
  }
}

// Rank 0 puts to rank 1 between MPI_Win_start and MPI_Win_complete.
static void expose(int waits) {
  MPI_Win window;
  MPI_Group all, other;
  int peer = 1 - rank, flag = 0;
  MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  if (rank < 2) {
    MPI_Group_incl(all, 1, &peer, &other);
    for (int i = 0; i < 2; i++) {
      if (rank == 0) {
        MPI_Win_start(other, 0, window);
        MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        MPI_Win_complete(window);
      } else {
        MPI_Win_post(other, 0, window); // exposes
        if (i == 0) MPI_Win_wait(window);
        while (i == 1 && waits && !flag) MPI_Win_test(window, &flag);
      }
    }
    MPI_Group_free(&other);
  }
  MPI_Group_free(&all);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

static void exposed_for_ever(void) { expose(0); }

static void unstarted(void) { persistent(0); }

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

// Ranks 0 and 2 put to bytes of rank 1 that overlap, in order or not.
static void put(int in_order) {
  MPI_Win window;
  static int memory[8];
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (rank == 0) MPI_Put(value, 4, MPI_INT, 1, 0, 4, MPI_INT, window);
  if (in_order) MPI_Win_fence(0, window);
  if (rank == 2) MPI_Put(value, 4, MPI_INT, 1, 2, 4, MPI_INT, window);
  MPI_Win_fence(0, window);
  if (in_order) {
    MPI_Accumulate(value, 4, MPI_INT, 1, 0, 4, MPI_INT, MPI_SUM, window);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    for (int turn = 0; turn < 4; turn++) {
      meet();
      if (turn != rank) continue;
      MPI_Win_lock(MPI_LOCK_SHARED, 3, 0, window);
      MPI_Put(value, 4, MPI_INT, 3, 0, 4, MPI_INT, window);
      MPI_Win_flush(3, window);
      MPI_Put(value, 4, MPI_INT, 3, 0, 4, MPI_INT, window);
      MPI_Win_unlock(3, window);
    }
  }
  MPI_Win_free(&window);
}

static void conflict(void) { put(0); }

// A window that only rank 0 exposes, by the element: each of the others has its own.
static void exposed(void) {
  static int memory[4];
  MPI_Win window;
  if (rank == 0)
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  else
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(value, 1, MPI_INT, 0, rank, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void put_shared(MPI_Win window) {
  MPI_Win_lock(MPI_LOCK_SHARED, 3, 0, window);
  MPI_Put(value, 2, MPI_INT, 3, 0, 2, MPI_INT, window);
  MPI_Win_unlock(3, window);
}

static void add_one(MPI_Win window) {
  MPI_Win_lock(MPI_LOCK_SHARED, 3, 0, window);
  MPI_Get(value, 1, MPI_INT, 3, 0, 1, MPI_INT, window);
  MPI_Win_flush_local(3, window);
  MPI_Put(value, 1, MPI_INT, 3, 0, 1, MPI_INT, window);
  MPI_Win_unlock(3, window);
}

// Puts of ranks 0 and 2 to one place, which operations of a communicator order, each in another way.
static void ordered(void) {
  static int memory[4];
  MPI_Win window;
  MPI_Comm copy;
  MPI_Request request;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  for (int way = 0; way < 4; way++) {
    if (rank == 0) put_shared(window);
    if (way == 0) MPI_Barrier(copy);
    if (way == 1) MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (way == 1) MPI_Wait(&request, &status);
    if (way == 2) MPI_Bcast(value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (way == 3) MPI_Win_fence(0, window);
    if (rank == 2) put_shared(window);
    meet();
  }
  if (rank == 2) add_one(window);
  MPI_Win_free(&window);
  MPI_Comm_free(&copy);
}

// Puts of ranks 0 and 2 to one place under locks that both may have, in one phase.
static void shared(void) {
  static int memory[4];
  MPI_Win window;
  MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank % 2 == 0) put_shared(window);
  MPI_Win_free(&window);
}

// A ready send, whose receive has begun before where a message says so.
static void ready(int waits) {
  MPI_Request request;
  int got;
  if (rank == 0) {
    if (waits) receive(1, 6);
    MPI_Rsend(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    MPI_Irecv(&got, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    if (waits) send(0, 6);
    MPI_Wait(&request, &status);
  }
}

static void unready(void) { ready(0); }

// Two sends that are complete at once may have one request.
static void twins(void) {
  MPI_Request requests[4];
  int left = (rank + 3) % 4, right = (rank + 1) % 4;
  for (int i = 0; i < 3; i++) {
    MPI_Irecv(value, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(value + 1, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(value + 2, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(value + 3, 1, MPI_INT, left, 8, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
}

// A send that nobody asks about again, beside one that is waited for.
static void forgotten(void) {
  MPI_Request forgotten, waited;
  int left = (rank + 3) % 4, right = (rank + 1) % 4;
  for (int i = 0; i < 3; i++) {
    MPI_Isend(value, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &forgotten);
    MPI_Isend(value + 1, 1, MPI_INT, right, 8, MPI_COMM_WORLD, &waited);
    MPI_Request_free(&forgotten);
    receive(left, 7);
    receive(left, 8);
    MPI_Wait(&waited, &status);
  }
}

// More requests in one call than are recorded: messages to itself, and persistent ones.
static void crowd(void) {
  enum { MANY = 70 };
  static int got[MANY];
  MPI_Request requests[2 * MANY];
  for (int i = 0; i < MANY; i++) {
    MPI_Irecv(&got[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Isend(value, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[MANY + i]);
  }
  MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < MANY; i++) {
    MPI_Recv_init(&got[i], 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Send_init(value, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[MANY + i]);
  }
  for (int i = 0; i < 2; i++) {
    MPI_Startall(MANY / 2, requests);
    MPI_Startall(MANY / 2, requests + MANY / 2);
    for (int it = MANY; it < 2 * MANY; it++) MPI_Start(&requests[it]);
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2 * MANY; i++) MPI_Request_free(&requests[i]);
}

static void lines(void) {
  if (rank == 0) {
    MPI_Send(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Send(value, 1, MPI_INT, 1, 4, MPI_COMM_WORLD);
    MPI_Send(value, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
    MPI_Send(value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    for (int tag = 3; tag <= 5; tag++) receive(0, tag);
  }
}

// Whose buffer is in place gives no size.
static void in_place(void) {
  static int all[8];
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT, MPI_COMM_WORLD);
  if (rank == 0)
    MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
  else
    MPI_Gather(value, 2, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
}

static void elements(void) {
  static double all[16];
  MPI_Datatype column;
  MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  if (rank == 0) MPI_Send(all, 1, column, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(value, 8, MPI_INT, 0, 3, MPI_COMM_WORLD, &status);
  MPI_Type_free(&column);
}

// A pair of an integer and a double, of which one lies before the other.
static MPI_Datatype pair(int integer_first) {
  MPI_Datatype made, types[2] = {integer_first ? MPI_INT : MPI_DOUBLE, integer_first ? MPI_DOUBLE : MPI_INT};
  MPI_Aint at[2] = {integer_first ? 0 : 8, integer_first ? 8 : 0};
  int lengths[2] = {1, 1};
  MPI_Type_create_struct(2, lengths, at, types, &made);
  MPI_Type_commit(&made);
  return made;
}

static void structure(void) {
  static double all[8];
  MPI_Datatype mine = pair(rank != 1);
  if (rank == 0) MPI_Send(all, 1, mine, 1, 3, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(all, 1, mine, 0, 3, MPI_COMM_WORLD, &status);
  MPI_Type_free(&mine);
}

// As many elements as there are, told in another way, in more room.
static void structures(void) {
  static double all[16];
  MPI_Datatype one = pair(1), two, column;
  MPI_Type_contiguous(2, one, &two);
  MPI_Type_commit(&two);
  MPI_Type_vector(4, 1, 4, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  if (rank == 0) {
    MPI_Send(all, 3, one, 1, 3, MPI_COMM_WORLD);
    MPI_Send(value, 2, MPI_2INT, 1, 3, MPI_COMM_WORLD);
    MPI_Send(all, 1, column, 1, 3, MPI_COMM_WORLD);
  }
  if (rank == 1) {
    MPI_Recv(all, 2, two, 0, 3, MPI_COMM_WORLD, &status);
    MPI_Recv(value, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, &status);
    MPI_Recv(all, 4, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, &status);
  }
  MPI_Type_free(&two);
  MPI_Type_free(&one);
  MPI_Type_free(&column);
}

static void returned(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) MPI_Send(value, 1, MPI_INT, 7, 8, MPI_COMM_WORLD);
}

static void attached(void) {
  static char space[2][4096];
  MPI_Buffer_attach(space[0], 4096);
  MPI_Buffer_attach(space[1], 4096);
}

static void file(int mode, int waits, int writes) {
  MPI_File open;
  MPI_Request request;
  MPI_File_open(MPI_COMM_WORLD, "/dev/zero", mode, MPI_INFO_NULL, &open);
  if (writes) MPI_File_write_at(open, 0, value, 1, MPI_INT, &status);
  if (!waits || !writes) MPI_File_iread_at(open, 0, value, 1, MPI_INT, &request);
  if (waits && !writes) MPI_Wait(&request, &status);
  MPI_File_close(&open);
}

static void unwaited(void) { file(MPI_MODE_RDONLY, 0, 0); }
static void readonly(void) { file(MPI_MODE_RDONLY, 1, 1); }

static void unclosed(void) {
  MPI_File open;
  MPI_File_open(MPI_COMM_WORLD, "/dev/zero", MPI_MODE_RDONLY, MPI_INFO_NULL, &open);
}

static void given_up(void) {
  MPI_Request request;
  if (rank == 1) {
    MPI_Irecv(value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request); // given up
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Send(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
}

// Whose messages these are nobody asks; those behind the barrier are others. A send may be given up.
static void anybodys(void) {
  MPI_Request request;
  if (rank == 0) {
    for (int i = 1; i < 4; i++)
      MPI_Recv(value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 1; i < 4; i++) receive(i, 3);
  } else {
    send(0, 3);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
}

// An attribute's: what a library made may be freed by MPI_Finalize.
static int free_it(MPI_Comm of, int key, void *made, void *more) {
  (void)of, (void)key, (void)more;
  return MPI_Comm_free(made);
}

static void freed_at_the_end(void) {
  static MPI_Comm made;
  int key;
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_it, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, &made);
  MPI_Comm_free_keyval(&key);
}

// Between the even and the odd ranks each side may send another count, and who is no root says nothing of it.
static void two_groups(void) {
  int mine = rank % 2 ? 3 : 2, theirs = rank % 2 ? 2 : 3, all[8];
  int root = rank % 2 ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 8, &between);
  MPI_Allgather(value, mine, MPI_INT, all, theirs, MPI_INT, between);
  MPI_Bcast(value, rank == 2 ? 0 : 4, rank == 2 ? MPI_BYTE : MPI_INT, root, between);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

static void fine(void) {
  MPI_Comm copy;
  MPI_Request request;
  int sum;
  make(1);
  lock(1);
  handles(1);
  persistent(1);
  buffered(1);
  put(1);
  exposed();
  ordered();
  ready(1);
  twins();
  forgotten();
  crowd();
  in_place();
  structures();
  file(MPI_MODE_RDONLY, 1, 0);
  anybodys();
  cancel(1);
  let_go();
  matched();
  either();
  expose(1);
  freed_at_the_end();
  two_groups();
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

static void begin_write(int ends) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  MPI_File_write_at_all_begin(file, 0, value, 1, MPI_INT);
  if (ends) MPI_File_write_at_all_end(file, value, &status);
  MPI_File_close(&file);
}

static void split(void) { begin_write(0); }

static void grid(int last) {
  MPI_Comm made;
  int dims[2] = {rank == 3 ? last : 2, rank == 3 ? 4 / last : 2}, periods[2] = {1, 1}, before, next;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &made);
  MPI_Cart_shift(made, 1, 1, &before, &next);
  MPI_Comm_free(&made);
}

static void dims(void) { grid(4); }

static void periods(void) {
  MPI_Comm made;
  int dims[1] = {4}, periods[1] = {rank != 3};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made); // but for one
  MPI_Comm_free(&made);
}

static void nodes(void) {
  MPI_Comm made;
  int dims[2] = {3, 2}, periods[2] = {0, 0};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &made); // of six
}

static void direction(void) {
  MPI_Comm made;
  int dims[1] = {4}, periods[1] = {0}, before, next;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made);
  MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
  MPI_Cart_shift(made, 1, 1, &before, &next); // counted from 0
  MPI_Comm_free(&made);
}

static void nobody(void) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Reduce(value, &value[1], 1, MPI_INT, MPI_SUM, MPI_PROC_NULL, MPI_COMM_WORLD);
}

static void ends(void) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, window);
  if (rank == 0) MPI_Put(value, 2, MPI_INT, 1, 0, 1, MPI_DOUBLE, window); // unlike
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
}

static void nofile(void) {
  MPI_File file = MPI_FILE_NULL;
  MPI_File_open(MPI_COMM_WORLD, "/no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  MPI_File_read_at(file, 0, value, 1, MPI_INT, &status);
}

static void copied(void) {
  MPI_Request request, copy;
  if (rank == 0) {
    MPI_Irecv(value, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, &request);
    copy = request;
    MPI_Wait(&request, &status);
    MPI_Wait(&copy, &status);
  }
  if (rank == 1) send(0, 3);
}

static void late(void) {
  MPI_Finalize();
  MPI_Barrier(MPI_COMM_WORLD);  // after the end
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

static void freed(void) {
  MPI_Comm copy, old;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  old = copy;
  MPI_Comm_free(&copy);
  if (rank == 1) MPI_Barrier(old);
}

static void scattered(void) {
  static int all[8];
  if (rank == 2) usleep(300000);
  MPI_Scatter(all, 2, MPI_INT, value, rank == 2 ? 1 : 2, MPI_INT, 0, MPI_COMM_WORLD);
}

static void gathered(void) {
  static int all[8];
  MPI_Gather(value, rank == 0 ? 1 : 2, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

// Without a lock: an access, or the end of one.
static void unlocked_window(int puts) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (rank == 0 && puts) MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  if (rank == 0 && !puts) MPI_Win_unlock(1, window); // of no lock
  MPI_Win_free(&window);
}

static void last(void) {
  MPI_Win window;
  MPI_Win_create(value, sizeof value, sizeof *value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  if (rank == 0) MPI_Put(value, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  if (rank == 1) MPI_Put(value, 1, MPI_INT, 2, 0, 1, MPI_INT, window); // behind the last
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&window);
}

static void neighbours(void) {
  int dims[1] = {4}, periods[1] = {1}, given[8] = {0}, got[8], count = rank == 3 ? 2 : 1;
  MPI_Comm ring;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &ring);
  MPI_Neighbor_alltoall(given, count, MPI_INT, got, count, MPI_INT, ring);
  MPI_Comm_free(&ring);
}

static void epoch(void) { unlocked_window(1); }
static void unlocked(void) { unlocked_window(0); }

static void unfinalized(void) { exit(0); }

static void again(void) { MPI_Init(NULL, NULL); }

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
    {"objects", objects},     {"threads", threads},
    {"restarted", restarted}, {"relocked", relocked},
    {"unbuffered", unbuffered}, {"conflict", conflict},
    {"unready", unready},     {"shared", shared},
    {"ordered", ordered},
    {"elements", elements},
    {"structure", structure}, {"returned", returned},
    {"attached", attached},   {"unwaited", unwaited},
    {"readonly", readonly},
    {"lines", lines},         {"freed", freed},
    {"again", again},         {"scattered", scattered},
    {"cancelled", cancelled}, {"exposed", exposed_for_ever},
    {"unstarted", unstarted}, {"unfinalized", unfinalized},
    {"gathered", gathered},   {"neighbours", neighbours},
    {"epoch", epoch},
    {"unlocked", unlocked},   {"copied", copied},
    {"split", split},         {"dims", dims}, {"periods", periods},
    {"nobody", nobody},       {"nodes", nodes},
    {"direction", direction}, {"unclosed", unclosed},
    {"given_up", given_up},   {"unmade", unmade},
    {"omitted", omitted},     {"misnumbered", misnumbered},
    {"last", last},           {"ends", ends},
    {"nofile", nofile},
};

int main(int argc, char **argv) {
  int given;
  const char *lapse = argc > 1 ? argv[1] : "";
  if (strcmp(lapse, "early") == 0) MPI_Comm_size(MPI_COMM_WORLD, &given);
  if (strcmp(lapse, "threads") == 0)
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &given);
  else
    MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++) {
    if (strcmp(KERNELS[i].name, lapse) == 0) KERNELS[i].run();
  }
  if (argc > 2) sleep((unsigned)atoi(argv[2]));
  MPI_Finalize();
  return 0;
}
