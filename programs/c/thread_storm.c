// Four threads call each other's handlers as fast as they can, while all of them recurse; handlers recurse
// too, on the stack they find or on one of their own.
// build: -pthread
// With -DFIRST=SIGSEGV -DSECOND=SIGBUS: signals that a thread seldom gets from others.
// A right trace shows every call of all four threads or counts it as lost, and is whole.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FIRST
#define FIRST SIGUSR1
#define SECOND SIGUSR2
#endif

enum { THREADS = 4, HITS = 400 };
static pthread_t threads[THREADS];
static pthread_barrier_t barrier;
static int handled;

__attribute__((noinline)) long tree(int depth) {
    __asm__ volatile("");
    return depth ? tree(depth - 1) + tree(depth - 1) : 1;
}
__attribute__((noinline)) void handle(int signal) {
    (void)signal;
    tree(2);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}
static void *run(void *argument) {
    long index = (long)argument, sum = 0;
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536}, none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < HITS; i++) {
        pthread_kill(threads[(index + 1 + i % (THREADS - 1)) % THREADS], i & 1 ? FIRST : SECOND);
        sum += tree(5);
    }
    pthread_barrier_wait(&barrier);
    sigaltstack(&none, NULL);
    free(stack.ss_sp);
    return (void *)sum;
}

int main(void) {
    struct sigaction action;
    long sum = 0;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    sigaction(FIRST, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SECOND, &action, NULL);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("%ld, %s\n", sum, handled > 0 ? "stormy" : "calm");
    return 0;
}
