// MPI between the ranks and OpenMP inside each: a sum of squares, reduced over threads in a critical
// section and over ranks with MPI_Allreduce, for 5 steps.
// build: -fopenmp
//
// A right trace shows one trace a thread. Each has the outlined region once a step, and inside it
// GOMP_critical_start, add, GOMP_critical_end (__kmpc_critical and __kmpc_end_critical with clang);
// only thread 0 has MPI calls, among them MPI_Allreduce 5 times.

#include <mpi.h>
#include <omp.h>
#include <stdio.h>

enum { NUMBERS = 1000, STEPS = 5 };

void add(long *total, long part) { *total += part; }

long sum_squares(long first, long count) {
    long total = 0;
#pragma omp parallel
    {
        long part = 0;
        for (long i = first + omp_get_thread_num(); i < first + count; i += omp_get_num_threads()) part += i * i;
#pragma omp critical
        add(&total, part);
    }
    return total;
}

int main(int argc, char **argv) {
    int rank, ranks, provided;
    long mine = 0, all = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int step = 0; step < STEPS; step++) {
        mine = sum_squares((long)rank * NUMBERS, NUMBERS);
        MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("sum of %d squares: %ld\n", NUMBERS * ranks, all);
    MPI_Finalize();
    return 0;
}
