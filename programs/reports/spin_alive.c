// After Pithikos/C-Thread-Pool issue 6: a loop that waits until all threads of a pool are alive, on a variable that the compiler
// need not read again.
//
// `bug`: main spins for ever in pool_init(), on a count that it has read once; the threads of the pool wait for work. Nobody is
// in a deadlock: main computes.
// build: -pthread

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 3, JOBS = 24 };

struct pool {
    pthread_t threads[THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int alive, plain_alive, next, done, is_closed;
    long sum;
};

static void *serve(void *argument) {
    struct pool *pool = argument;
    usleep(20000);
    pthread_mutex_lock(&pool->lock);
    pool->plain_alive++;
    __atomic_add_fetch(&pool->alive, 1, __ATOMIC_SEQ_CST);
    while (!pool->is_closed || pool->next < JOBS) {
        if (pool->next == JOBS || pool->next < 0) {
            pthread_cond_wait(&pool->changed, &pool->lock);
            continue;
        }
        pool->sum += pool->next++;
        pool->done++;
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void await_plain(const struct pool *pool) {
    while (pool->plain_alive != THREADS) { /* HERE */
    }
}

static void await_alive(struct pool *pool) {
    while (__atomic_load_n(&pool->alive, __ATOMIC_SEQ_CST) != THREADS) usleep(1000);
}

static void pool_init(struct pool *pool, int bug) {
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->changed, NULL);
    pool->next = -1;
    for (int i = 0; i < THREADS; i++) pthread_create(&pool->threads[i], NULL, serve, pool);
    if (bug)
        await_plain(pool); /* HERE */
    else
        await_alive(pool);
}

static void pool_run(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->next = 0;
    pool->is_closed = 1;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < THREADS; i++) pthread_join(pool->threads[i], NULL);
}

int main(int argc, char **argv) {
    struct pool *pool = calloc(1, sizeof *pool);
    pool_init(pool, argc > 1 && strcmp(argv[1], "bug") == 0);
    pool_run(pool);
    printf("%d jobs, sum %ld\n", pool->done, pool->sum);
    free(pool);
    return 0;
}
