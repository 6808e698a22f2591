// Three threads that come to their work in the opposite order of their creation; each works five times.
// Prints how often each did: "5 5 5".
// build: -pthread
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3, TIMES = 5 };

static int done[THREADS];

__attribute__((noinline)) int work(int thread) { return ++done[thread]; }

static void *run(void *argument) {
    int thread = (int)(long)argument;
    usleep(30000 * (THREADS - thread));
    for (int i = 0; i < TIMES; i++) work(thread);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%d %d %d\n", done[0], done[1], done[2]);
    return 0;
}
