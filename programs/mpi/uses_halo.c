// A solver that leaves its communication to a library (library_halo.c), as programs do with PETSc or HDF5.
//
//   uses_halo [MUTE]      rank MUTE leaves a message out
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

void halo_begin(void);
double halo_exchange(double x, int mute);
void halo_end(void);

static __attribute__((noinline)) double step(double x, int mute) {
    double y = halo_exchange(x, mute);
    return y + 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int mute = argc > 1 ? atoi(argv[1]) : -1;
    double x = 0;
    halo_begin();
    for (int i = 0; i < 10; i++) x = step(x, mute);
    halo_end();
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("%g\n", x);
    MPI_Finalize();
}
