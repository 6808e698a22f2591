// After open-mpi/ompi issue 126: MPI_Bcast with a count that is not the same on all ranks.
//
// `bug`: rank 1 believes in a shorter table and gives a smaller count to the MPI_Bcast of share_table(): the message of
// the root does not fit. MPI ends the job there with "message truncated".

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4000 };

static int rank, size, bug;

struct table {
    int length;
    double values[MOST];
};

static void grow(struct table *table, int step) {
    table->length = 1088 + 54 * step;
    if (bug && rank == 1 && step == 3) table->length -= 54;
    if (rank == 0)
        for (int i = 0; i < table->length; i++) table->values[i] = step + 0.001 * i;
}

static void share_table(struct table *table) {
    MPI_Bcast(table->values, table->length, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* HERE */
}

static double interpolate(const struct table *table, double at) {
    int i = (int)(at * (table->length - 1));
    return table->values[i];
}

static double solve(const struct table *table) {
    double mine = 0, all = 0;
    for (int i = rank; i < 1000; i += size) mine += interpolate(table, i / 1000.0);
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    struct table *table = calloc(1, sizeof *table);
    for (int step = 0; step < 6; step++) {
        grow(table, step);
        share_table(table);
        double sum = solve(table);
        if (rank == 0) printf("step %d: %g\n", step, sum);
    }
    free(table);
    MPI_Finalize();
    return 0;
}
