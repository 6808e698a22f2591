// Rank 2 computes in a loop without a call, for some seconds, while the others wait for it; then all is well.
//
//   spins SECONDS

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t done;

static void over(int signal) {
    (void)signal;
    done = 1;
}

__attribute__((noinline)) static double relax(double *values, int count) {
    double change = 0;
    while (!done) {                                          // first
        for (int i = 1; i < count - 1; i++) {
            double next = 0.5 * (values[i - 1] + values[i + 1]);
            change = next - values[i];
            values[i] = next;
        }
    }                                                        // last
    return change;
}

int main(int argc, char **argv) {
    static double values[1000];
    double change = 0;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    signal(SIGALRM, over);
    values[999] = 1;
    if (rank == 2) {
        alarm(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
        change = relax(values, 1000);
    }
    MPI_Bcast(&change, 1, MPI_DOUBLE, 2, MPI_COMM_WORLD);
    if (rank == 0) printf("%s\n", change < 1 ? "well" : "amiss");
    MPI_Finalize();
    return 0;
}
