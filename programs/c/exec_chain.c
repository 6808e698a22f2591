// A process that replaces itself by itself four times (exec keeps the pid), then ends.
// A right trace shows five images of one process: in each of the first four main > turn > execv, open at
// the end; in the last main > finish. Only the last one ended by itself.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) void turn(char *self, int left) {
    char number[16];
    snprintf(number, sizeof number, "%d", left - 1);
    char *arguments[] = {self, number, NULL};
    printf("%d to go\n", left);
    fflush(stdout);
    execv("/proc/self/exe", arguments);
}
__attribute__((noinline)) void finish(void) { puts("done"); }

int main(int argc, char **argv) {
    int left = argc > 1 ? atoi(argv[1]) : 4;
    if (left > 0) turn(argv[0], left);
    else finish();
    return left > 0;
}
