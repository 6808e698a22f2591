// After hpc/libcircle pull request 45: ranks that share work answer requests with a blocking send of queue items.
//
// `bug`: ranks 1, 2 and 3 answer each other's requests at the same time, each with a message too large to be buffered,
// before anybody receives: each waits in MPI_Send of reply() for the next one. Rank 0 waits for their counts.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUEST = 10, REPLY = 11, DONE = 12, ITEMS = 400000 };

static int rank, size, bug;
static int *queue, *received;

static int thief(void) { return rank == size - 1 ? 1 : rank + 1; }
static int victim(void) { return rank == 1 ? size - 1 : rank - 1; }

// Asks the rank before for work, and takes the request of the rank behind.
static int exchange_requests(int round) {
    int asked = 0;
    MPI_Sendrecv(&round, 1, MPI_INT, victim(), REQUEST, &asked, 1, MPI_INT, thief(), REQUEST, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return asked;
}

static void reply(int count) {
    MPI_Send(queue, count, MPI_INT, thief(), REPLY, MPI_COMM_WORLD); /* HERE */
}

static int take(void) {
    MPI_Status status;
    int count = 0;
    MPI_Recv(received, ITEMS, MPI_INT, victim(), REPLY, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    return count;
}

static int work(int items) {
    int sum = 0;
    for (int i = 0; i < items; i++) sum += queue[i] = i % 7;
    return sum;
}

static void worker(void) {
    int done = 0;
    for (int round = 0; round < 6; round++) {
        done += work(100);
        exchange_requests(round);
        // In round 4 the queues have grown.
        int share = bug && round == 4 ? ITEMS : 16;
        reply(share);
        done += take();
    }
    MPI_Send(&done, 1, MPI_INT, 0, DONE, MPI_COMM_WORLD);
}

static void coordinator(void) {
    int sum = 0;
    for (int other = 1; other < size; other++) {
        int done;
        MPI_Recv(&done, 1, MPI_INT, other, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sum += done;
    }
    printf("%d items\n", sum);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    queue = calloc(ITEMS, sizeof *queue);
    received = calloc(ITEMS, sizeof *received);
    if (rank == 0)
        coordinator();
    else
        worker();
    free(queue);
    free(received);
    MPI_Finalize();
    return 0;
}
