// Signal handlers that call functions, while the main flow calls functions as fast as it can: a timer
// fires 200 times, or as often as is said; one handler raises another signal.
// A right trace shows every call of `count` under `handle` (under `work`, where the signal struck) or
// counts it as lost; always balanced, and the same output.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks, nested;
static volatile unsigned long sum;
__attribute__((noinline)) void count(volatile sig_atomic_t *counter) { *counter = *counter + 1; }
void handle_nested(int signal) { (void)signal; count(&nested); }
void handle(int signal) {
    (void)signal;
    count(&ticks);
    if (ticks % 10 == 0) raise(SIGUSR1);
}
__attribute__((noinline)) unsigned long work(unsigned long n) { return n * 2654435761u >> 7; }

int main(int argc, char **argv) {
    const int most = argc > 1 ? atoi(argv[1]) : 200;
    struct sigaction action;
    struct itimerval timer = {{0, 500}, {0, 500}}, stop = {{0, 0}, {0, 0}};
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(SIGALRM, &action, NULL);
    action.sa_handler = handle_nested;
    sigaction(SIGUSR1, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    while (ticks < most)
        for (unsigned long n = 0; n < 100; n++) sum += work(n);
    setitimer(ITIMER_REAL, &stop, NULL);
    printf("%s ticks, nested %s\n", ticks >= most ? "enough" : "few", nested >= most / 10 ? "too" : "not");
    return 0;
}
