// Eight ways in which a rank stays behind (after the public AutomaDeD's tests). Rank 3 goes round and round:
//
//   scenarios straight   in iteration 4 of a loop
//   scenarios nested     in iteration 6 of a loop in iteration 4 of another
//   scenarios branch     in an arm of a condition that only it takes
//   scenarios two        in iteration 4 of a loop, and rank 5 in iteration 6: rank 3 is behind
//   scenarios gather     in one arm of a condition, while the others are in MPI_Allgather in the other
//   scenarios deep       four calls down
//   scenarios ring       before it sends to its neighbours, who wait for it; the others wait for them
//   scenarios late       after the loop
//
// A right trace of a run that was killed shows rank 3 in spin, and the others in MPI.

#include <mpi.h>
#include <string.h>

static int rank, size;
static const char *scenario;
static volatile double sink;

__attribute__((noinline)) static void spin(int endless) {
    do {
        for (int i = 0; i < 1000; i++) sink += i;
    } while (endless);
}

#define is(name) (strcmp(scenario, name) == 0)

__attribute__((noinline)) static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

__attribute__((noinline)) static void straight(int hangs, int turns) {
    for (int i = 1; i <= turns; i++) {
        spin(hangs && rank == 3 && i == 4);
        barrier();
    }
}

__attribute__((noinline)) static void nested(void) {
    for (int i = 1; i <= 8; i++) {
        for (int j = 1; j <= 8; j++) spin(rank == 3 && i == 4 && j == 6);
        barrier();
    }
}

__attribute__((noinline)) static void special(int endless) { spin(endless); }
__attribute__((noinline)) static void usual(void) { spin(0); }

__attribute__((noinline)) static void branch(void) {
    for (int i = 1; i <= 5; i++) {
        if (rank == 3)
            special(i == 4);
        else
            usual();
        barrier();
    }
}

__attribute__((noinline)) static void two(void) {
    for (int i = 1; i <= 10; i++) spin((rank == 3 && i == 4) || (rank == 5 && i == 6));
    barrier();
}

__attribute__((noinline)) static void gather(void) {
    int all[64];
    if (rank == 3)
        spin(1);
    else
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void third(int endless) { spin(endless); sink++; }
__attribute__((noinline)) static void second(int endless) { third(endless); sink++; }
__attribute__((noinline)) static void first(int endless) { second(endless); sink++; }

__attribute__((noinline)) static void deep(void) {
    for (int i = 1; i <= 5; i++) {
        first(rank == 3 && i == 3);
        barrier();
    }
}

__attribute__((noinline)) static void ring(void) {
    for (int i = 1; i <= 6; i++) {
        int in[2], one = 1, sum, right = (rank + 1) % size, left = (rank + size - 1) % size;
        MPI_Request requests[4];
        MPI_Irecv(&in[0], 1, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&in[1], 1, MPI_INT, right, 1, MPI_COMM_WORLD, &requests[1]);
        spin(rank == 3 && i == 5);
        MPI_Isend(&rank, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[2]);
        MPI_Isend(&rank, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    scenario = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is("straight")) straight(1, 10);
    if (is("nested")) nested();
    if (is("branch")) branch();
    if (is("two")) two();
    if (is("gather")) gather();
    if (is("deep")) deep();
    if (is("ring")) ring();
    if (is("late")) {
        straight(0, 10);
        spin(rank == 3);
    }
    barrier();
    MPI_Finalize();
    return 0;
}
