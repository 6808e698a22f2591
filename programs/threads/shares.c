// Four threads sort their shares of an array, round by round, and add to a sum under a lock. Its helpers are such that compilers
// inline, split and clone them, turn their recursion into loops, and call another library function than the source.
// build: -pthread
//
//   -DUNLOCKED: thread 4 (trace 0.4) adds without the lock in round 2 (from 0)
//   -DSKIPPED: thread 3 (trace 0.3) leaves out its addition in round 1
//
// A right trace shows in threads 0.1 to 0.4 four rounds of sorting, adding and waiting at a barrier, whatever the optimisation.

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ITEMS = 40, ROUNDS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static long total;
static int *items;

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

static void swap(int *a, int *b) {
    int t = *a;
    *a = *b;
    *b = t;
}

static void quick(int *v, int n) {
    if (n < 2) return;
    int pivot = v[n / 2], i = 0, j = n - 1;
    for (;; i++, j--) {
        while (v[i] < pivot) i++;
        while (v[j] > pivot) j--;
        if (i >= j) break;
        swap(&v[i], &v[j]);
    }
    quick(v, i);
    quick(v + i, n - i);
}

static void add(long value, int who, int round) {
#ifdef UNLOCKED
    if (who == 3 && round == 2) {
        total += value;
        return;
    }
#endif
#ifdef SKIPPED
    if (who == 2 && round == 1) return;
#endif
    (void)who, (void)round;
    pthread_mutex_lock(&lock);
    total += value;
    pthread_mutex_unlock(&lock);
}

static void tell(int who, const char *what) {
    char line[64];
    if (!what) return;
    snprintf(line, sizeof line, "%d: %s\n", who, what);
    fputs(line, stderr);
}

static void *work(void *argument) {
    int who = (int)(long)argument;
    int *mine = items + who * ITEMS;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ITEMS; i++) mine[i] = (i * 7919 + round) % 31;
        quick(mine, ITEMS);
        if (round == 3) qsort(mine, ITEMS, sizeof *mine, compare);
        add(mine[0] + fibonacci(7), who, round);
        pthread_barrier_wait(&barrier);
        tell(who, round == 2 ? "third" : 0);
    }
    return 0;
}

int main(void) {
    pthread_t threads[THREADS];
    items = calloc(THREADS * ITEMS, sizeof *items);
    pthread_barrier_init(&barrier, 0, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    printf("done\n");
    free(items);
    return 0;
}
