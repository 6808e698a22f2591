// Two thousand threads, one after the other in groups of four, each with a handful of calls.
// build: -pthread
// A right trace shows 2,001 threads; each but the first has run > step, three times.
#include <pthread.h>
#include <stdio.h>

static int steps;
__attribute__((noinline)) void step(void) { __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED); }
void *run(void *argument) {
    for (int i = 0; i < 3; i++) step();
    return argument;
}

int main(void) {
    for (int group = 0; group < 500; group++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            if (pthread_create(&threads[i], NULL, run, NULL)) return 1;
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    printf("%d steps\n", steps);
    return 0;
}
