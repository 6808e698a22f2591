// After iresearch-toolkit/iresearch issue 101: a reader takes a read lock that it has already, and a writer has come between.
//
// `bug`: the reading thread holds the lock in search() and asks for it again in read_field(), where it waits behind the writing
// thread, which waits in commit() for the reader to give it back. The second read lock is to blame.
// build: -pthread

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { DOCUMENTS = 100, ROUNDS = 30 };

struct index {
    pthread_rwlock_t lock;
    int documents[DOCUMENTS];
    int generation, hits, bug;
    volatile int is_inside, is_writing;
};

static int read_field(struct index *index, int document) {
    int value;
    pthread_rwlock_rdlock(&index->lock); /* HERE */
    value = index->documents[document];
    pthread_rwlock_unlock(&index->lock);
    return value;
}

// Waits until the writer has come to the lock.
static void score(struct index *index) {
    index->is_inside = 1;
    while (!index->is_writing) usleep(1000);
    usleep(50000);
}

static int search(struct index *index, int round) {
    int found = 0;
    if (index->bug && round == 20) {
        pthread_rwlock_rdlock(&index->lock);
        score(index);
        for (int i = 0; i < DOCUMENTS; i++) found += read_field(index, i) % 7 == 0; /* HERE */
        pthread_rwlock_unlock(&index->lock);
    } else {
        for (int i = 0; i < DOCUMENTS; i++) found += read_field(index, i) % 7 == 0;
    }
    return found;
}

static void *reader(void *argument) {
    struct index *index = argument;
    for (int round = 0; round < ROUNDS; round++) index->hits += search(index, round);
    return NULL;
}

static void commit(struct index *index, int round) {
    pthread_rwlock_wrlock(&index->lock);
    for (int i = 0; i < DOCUMENTS; i++) index->documents[i] = i + round;
    index->generation++;
    pthread_rwlock_unlock(&index->lock);
}

static void *writer(void *argument) {
    struct index *index = argument;
    for (int round = 0; round < ROUNDS; round++) {
        if (index->is_inside) index->is_writing = 1;
        commit(index, round);
        usleep(2000);
        // The last commits come while the reader searches.
        while (index->bug && round == ROUNDS / 2 && !index->is_inside) usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct index index = {.bug = argc > 1 && strcmp(argv[1], "bug") == 0};
    pthread_rwlockattr_t attributes;
    pthread_t threads[2];
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&index.lock, &attributes);
    pthread_create(&threads[0], NULL, reader, &index);
    pthread_create(&threads[1], NULL, writer, &index);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("generation %d\n", index.generation);
    pthread_rwlock_destroy(&index.lock);
    return 0;
}
