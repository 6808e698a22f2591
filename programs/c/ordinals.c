// Tells the outside, call by call, what happens: the ordinal of each call is written to shared memory
// just before and just after it, for whoever kills the program and wants to know what had happened.
//
//   ordinals FILE CALLS [PROCESSES]
//
// FILE holds three 64-bit numbers a process: its id, calls begun, calls ended. With PROCESSES the first
// one forks the others; under an MPI launcher each rank is one (its rank is its place in FILE).
// A right trace of a killed run has, under main > loop, at least as many `mark` and `mark_other` as calls
// ended and at most as many as calls begun, in the order of `picks_other`, whenever the kill came.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64 };

__attribute__((noinline)) long mark(long n) { return (n * 7 + 3) % 11; }
__attribute__((noinline)) long mark_other(long n) { return (n * 5 + 1) % 13; }

// An irregular pattern, so that a compressor predicts some of the calls and not others.
static inline int picks_other(long n) { return (n / 5 + n / 64) % 3 == 0; }

__attribute__((noinline)) long loop(volatile long *told, long calls) {
    long sum = 0;
    told[0] = getpid();
    for (long n = 0; n < calls; n++) {
        told[1] = n + 1;
        sum += picks_other(n) ? mark_other(n) : mark(n);
        told[2] = n + 1;
    }
    return sum;
}

static int rank(void) {
    const char *open_mpi = getenv("OMPI_COMM_WORLD_RANK"), *pmi = getenv("PMI_RANK");
    return open_mpi ? atoi(open_mpi) : pmi ? atoi(pmi) : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int processes = argc > 3 ? atoi(argv[3]) : 1, file = open(argv[1], O_RDWR | O_CREAT, 0666);
    size_t size = 24 * MOST_PROCESSES;
    if (file < 0 || ftruncate(file, (off_t)size)) return 2;
    volatile long *told = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (told == MAP_FAILED) return 2;
    int self = rank();
    for (int i = 1; i < processes && self == 0; i++)
        if (fork() == 0) self = i;
    long sum = loop(told + 3 * self, atol(argv[2]));
    if (self == 0)
        while (wait(NULL) > 0) continue;
    printf("%ld\n", sum);
    return 0;
}
