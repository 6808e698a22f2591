// Waits for SIGTERM and ends with 42 when it comes; prints "ready" before.
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

void handle(int signal) {
    (void)signal;
    _exit(42);
}

int main(void) {
    signal(SIGTERM, handle);
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
