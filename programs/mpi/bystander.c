// build: -pthread
// A library with a thread of its own, as MPI libraries and Python's have them, and a job that comes to a standstill:
//
//   bystander quiet    the library's thread allocates once, and waits for what never comes: ranks 0 and 1 hang
//   bystander polls    it polls on and on: they hang all the same
//   bystander worker   the program's own thread computes for a second, and then sends what rank 0 waits for: no hang
//
// The program takes malloc's address: without position independence that is its own entry for it, and the library's calls go
// through that. A right analysis waits for the program's thread, and not for the library's.
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef LIBRARY
static int polls;

static void *help(void *unused) {
    void *volatile some = malloc(100);
    free(some);
    do poll(NULL, 0, polls ? 1 : -1);
    while (polls);
    return unused;
}

void begin(int is_busy) {
    pthread_t thread;
    polls = is_busy;
    pthread_create(&thread, NULL, help, NULL);
}
#else
#include <mpi.h>

void begin(int is_busy);

void *(*volatile allocate)(size_t) = malloc;
void (*volatile give_back)(void *) = free;
static volatile double sink;
static int rank;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static void *work(void *unused) {
    double end = seconds() + 1.5;
    while (seconds() < end) sink += 1;
    int token = 3;
    MPI_Send(&token, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD);
    return unused;
}

int main(int argc, char **argv) {
    int level, token = 0;
    const char *mode = argc > 1 ? argv[1] : "quiet";
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    begin(strcmp(mode, "polls") == 0);
    pthread_t thread;
    int works = strcmp(mode, "worker") == 0;
    if (works) pthread_create(&thread, NULL, work, NULL);
    MPI_Recv(&token, 1, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (works) pthread_join(thread, NULL);
    MPI_Finalize();
    return token != 3;
}
#endif
