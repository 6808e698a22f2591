// OpenMP: a parallel loop, a critical section, tasks.
// build: -fopenmp
// A right trace shows the outlined regions once a thread; `add` 20 times in all under the critical section,
// and `leaf` 8 times in all under the tasks.
#include <stdio.h>

static long total;
static int leaves;
__attribute__((noinline)) void add(int n) { total += n; }
__attribute__((noinline)) void leaf(void) { __atomic_fetch_add(&leaves, 1, __ATOMIC_RELAXED); }
__attribute__((noinline)) void split(int depth) {
    if (depth == 0) {
        leaf();
        return;
    }
#pragma omp task
    split(depth - 1);
#pragma omp task
    split(depth - 1);
#pragma omp taskwait
}

int main(void) {
#pragma omp parallel for num_threads(4) schedule(static)
    for (int n = 1; n <= 20; n++) {
#pragma omp critical
        add(n);
    }
#pragma omp parallel num_threads(2)
#pragma omp single
    split(3);
    printf("%ld %d\n", total, leaves);
    return 0;
}
