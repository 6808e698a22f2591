// Tells the outside, call by call, what happens: the ordinal of each call is written to shared memory
// just before and just after it, for whoever kills the program and wants to know what had happened.
//
//   ordinals FILE CALLS [PROCESSES]   FILE holds two 64-bit numbers a process: calls begun, calls ended
//
// A right trace of a killed run has, under main > loop, at least as many `mark` as calls ended and at
// most as many as calls begun, whenever the kill came. With several processes each is a child of the first.
// So that the two counts bracket the call they are stored by the caller, never by `mark` itself.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long mark(long n) { return (n * 7 + 3) % 11; }
__attribute__((noinline)) long mark_other(long n) { return (n * 5 + 1) % 13; }

__attribute__((noinline)) long loop(volatile long *told, long calls) {
    long sum = 0;
    for (long n = 0; n < calls; n++) {
        told[0] = n + 1;
        // An irregular pattern, so that the codec has both hits and misses.
        sum += (n * n / 7) % 3 ? mark(n) : mark_other(n);
        told[1] = n + 1;
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int processes = argc > 3 ? atoi(argv[3]) : 1, file = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (file < 0 || ftruncate(file, 16 * processes)) return 2;
    volatile long *told = mmap(NULL, 16 * (size_t)processes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (told == MAP_FAILED) return 2;
    int self = 0;
    for (int i = 1; i < processes && self == 0; i++)
        if (fork() == 0) self = i;
    long sum = loop(told + 2 * self, atol(argv[2]));
    if (self == 0) while (wait(NULL) > 0) continue;
    printf("%ld\n", sum);
    return 0;
}
