// A thread takes an object, takes and gives back others of its kind, and ends. Another thread wants that object, and holds one that
// nobody else wants. A third goes on with its own for a while.
//
//   holders KIND        mutex, tried, twice, rwlock, readers, spin, semaphore, c11, openmp
//   holders KIND back   the first thread gives it back
//
// A right answer names the first thread (0.1), and the line with the comment `kept` and the kind.
// build: -pthread -fopenmp

#include <omp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

enum { WANTED, OTHER, THIRD, COUNT };

static pthread_mutex_t mutexes[COUNT];
static pthread_rwlock_t rwlocks[COUNT];
static pthread_spinlock_t spins[COUNT];
static sem_t semaphores[COUNT];
static mtx_t plain[COUNT];
static omp_lock_t omp_locks[COUNT];
static const char *kind;
static int gives_back, work;

static int is(const char *name) { return strcmp(kind, name) == 0; }

__attribute__((noinline)) static void give(int which) {
    if (is("mutex") || is("tried") || is("twice")) pthread_mutex_unlock(&mutexes[which]);
    if (is("rwlock") || is("readers")) pthread_rwlock_unlock(&rwlocks[which]);
    if (is("spin")) pthread_spin_unlock(&spins[which]);
    if (is("semaphore")) sem_post(&semaphores[which]);
    if (is("c11")) mtx_unlock(&plain[which]);
    if (is("openmp")) omp_unset_lock(&omp_locks[which]);
}

__attribute__((noinline)) static void take(int which) {
    if (is("mutex") || is("tried") || is("twice")) pthread_mutex_lock(&mutexes[which]);
    if (is("rwlock") || is("readers")) pthread_rwlock_wrlock(&rwlocks[which]);
    if (is("spin")) pthread_spin_lock(&spins[which]);
    if (is("semaphore")) sem_wait(&semaphores[which]);
    if (is("c11")) mtx_lock(&plain[which]);
    if (is("openmp")) omp_set_lock(&omp_locks[which]);
}

__attribute__((noinline)) static void keep(void) {
    if (is("mutex")) pthread_mutex_lock(&mutexes[WANTED]);         // kept mutex
    if (is("tried")) pthread_mutex_trylock(&mutexes[WANTED]);      // kept tried
    if (is("rwlock")) pthread_rwlock_wrlock(&rwlocks[WANTED]);     // kept rwlock
    if (is("readers")) pthread_rwlock_rdlock(&rwlocks[WANTED]);    // kept readers
    if (is("spin")) pthread_spin_lock(&spins[WANTED]);             // kept spin
    if (is("semaphore")) sem_wait(&semaphores[WANTED]);            // kept semaphore
    if (is("c11")) mtx_lock(&plain[WANTED]);                       // kept c11
    if (is("openmp")) omp_set_lock(&omp_locks[WANTED]);            // kept openmp
    if (is("twice")) pthread_mutex_lock(&mutexes[WANTED]);         // kept twice
    if (is("twice")) pthread_mutex_lock(&mutexes[WANTED]);
    if (is("twice")) pthread_mutex_unlock(&mutexes[WANTED]);
}

static void *first(void *unused) {
    usleep(60000);
    for (int round = 0; round < 3; round++) {
        take(WANTED);
        give(WANTED);
    }
    keep();
    take(OTHER);
    give(OTHER);
    // It is somebody else's, and this comes to nothing.
    if (is("tried")) pthread_mutex_trylock(&mutexes[THIRD]);
    if (gives_back) give(WANTED);
    return unused;
}

static void *second(void *unused) {
    take(OTHER);
    take(WANTED);
    work++;
    give(WANTED);
    give(OTHER);
    return unused;
}

static void *third(void *unused) {
    for (int round = 0; round < 10; round++) {
        take(THIRD);
        usleep(20000);
        give(THIRD);
    }
    return unused;
}

int main(int argc, char **argv) {
    kind = argc > 1 ? argv[1] : "mutex";
    gives_back = argc > 2;
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    for (int which = 0; which < COUNT; which++) {
        pthread_mutex_init(&mutexes[which], is("twice") ? &recursive : NULL);
        pthread_rwlock_init(&rwlocks[which], NULL);
        pthread_spin_init(&spins[which], 0);
        sem_init(&semaphores[which], 0, 1);
        mtx_init(&plain[which], mtx_plain);
        omp_init_lock(&omp_locks[which]);
    }
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[2], NULL, third, NULL);
    pthread_join(threads[0], NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[1], NULL);
    pthread_join(threads[2], NULL);
    printf("%d\n", work);
    return 0;
}
