// After open-mpi/ompi issue 2427: two threads of each rank make collective operations on one communicator, and nothing but
// chance brings them into the same order on all ranks.
//
// `bug`: in round 3 the broadcasting thread of rank 2 comes before the reducing one: its MPI_Bcast in broadcast_model() meets
// the MPI_Allreduce of the other ranks, in reduce_gradients(). The communicator should be another for each thread.
// build: -pthread

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 6, LAYER = 100000 };

static int rank, size, bug;
static double gradients[LAYER], summed[LAYER], model[LAYER];

// Whose turn it is: the thread that reduces is 0, the one that broadcasts is 1.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int operations;

static int place(int round, int who) {
    int is_swapped = bug && rank == 2 && round == 3;
    return 2 * round + (is_swapped ? 1 - who : who);
}

static void await_turn(int round, int who) {
    pthread_mutex_lock(&lock);
    while (operations != place(round, who)) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void end_turn(void) {
    pthread_mutex_lock(&lock);
    operations++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void reduce_gradients(void) {
    MPI_Allreduce(gradients, summed, LAYER, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* HERE */
}

static void broadcast_model(void) {
    MPI_Bcast(model, LAYER, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* HERE */
}

static void *reducer(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LAYER; i++) gradients[i] = rank + round;
        await_turn(round, 0);
        reduce_gradients();
        end_turn();
    }
    return NULL;
}

static void *broadcaster(void *argument) {
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        await_turn(round, 1);
        broadcast_model();
        end_turn();
    }
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    pthread_t threads[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    if (rank == 0) memset(model, 1, sizeof model);
    pthread_create(&threads[0], NULL, reducer, NULL);
    pthread_create(&threads[1], NULL, broadcaster, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    if (rank == 0) printf("gradient %g of %d ranks\n", summed[0], size);
    MPI_Finalize();
    return 0;
}
