// After deepmodeling/abacus-develop pull request 2557: what a program prints when it gives up needs all ranks.
//
// `bug`: there are fewer bands than ranks; all ranks call quit(), but only rank 0 prints the memory, which is summed
// over all ranks: rank 0 waits in the MPI_Allreduce of print_memory(), the others are in MPI_Finalize.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static double mega_bytes;

static void print_memory(void) {
    double all = 0;
    MPI_Allreduce(&mega_bytes, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* HERE */
    if (rank == 0) printf("memory: %.1f MB\n", all);
}

static void quit(int status) {
    if (rank == 0) print_memory(); /* HERE */
    MPI_Finalize();
    exit(status);
}

static void check_bands(int bands) {
    if (bands >= size) return;
    if (rank == 0) fprintf(stderr, "%d bands for %d ranks\n", bands, size);
    quit(1);
}

static double *allocate(size_t doubles) {
    mega_bytes += (double)doubles * sizeof(double) / 1e6;
    return calloc(doubles, sizeof(double));
}

static double iterate(double *psi, int bands, int step) {
    double mine = 0, all = 0;
    for (int band = rank; band < bands; band += size)
        for (int i = 0; i < 1000; i++) mine += psi[i] += 1.0 / (1 + band + i + step);
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    int bands = bug ? size - 1 : 3 * size;
    MPI_Bcast(&bands, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double *psi = allocate(1000 + rank);
    double energy = 0;
    for (int step = 0; step < 3; step++) energy = iterate(psi, 2 * size, step);
    check_bands(bands);
    for (int step = 0; step < 10; step++) energy = iterate(psi, bands, step);
    if (rank == 0) printf("energy %g\n", energy);
    print_memory();
    free(psi);
    MPI_Finalize();
    return 0;
}
