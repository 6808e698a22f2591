// A ring exchange and a reduction in each of 40 steps, and one of many ways to come to a standstill:
//
//   standstill loop       rank 1 goes round and round in step 20, and calls nothing
//   standstill round      rank 1 goes round and round in step 20, calling on and on
//   standstill tag        rank 2 sends another tag in step 20
//   standstill dropped    rank 2 does not send in step 20
//   standstill asks       the same, and all ask for their messages until they are there
//   standstill order      rank 3 calls MPI_Barrier where others call MPI_Allreduce
//   standstill early      rank 3 ends without MPI_Finalize
//   standstill crash      rank 3 dies of a signal
//   standstill heads      neighbours receive from each other before they send
//   standstill part       rank 2 does not come to a barrier of the even ranks
//   standstill anybody    rank 0 receives once more than others send
//   standstill lucky      neighbours send to each other before they receive: no standstill, as messages are small
//   standstill operation  rank 1 takes the maximum where others take the sum: no standstill
//   standstill            no bug
//
// A right trace of a run that was killed shows each rank where it stood.

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 40, FAULTY = 20 };

static int rank, size;
static const char *bug;
static volatile double sink;

static int is(const char *name, int who, int step) { return step == FAULTY && rank == who && strcmp(bug, name) == 0; }

__attribute__((noinline)) static void work(int amount) {
    for (int i = 0; i < amount; i++) sink += i;
}

__attribute__((noinline)) static void compute(int step) {
    int endless = is("loop", 1, step);
    do {
        for (int i = 0; i < 1000; i++) sink += i;
    } while (endless);
    do work(200000);
    while (is("round", 1, step));
}

__attribute__((noinline)) static void exchange(int step) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out = rank, in;
    MPI_Request requests[2];
    int count = 0;
    MPI_Irecv(&in, 1, MPI_INT, left, 7, MPI_COMM_WORLD, &requests[count++]);
    if (!is("dropped", 2, step)) MPI_Isend(&out, 1, MPI_INT, right, is("tag", 2, step) ? 99 : 7, MPI_COMM_WORLD, &requests[count++]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void ask(int step) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size, out = rank, in, is_there = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    if (!is("asks", 2, step)) MPI_Isend(&out, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &sent);
    while (!is_there) MPI_Iprobe(left, 7, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    MPI_Recv(&in, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void reduce(int step) {
    int one = 1, all;
    if (is("order", 3, step)) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Op operation = is("operation", 1, step) ? MPI_MAX : MPI_SUM;
    MPI_Allreduce(&one, &all, 1, MPI_INT, operation, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void swap(int send_first) {
    int other = rank ^ 1, out = rank, in;
    if (send_first) MPI_Send(&out, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
    MPI_Recv(&in, 1, MPI_INT, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!send_first) MPI_Send(&out, 1, MPI_INT, other, 3, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void gather_any(void) {
    int in, out = rank;
    if (rank) {
        MPI_Send(&out, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < size; i++) MPI_Recv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Until the others wait, too: a launcher may end them as soon as it knows that one is gone.
__attribute__((noinline)) static void linger(void) { nanosleep(&(struct timespec){.tv_sec = 1}, NULL); }

int main(int argc, char **argv) {
    bug = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm parity;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &parity);
    for (int step = 0; step < STEPS; step++) {
        compute(step);
        if (strcmp(bug, "asks") == 0) ask(step);
        else exchange(step);
        if (is("early", 3, step)) linger(), _Exit(0);
        if (is("crash", 3, step)) abort();
        if (step == FAULTY && strcmp(bug, "heads") == 0) swap(0);
        if (step == FAULTY && strcmp(bug, "lucky") == 0) swap(1);
        if (step == FAULTY && strcmp(bug, "anybody") == 0) gather_any();
        if (!is("part", 2, step)) MPI_Barrier(parity);
        int word = rank;
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        reduce(step);
    }
    MPI_Comm_free(&parity);
    MPI_Finalize();
    return 0;
}
