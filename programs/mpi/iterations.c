// Loops in which rank 1 hangs, as a message is waited for that nobody sends, and in which iteration, by construction:
//
//   iterations CASE      rank 1 prints the iterations that it hangs in, from 1, of the outermost loop first, or 0
//                        where it hangs behind the loop
//
// All calls of MPI are in main or in step, so that the loops are, too.

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define HERE static inline __attribute__((always_inline)) void

static int rank, size;
static const char *wanted;

#define is(name) (strcmp(wanted, name) == 0)

HERE tell(int iteration, int inner) {
    printf(inner ? "%d %d\n" : "%d\n", iteration, inner);
    fflush(stdout);
}

HERE put(int to, int tag) { MPI_Send(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD); }

HERE get(int from, int tag) {
    int it;
    MPI_Recv(&it, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

HERE put_later(int to, int tag) {
    MPI_Request request;
    MPI_Isend(&rank, 1, MPI_INT, to, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

HERE get_later(int from, int tag) {
    int it;
    MPI_Request request;
    MPI_Irecv(&it, 1, MPI_INT, from, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

HERE sum(void) {
    int one = 1, all;
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

// A pair of ranks sends to and fro; rank 1 waits for another message in iteration `at`.
HERE pair(int turns, int at) {
    for (int i = 1; i <= turns; i++) {
        if (rank == 0) put(1, 1), get(1, 2);
        if (rank == 1) {
            if (i == at) tell(i, 0);
            get(0, i == at ? 9 : 1), put(0, 2);
        }
    }
}

// From rank 0 by rank 1 to rank 2, who each do a part of what rank 1 does.
HERE roles(int turns, int at) {
    for (int i = 1; i <= turns; i++) {
        if (rank == 0) put_later(1, 1);
        if (rank == 1) {
            if (i == at) tell(i, 0);
            get_later(0, i == at ? 9 : 1), put_later(2, 1);
        }
        if (rank == 2) get_later(1, 1);
    }
}

__attribute__((noinline)) static void step(int i, int at) {
    sum();
    if (rank == 0) put(1, 1);
    if (rank == 1 && i == at) tell(i, 0);
    if (rank == 1) get(0, i == at ? 9 : 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    wanted = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is("middle")) pair(20, 7);
    if (is("roles")) roles(12, 7);
    if (is("behind")) {
        pair(20, 0);
        if (rank == 1) tell(0, 0);
        if (rank == 0) get(1, 9);
    }
    if (is("roles_behind")) {
        roles(6, 0);
        if (rank == 1) tell(0, 0), MPI_Probe(0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    // A loop of a single call.
    if (is("one"))
        for (int i = 1; i <= 9; i++) {
            if (rank == 0) put(1, 1);
            if (rank == 1 && i == 5) tell(i, 0);
            if (rank == 1) get(0, i == 5 ? 9 : 1);
        }
    // Two loops, which end alike.
    if (is("two")) {
        for (int i = 1; i <= 9; i++) sum(), MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 1; i <= 9; i++) {
            if (rank == 0) put(1, 1);
            if (rank == 1 && i == 4) tell(i, 0);
            if (rank == 1) get(0, i == 4 ? 9 : 1);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (is("nested"))
        for (int i = 1; i <= 6; i++) {
            sum();
            for (int j = 1; j <= 4; j++) {
                if (rank == 0) put(1, 1);
                if (rank == 1 && i == 5 && j == 3) tell(i, j);
                if (rank == 1) get(0, i == 5 && j == 3 ? 9 : 1);
            }
        }
    // Inner trip counts that differ, and nothing else in the iteration before them.
    if (is("inner"))
        for (int i = 1; i <= 8; i++) {
            for (int j = 0; j < 1 + i * i % 5; j++) {
                if (rank == 0) put(1, 1);
                if (rank == 1 && i == 6 && j == 1) tell(i, j + 1);
                if (rank == 1) get(0, i == 6 && j == 1 ? 9 : 1);
            }
            sum();
        }
    // What is done by turn.
    if (is("arms"))
        for (int i = 1; i <= 20; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            if (i * i % 7 == 2) MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
            if (rank == 1 && i == 13) tell(i, 0);
            if (rank == 0) put(1, 1);
            if (rank == 1) get(0, i == 13 ? 9 : 1);
        }
    // What only one rank ever comes to, and in one iteration.
    if (is("once"))
        for (int i = 1; i <= 20; i++) {
            sum();
            if (rank == 1 && i == 13) tell(i, 0), MPI_Probe(0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    if (is("called"))
        for (int i = 1; i <= 9; i++) step(i, 6);
    MPI_Finalize();
    return 0;
}
