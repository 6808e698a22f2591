// build: -pthread
// crowd THREADS AT_ONCE: so many threads, of which AT_ONCE are there at the same time. All that are there wait for each
// other and go on in the same moment; then the next ones begin.
// A right recording: the same sum, all calls of all threads, and a small multiple of the processor time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t together;
static long sums[65536];

__attribute__((noinline)) static long count_down(long n) {
    __asm__ volatile("");
    return n == 0 ? 0 : 1 + count_down(n - 1);
}
static void *run(void *number) {
    long i = (long)number;
    for (long n = 0; n < 20; n++) sums[i] += count_down(n + i % 5);
    pthread_barrier_wait(&together);
    for (long n = 0; n < 5; n++) sums[i] += count_down(n);
    return NULL;
}
int main(int count, char **words) {
    long all = count > 1 ? atol(words[1]) : 1000, at_once = count > 2 ? atol(words[2]) : all, sum = 0;
    pthread_t *threads = malloc(at_once * sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&together, NULL, at_once);
    for (long done = 0; done < all; done += at_once) {
        for (long i = 0; i < at_once; i++)
            if (pthread_create(&threads[i], &small, run, (void *)(done + i))) return perror("pthread_create"), 3;
        for (long i = 0; i < at_once; i++) pthread_join(threads[i], NULL);
    }
    for (long i = 0; i < all; i++) sum += sums[i];
    printf("%ld\n", sum);
    return 0;
}
