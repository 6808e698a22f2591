// After IAS-Astrophysics/athenak pull request 786: every rank deletes the shared file before all open it, and on a busy
// file system one of them takes minutes. It looks like a hang.
//
// `bug`: rank 2 takes twenty seconds in remove_old(), then all goes well: slow, no deadlock. The others wait for rank 2 in
// MPI_Barrier meanwhile.

#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static void pause_for(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL); /* HERE */
}

// A server that answers "busy" for a while.
static int server_unlink(const char *name, int attempt, int busy) {
    if (attempt < busy) {
        pause_for(0.1); /* HERE */
        errno = EBUSY;
        return -1;
    }
    return unlink(name);
}

static void remove_old(const char *name, int busy) {
    for (int attempt = 0;; attempt++)
        if (server_unlink(name, attempt, busy) == 0 || errno == ENOENT) return; /* HERE */
}

static void write_output(int cycle, int busy) {
    char name[128];
    snprintf(name, sizeof name, "/nonexistent/output.%05d.bin", cycle);
    remove_old(name, busy); /* HERE */
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = cycle + rank, all[64];
    MPI_Gather(&mine, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("cycle %d: wrote %d blocks\n", cycle, size);
}

static double advance(double dt) {
    double mine = dt * (1 + 0.01 * rank), least = 0;
    MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return least;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    double dt = 1;
    for (int cycle = 0; cycle < 20; cycle++) {
        dt = advance(dt);
        if (cycle % 5 == 4) write_output(cycle, bug && rank == 2 && cycle == 14 ? 200 : 1);
    }
    if (rank == 0) printf("dt %g\n", dt);
    MPI_Finalize();
    return 0;
}
