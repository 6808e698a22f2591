// A process forks, and its child does what it has no threads for.
//
//   forks pool      the parent ran a region before: the child's region waits for threads that fork did not copy
//   forks lock      a thread of the parent holds a lock at the fork: the child wants it
//   forks healthy   the child runs a region, and the parent none before
//
// A right answer names the child's process (1).
// build: -fopenmp -pthread

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) static double sum(int n) {
    double all = 0;
#pragma omp parallel for reduction(+ : all) num_threads(3)
    for (int i = 0; i < n; i++) all += i * 0.5;
    return all;
}

static void *holds(void *unused) {
    pthread_mutex_lock(&lock);
    usleep(300000);
    pthread_mutex_unlock(&lock);
    return unused;
}

__attribute__((noinline)) static void child(const char *word) {
    if (strcmp(word, "lock") == 0) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    } else {
        printf("child %g\n", sum(1000));
    }
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv) {
    const char *word = argc > 1 ? argv[1] : "healthy";
    pthread_t holder;
    int locks = strcmp(word, "lock") == 0;
    if (strcmp(word, "pool") == 0) printf("parent %g\n", sum(1000));
    if (locks) pthread_create(&holder, NULL, holds, NULL);
    usleep(100000);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) child(word);
    if (locks) pthread_join(holder, NULL);
    waitpid(pid, NULL, 0);
    printf("done\n");
    return 0;
}
