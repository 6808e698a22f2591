// Ends behind MPI_Finalize; rank 1 does what the word says, after the others came to their end: launchers kill whoever is left.
//
//   at_exit handler     a bad access in what runs at exit
//   at_exit destructor  the same in a destructor
//   at_exit thread      the same in a thread that outlives MPI
//   at_exit abort       abort() in what runs at exit
//   at_exit status      exit status 3
//   at_exit well        nothing
#include <mpi.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *what = "well";
static int rank, *volatile nowhere;

static int does(const char *word) { return rank == 1 && strcmp(what, word) == 0; }

__attribute__((noinline)) static void touch(void) { *nowhere = 1; }

static void handler(void) {
    if (does("handler")) touch();
    if (does("abort")) abort();
}

__attribute__((destructor)) static void destructor(void) {
    if (does("destructor")) touch();
}

// Waits until these processes are gone, ten seconds at the most.
static void outlast(const int *pids, int count) {
    for (int i = 0, tries = 0; i < count && tries < 1000; tries++) {
        if (pids[i] == getpid() || (kill(pids[i], 0) != 0 && errno == ESRCH)) i++;
        else usleep(10000);
    }
}

static void *outlive(void *arg) {
    usleep(50000);
    touch();
    return arg;
}

int main(int argc, char **argv) {
    if (argc > 1) what = argv[1];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    atexit(handler);
    int size, own = getpid(), pids[64];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allgather(&own, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 1) outlast(pids, size);
    if (does("thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, outlive, NULL);
        pthread_join(thread, NULL);
    }
    return does("status") ? 3 : 0;
}
