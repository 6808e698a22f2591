// After glotzerlab/hoomd-blue issue 54: the job is split into partitions when a rank first asks for a communicator, so a
// rank whose script does something else first holds all up.
//
// `bug`: the script of rank 3 waits for a file that never comes, in wait_for_input(); the others wait for it in
// MPI_Comm_split. Nothing is wrong with any call of MPI: rank 3 is just not there.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct context {
    MPI_Comm partition;
    int rank, size, is_ready;
};

static long polls;

// Polls for the input that another job writes.
static int wait_for_input(const char *name, int most) {
    for (int tries = 0; most == 0 || tries < most; tries++) {
        if (access(name, R_OK) == 0) return 0; /* HERE */
        polls++;                               /* HERE */
        usleep(20000);                         /* HERE */
    }
    return -1;
}

static void initialize(struct context *context, int partitions) {
    if (context->is_ready) return;
    int each = context->size / partitions;
    MPI_Comm_split(MPI_COMM_WORLD, context->rank / each, context->rank, &context->partition);
    context->is_ready = 1;
}

static double run(struct context *context, int steps) {
    double energy = context->rank, sum = 0;
    initialize(context, 2);
    for (int step = 0; step < steps; step++) {
        energy = 0.5 * energy + step;
        MPI_Allreduce(&energy, &sum, 1, MPI_DOUBLE, MPI_SUM, context->partition);
    }
    return sum;
}

static void script(struct context *context, int is_waiting) {
    if (is_waiting) {
        wait_for_input("/nonexistent/restart.gsd", 0); /* HERE */
    } else {
        wait_for_input("/nonexistent/restart.gsd", 3);
    }
    double energy = run(context, 50);
    int partition_rank;
    MPI_Comm_rank(context->partition, &partition_rank);
    if (partition_rank == 0) printf("energy %g\n", energy);
}

int main(int argc, char **argv) {
    struct context context = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &context.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &context.size);
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    script(&context, bug && context.rank == 3);
    MPI_Comm_free(&context.partition);
    MPI_Finalize();
    return 0;
}
