// Threads that wait for one of their process. The first thread starts a producer and a reporter, which share two locks.
//
//   kept_lock kept    the producer returns early and keeps the lock that it took last; the reporter waits for that lock
//   kept_lock exit    the producer calls exit(); a handler waits for the reporter, which waits for the lock of the handler
//   kept_lock         no bug
//
// A right answer names the producer, and the line with the comment of the word.
// build: -pthread

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 4, FAULTY = 2 };

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_t reporter_thread, producer_thread;
static const char *bug = "";
static int items;

static int is(const char *name) { return strcmp(bug, name) == 0; }

__attribute__((noinline)) static int push(int round) {
    pthread_mutex_lock(&inner); // kept
    if (is("kept") && round == FAULTY) return -1;
    items++;
    pthread_mutex_unlock(&inner);
    return 0;
}

__attribute__((noinline)) static void report(void) {
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    items = 0;
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
}

static void leave(void) {
    if (!is("exit")) return;
    pthread_mutex_lock(&inner);
    pthread_join(reporter_thread, NULL);
}

static void *produce(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        if (push(round) < 0) return unused;
        if (is("exit") && round == FAULTY) exit(3); // exit
    }
    return unused;
}

static void *reports(void *unused) {
    for (int round = 0; round < ROUNDS; round++) {
        usleep(50000);
        report();
    }
    return unused;
}

int main(int argc, char **argv) {
    if (argc > 1) bug = argv[1];
    atexit(leave);
    pthread_create(&reporter_thread, NULL, reports, NULL);
    pthread_create(&producer_thread, NULL, produce, NULL);
    pthread_join(producer_thread, NULL);
    pthread_join(reporter_thread, NULL);
    printf("%d items\n", items);
    return 0;
}
