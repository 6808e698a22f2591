// Ends in the way it is told to: return, exit, _exit, abort, segv, kill, or never.
//
//   ends (return|exit|_exit) [STATUS] | abort | segv | kill | never
//
// A right trace shows main > leave with the call that ended it open (abort, _exit, kill) or, for `return`,
// all closed; `info` tells the status or the signal.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int *volatile nowhere;
__attribute__((noinline)) int leave(const char *way, int status) {
    if (!strcmp(way, "exit")) exit(status);
    if (!strcmp(way, "_exit")) _exit(status);
    if (!strcmp(way, "abort")) abort();
    if (!strcmp(way, "segv")) *nowhere = 1;
    if (!strcmp(way, "kill")) raise(SIGKILL);
    if (!strcmp(way, "never"))
        for (;;) pause();
    return status;
}

int main(int argc, char **argv) {
    puts("leaving");
    fflush(stdout);
    return leave(argc > 1 ? argv[1] : "return", argc > 2 ? atoi(argv[2]) : 0);
}
