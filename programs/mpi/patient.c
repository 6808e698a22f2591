// Ranks that are slow, one after the other, while the others wait for it: nothing hangs.
//
//   patient HOW SECONDS ROUNDS    in each round another rank takes that long, and the others wait
//
//   HOW: sleep      it sleeps
//        compute    it computes
//        talk       it exchanges messages with its neighbour
//   and the others wait in turn in MPI_Barrier, MPI_Recv, MPI_Recv from anybody, MPI_Waitany, and by asking
//   MPI_Iprobe and MPI_Test.
//
// A right trace has all ranks' MPI_Finalize.

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAYS = 6, TAG = 3, TALK = 4 };

static int rank, size, given, got;
static volatile double sink;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void compute(void) {
    for (int i = 0; i < 100000; i++) sink += i;
}

static void take_long(const char *how, double long_enough) {
    double end = seconds() + long_enough;
    if (strcmp(how, "sleep") == 0) {
        struct timespec pause = {(long)long_enough, (long)((long_enough - (long)long_enough) * 1e9)};
        nanosleep(&pause, NULL);
    }
    while (strcmp(how, "compute") == 0 && seconds() < end) compute();
}

// Both know how often, since the first says when it is enough.
static void talk(int other, int leads, double long_enough) {
    double end = seconds() + long_enough;
    for (int goes_on = 1; goes_on;) {
        given = leads && seconds() < end;
        MPI_Sendrecv(&given, 1, MPI_INT, other, TALK, &got, 1, MPI_INT, other, TALK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        goes_on = leads ? given : got;
    }
}

static void tell(int slow) {
    for (int to = 0; to < size; to++)
        if (to != slow) MPI_Send(&given, 1, MPI_INT, to, TAG, MPI_COMM_WORLD);
}

static void hear(int from, int way) {
    MPI_Request request;
    int flag = 0, index;
    switch (way) {
    case 1: MPI_Recv(&got, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
    case 2: MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); break;
    case 3:
        MPI_Irecv(&got, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &request);
        MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
        break;
    case 4:
        while (!flag) MPI_Iprobe(from, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Irecv(&got, 1, MPI_INT, from, TAG, MPI_COMM_WORLD, &request);
        while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "sleep";
    double long_enough = argc > 2 ? atof(argv[2]) : 0.5;
    int rounds = argc > 3 ? atoi(argv[3]) : 2 * WAYS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < rounds; round++) {
        int slow = round % size, beside = (slow + 1) % size, way = round % WAYS;
        int talks = size > 1 && strcmp(how, "talk") == 0;
        if (talks && rank == slow) talk(beside, 1, long_enough);
        if (talks && rank == beside) talk(slow, 0, long_enough);
        if (rank == slow) take_long(how, long_enough);
        if (way == 0) MPI_Barrier(MPI_COMM_WORLD);
        else if (rank == slow) tell(slow);
        else hear(slow, way);
    }
    MPI_Finalize();
}
