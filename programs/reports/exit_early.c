// After chi-tech/chi-tech issue 164: an error on one rank ends in exit() instead of MPI_Abort.
//
// `bug`: rank 1 finds a bad cell in its part of the mesh and calls exit(1) in fail(), while the others go on to MPI_Allreduce.
// The launcher ends them, or they wait for ever.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 500 };

struct mesh {
    int first;
    double volume[CELLS];
};

static int rank, size, bug;

static void fail(const char *what, int cell) {
    fprintf(stderr, "rank %d: %s: cell %d\n", rank, what, cell);
    exit(1); /* HERE */
}

static void read_part(struct mesh *mesh) {
    mesh->first = rank * CELLS;
    for (int i = 0; i < CELLS; i++) mesh->volume[i] = 1.0 + 1e-3 * i;
    if (bug && rank == 1) mesh->volume[321] = -1;
}

static void check(const struct mesh *mesh) {
    for (int i = 0; i < CELLS; i++)
        if (mesh->volume[i] <= 0) fail("negative volume", mesh->first + i); /* HERE */
}

static double total_volume(const struct mesh *mesh) {
    double mine = 0, all = 0;
    for (int i = 0; i < CELLS; i++) mine += mesh->volume[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double sweep(const struct mesh *mesh, int angle) {
    double flux = 1;
    int below = rank ? rank - 1 : MPI_PROC_NULL, above = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
    MPI_Recv(&flux, 1, MPI_DOUBLE, below, angle, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < CELLS; i++) flux *= 1 - 1e-5 * mesh->volume[i];
    MPI_Send(&flux, 1, MPI_DOUBLE, above, angle, MPI_COMM_WORLD);
    return flux;
}

int main(int argc, char **argv) {
    static struct mesh mesh;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    read_part(&mesh);
    check(&mesh);
    double volume = total_volume(&mesh), flux = 0;
    for (int angle = 0; angle < 8; angle++) flux += sweep(&mesh, angle);
    if (rank == size - 1) printf("volume %g, flux %g\n", volume, flux);
    MPI_Finalize();
    return 0;
}
