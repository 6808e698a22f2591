// A timer interrupts a loop of malloc and free again and again, and the handler asks for memory, too.
//
//   interrupts_malloc           the handler calls malloc: sooner or later it has interrupted malloc, and waits for itself
//   interrupts_malloc healthy   the handler does not
//
// A second thread does nothing: without one, malloc takes no lock. A right answer names the first thread, and the line with `again`.
// build: -pthread

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int asks, ticks;

__attribute__((noinline)) static void on_alarm(int signal) {
    (void)signal;
    ticks++;
    if (asks) free(malloc(50000 + ticks % 7 * 1000)); // again
}

__attribute__((noinline)) static void churn(long rounds) {
    void *kept[64] = {0};
    unsigned random = 1;
    for (long round = 0; round < rounds; round++) {
        random = random * 1103515245u + 12345u;
        int which = random >> 26;
        free(kept[which]);
        kept[which] = malloc(2000 + (random >> 8) % 60000);
    }
    for (int which = 0; which < 64; which++) free(kept[which]);
}

static void *sleeps(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    for (;;) pause();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t other;
    pthread_create(&other, NULL, sleeps, NULL);
    asks = argc < 2 || strcmp(argv[1], "healthy") != 0;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &every, NULL);
    churn(asks ? 100000000 : 300000);
    memset(&every, 0, sizeof every);
    setitimer(ITIMER_REAL, &every, NULL);
    printf("%d\n", ticks > 0);
    return 0;
}
