// A function that is called in the parent, in a forked child, and from a signal handler.
// Prints "parent 4" and "child 3": how often each process called it.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int calls;

__attribute__((noinline)) void count(void) { calls++; }

static void handler(int signal) {
    (void)signal;
    count();
}

int main(void) {
    signal(SIGUSR1, handler);
    count();
    count();
    count();
    fflush(stdout);
    if (fork() == 0) {
        calls = 0;
        for (int i = 0; i < 3; i++) count();
        printf("child %d\n", calls);
        fflush(stdout);
        _exit(0);
    }
    wait(NULL);
    raise(SIGUSR1);
    printf("parent %d\n", calls);
    return 0;
}
