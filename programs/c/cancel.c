// A thread that is cancelled in a blocking call, with cleanup handlers in two frames. Built with and
// without -fexceptions, the handlers run by two different mechanisms.
// build: -pthread
// A right trace shows run > inner > pause, then inner_tidy and outer_tidy, and the thread's end.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int waiting;
__attribute__((noinline)) void inner_tidy(void *argument) { (void)argument; puts("inner tidied"); }
__attribute__((noinline)) void outer_tidy(void *argument) { (void)argument; puts("outer tidied"); }
__attribute__((noinline)) void inner(void) {
    pthread_cleanup_push(inner_tidy, NULL);
    waiting = 1;
    for (;;) pause();
    pthread_cleanup_pop(0);
}
void *run(void *argument) {
    pthread_cleanup_push(outer_tidy, NULL);
    inner();
    pthread_cleanup_pop(0);
    return argument;
}

int main(void) {
    pthread_t thread;
    void *result;
    pthread_create(&thread, NULL, run, NULL);
    while (!waiting) usleep(1000);
    usleep(10000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    puts(result == PTHREAD_CANCELED ? "cancelled" : "returned");
    return 0;
}
