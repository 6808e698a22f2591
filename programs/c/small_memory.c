// Lowers its own limit of address space to a few MiB more than it has, and then starts threads and calls.
// build: -pthread
// A right recording: the same output; threads for which the recorder found no memory are counted.
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

__attribute__((noinline)) long work(long n) {
    __asm__ volatile("");
    return n ? work(n - 1) + 1 : 0;
}
static void *run(void *argument) { return (void *)work((long)argument); }

int main(void) {
    long pages = 0, sum = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) return 1;
    fclose(file);
    struct rlimit limit = {(rlim_t)(pages + 256) * 4096, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit)) return 1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (long i = 0; i < 50; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, &attributes, run, (void *)i)) return puts("no thread");
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("%ld\n", sum);
    return 0;
}
