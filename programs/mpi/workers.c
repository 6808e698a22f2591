// A master that gives out work and takes results from anybody, and its workers.
//
//   workers [TASKS]
//
// A right trace has TASKS calls of work in all workers together.

#include <mpi.h>
#include <stdlib.h>

enum { WORK = 1, RESULT = 2, STOP = 3 };

static volatile double sink;

__attribute__((noinline)) static double prepare(int task) { return task * 0.5; }

__attribute__((noinline)) static double work(double input) {
    for (int i = 0; i < 20000; i++) sink += input * i;
    return sink;
}

__attribute__((noinline)) static void hand_out(int to, int task) {
    double input = prepare(task);
    MPI_Send(&input, 1, MPI_DOUBLE, to, WORK, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void master(int size, int tasks) {
    int next = 0, open = 0;
    MPI_Status status;
    double result;
    for (int to = 1; to < size && next < tasks; to++, open++) hand_out(to, next++);
    while (open > 0) {
        MPI_Recv(&result, 1, MPI_DOUBLE, MPI_ANY_SOURCE, RESULT, MPI_COMM_WORLD, &status);
        open--;
        if (next < tasks) {
            hand_out(status.MPI_SOURCE, next++);
            open++;
        }
    }
    for (int to = 1; to < size; to++) MPI_Send(&result, 1, MPI_DOUBLE, to, STOP, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void worker(void) {
    MPI_Status status;
    double value;
    for (;;) {
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG == STOP) return;
        value = work(value);
        MPI_Send(&value, 1, MPI_DOUBLE, 0, RESULT, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        master(size, argc > 1 ? atoi(argv[1]) : 60);
    else
        worker();
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
