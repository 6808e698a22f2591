// After mpi-forum/mpi-issues issue 75: a synchronous send and its receive are OpenMP tasks, which need not run side by side.
//
// `bug`: the region of step 5 has one thread, which runs one task after the other, the younger one first where the library is
// libgomp: both ranks wait in the MPI_Recv of receive_block() for the send of the other one, whose task comes behind.
// build: -fopenmp

#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 1000 };

static int rank, size;
static double out[BLOCK], in[BLOCK];

static void send_block(int to, int step) {
    MPI_Ssend(out, BLOCK, MPI_DOUBLE, to, step, MPI_COMM_WORLD); /* HERE */
}

static void receive_block(int from, int step) {
    MPI_Recv(in, BLOCK, MPI_DOUBLE, from, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* HERE */
}

static void compute(int step) {
    for (int i = 0; i < BLOCK; i++) out[i] = 0.5 * (out[i] + in[i]) + step;
}

static void exchange(int step, int threads) {
    int other = rank ^ 1;
#pragma omp parallel num_threads(threads)
#pragma omp single
    {
#pragma omp task
        send_block(other, step);
#pragma omp task
        receive_block(other, step);
#pragma omp taskwait
    }
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    if (provided < MPI_THREAD_MULTIPLE) {
        if (rank == 0) fprintf(stderr, "no MPI_THREAD_MULTIPLE\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    omp_set_dynamic(0);
    for (int step = 0; step < 8; step++) {
        compute(step);
        exchange(step, bug && step == 5 ? 1 : 3);
    }
    double sum = 0, all = 0;
    for (int i = 0; i < BLOCK; i++) sum += in[i];
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("sum %g\n", all);
    MPI_Finalize();
    return 0;
}
