// Threads that end by pthread_exit, from inside nested calls, with a cleanup handler on the way.
// build: -pthread
// A right trace shows in each of the 4 threads run > deep > deep > deep > pthread_exit, and the cleanup
// handler `tidy` called before the thread ends; what ends the thread (pthread_exit, or
// __pthread_unwind_next after the handler) is open at its end, which is no loss.
#include <pthread.h>
#include <stdio.h>

static int tidied;
__attribute__((noinline)) void tidy(void *argument) { __atomic_fetch_add(&tidied, (int)(long)argument, __ATOMIC_SEQ_CST); }
__attribute__((noinline)) void deep(int depth) {
    if (depth == 0) pthread_exit((void *)5L);
    deep(depth - 1);
    __asm__ volatile("");
}
void *run(void *argument) {
    pthread_cleanup_push(tidy, argument);
    deep(2);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void) {
    long total = 0;
    for (long i = 1; i <= 4; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, run, (void *)i);
        pthread_join(thread, &result);
        total += (long)result;
    }
    printf("results %ld, tidied %d\n", total, tidied);
    return tidied == 10 ? 0 : 1;
}
