// After RRZE-HPC/likwid issue 416: a function that stops a measured region returns early and keeps the lock.
//
// `bug`: thread 2 stops a region that it has not started; stop_region() returns without omp_unset_lock(). Thread 3, which
// shares the lock, waits for it in omp_set_lock() of stop_region(), the others at the end of the parallel region.
// build: -fopenmp

#include <omp.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, REGIONS = 3, LOCKS = 2 };

struct region {
    double seconds, begin;
    int is_started, count;
};

static omp_lock_t locks[LOCKS];
static struct region regions[THREADS][REGIONS];

static omp_lock_t *lock_of(int thread) { return &locks[thread / 2 % LOCKS]; }

static void start_region(int thread, int number) {
    omp_set_lock(lock_of(thread));
    struct region *region = &regions[thread][number];
    region->is_started = 1;
    region->begin = omp_get_wtime();
    omp_unset_lock(lock_of(thread));
}

static int stop_region(int thread, int number) {
    omp_set_lock(lock_of(thread)); /* HERE */
    struct region *region = &regions[thread][number];
    if (!region->is_started) {
        fprintf(stderr, "stopping an unknown region %d\n", number);
        return -1; /* HERE */
    }
    region->seconds += omp_get_wtime() - region->begin;
    region->is_started = 0;
    region->count++;
    omp_unset_lock(lock_of(thread));
    return 0;
}

static double kernel(int thread, int step) {
    double sum = 0;
    for (int i = 0; i < 20000; i++) sum += 1.0 / (1 + i + thread + step);
    return sum;
}

static double measure(int step, int bug) {
    double sum = 0;
#pragma omp parallel num_threads(THREADS) reduction(+ : sum)
    {
        int thread = omp_get_thread_num();
        int number = step % REGIONS;
        start_region(thread, number);
        sum += kernel(thread, step);
        if (thread % 2 == 0) stop_region(thread, bug && thread == 2 && step == 7 ? (number + 1) % REGIONS : number);
#pragma omp barrier
        // The odd threads go on for a while.
        if (thread % 2) {
            sum += kernel(thread, step);
            stop_region(thread, number);
        }
    }
    return sum;
}

int main(int argc, char **argv) {
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    double sum = 0;
    for (int i = 0; i < LOCKS; i++) omp_init_lock(&locks[i]);
    for (int step = 0; step < 12; step++) sum += measure(step, bug);
    for (int thread = 0; thread < THREADS; thread++) printf("thread %d: %d times\n", thread, regions[thread][0].count);
    printf("sum %g\n", sum);
    for (int i = 0; i < LOCKS; i++) omp_destroy_lock(&locks[i]);
    return 0;
}
