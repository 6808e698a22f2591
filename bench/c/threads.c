/* threads THREADS CALLS: each thread makes so many calls, then all wait; prints "ready" and stays until its input ends. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long calls;
static pthread_barrier_t done;

static __attribute__((noinline, noclone)) long step(long x) {
    __asm__ volatile("" : "+r"(x));
    if (__builtin_expect(x == -1, 0))
        abort();
    return (x * 3 + 1) & 0xffffff;
}

static void *work(void *seed) {
    volatile long x = (long)seed;
    for (long i = 0; i < calls; i++)
        x = step(x);
    pthread_barrier_wait(&done);
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv) {
    long threads = argc > 1 ? atol(argv[1]) : 1;
    calls = argc > 2 ? atol(argv[2]) : 10;
    pthread_barrier_init(&done, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i))
            return 1;
    }
    pthread_barrier_wait(&done);
    printf("ready %ld\n", (long)getpid());
    fflush(stdout);
    getchar();
    _exit(0);
}
