// A model in steps: every rank reads, couples, solves and reports. Each word lets ranks go apart in one way:
//
//   apart extra WHO       WHO alone makes the sum of couple() from step 2 on: one too many, or the others leave it out
//   apart skipped WHO     WHO leaves the sum of changed() out in step 2; all sums look alike
//   apart most WHO        all but WHO leave the MPI_Bcast of read() out, from step 2 on
//   apart root WHO        all but WHO name another root in report(), in step 2
//   apart early WHO       WHO leaves solve() in step 2 and ends
//   apart elsewhere WHO   WHO asks for a message in a communicator with the ranks the other way round
//   apart second WHO      of two messages that WHO waits for, the second is never sent
//   apart polls WHO       WHO sends nothing in step 2, and the next rank asks for its message on and on
//   apart                 no bug
//
// The right answer names WHO, or of `most` and `root` beside a normal run all others, and the line with the comment of this word.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 6, FAULTY = 2, TAG = 5 };

static int rank, size, who = -1;
static const char *bug = "";
static double field[64], other[64];

static int is(const char *name) { return strcmp(bug, name) == 0; }

__attribute__((noinline)) static double add(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

__attribute__((noinline)) static void read(int step) {
    if (is("most") && rank != who && step >= FAULTY) return;
    MPI_Bcast(field, 64, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

__attribute__((noinline)) static double production(void) {
    double sum = 0;
    for (int i = 0; i < 64; i++) sum += field[i];
    return add(sum); // extra
}

__attribute__((noinline)) static double couple(int step) {
    if (is("extra") && rank != who && step >= FAULTY) return 0;
    return production();
}

__attribute__((noinline)) static int changed(int step) {
    int mine = step % 3 == 0;
    if (is("skipped") && rank == who && step == FAULTY) return 1;
    return add(mine) > 0; // skipped
}

__attribute__((noinline)) static double solve(int step) {
    double error = 1;
    for (int i = 0; i < 3; i++) {
        if (is("early") && rank == who && step == FAULTY) return -1;
        error = add(error * 0.1); // early
    }
    return error;
}

__attribute__((noinline)) static void report(int step) {
    int root = is("root") && rank != who && step == FAULTY;
    MPI_Reduce(field, other, 64, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD); // root
}

__attribute__((noinline)) static void hand_on(int step) {
    int next = (rank + 1) % size, before = (rank + size - 1) % size, is_there = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    if (!is("polls") || rank != who || step != FAULTY)
        MPI_Isend(field, 1, MPI_DOUBLE, next, TAG, MPI_COMM_WORLD, &request); // polls
    while (!is_there) MPI_Iprobe(before, TAG, MPI_COMM_WORLD, &is_there, MPI_STATUS_IGNORE);
    MPI_Recv(other, 1, MPI_DOUBLE, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void elsewhere(void) {
    MPI_Comm reversed;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
    int sender = size - 1 - who;
    if (rank == sender) MPI_Send(field, 1, MPI_DOUBLE, who, TAG, MPI_COMM_WORLD); // elsewhere
    if (rank == who) MPI_Recv(other, 1, MPI_DOUBLE, sender, TAG, reversed, MPI_STATUS_IGNORE);
    MPI_Comm_free(&reversed);
}

__attribute__((noinline)) static void second(void) {
    MPI_Request requests[2];
    int sender = (who + 1) % size;
    if (rank == sender) MPI_Send(field, 1, MPI_DOUBLE, who, TAG, MPI_COMM_WORLD);
    if (rank != who) return;
    MPI_Irecv(field, 1, MPI_DOUBLE, sender, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(other, 1, MPI_DOUBLE, sender, TAG + 1, MPI_COMM_WORLD, &requests[1]); // second
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1) bug = argv[1];
    if (argc > 2) who = atoi(argv[2]);
    double sum = 0;
    for (int step = 0; step < STEPS; step++) {
        read(step);
        sum += couple(step);
        sum += changed(step);
        double error = solve(step);
        if (error < 0) break;
        sum += error;
        report(step);
        hand_on(step);
    }
    if (is("elsewhere")) elsewhere();
    if (is("second")) second();
    if (rank == 0) printf("sum %g\n", sum);
    MPI_Finalize();
    return 0;
}
