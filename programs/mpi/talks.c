// Sends messages in many ways, and writes down what it sends and receives, a line each, into talks.RANK: `send PEER TAG BYTES` and
// `receive PEER TAG BYTES`, by ranks in the communicator; of collective operations `share OPERATION ROOT SENT RECEIVED`.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *book;

static void note(const char *what, int peer, int tag, long bytes) {
    fprintf(book, "%s %d %d %ld\n", what, peer, tag, bytes);
}

static void share(const char *operation, int root, long sent, long received) {
    fprintf(book, "share %s %d %ld %ld\n", operation, root, sent, received);
}

// To the next rank and from the one before, in a ring.
static void around(MPI_Comm comm, int turns) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    double out[8] = {0}, in[2][8];
    for (int turn = 0; turn < turns; turn++) {
        MPI_Request receives[2], sends[2];
        // The later one is waited for first.
        for (int i = 0; i < 2; i++) MPI_Irecv(in[i], 8, MPI_DOUBLE, before, 5, comm, &receives[i]);
        for (int i = 0; i < 2; i++) {
            MPI_Isend(out, i + 1, MPI_DOUBLE, next, 5, comm, &sends[i]);
            note("send", next, 5, (i + 1) * 8);
        }
        MPI_Wait(&receives[1], MPI_STATUS_IGNORE);
        note("receive", before, 5, 16);
        MPI_Wait(&receives[0], MPI_STATUS_IGNORE);
        note("receive", before, 5, 8);
        MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
        int mine = rank, theirs;
        note("send", next, 6, 4);
        MPI_Sendrecv(&mine, 1, MPI_INT, next, 6, &theirs, 1, MPI_INT, before, 6, comm, MPI_STATUS_IGNORE);
        note("receive", before, 6, 4);
    }
}

// All others send to rank 0, which takes what comes.
static void gather_in(MPI_Comm comm) {
    int rank, size;
    char text[64] = {0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank > 0) {
        note("send", 0, 7 + rank, 10 * rank);
        MPI_Send(text, 10 * rank, MPI_CHAR, 0, 7 + rank, comm);
        return;
    }
    for (int i = 1; i < size; i++) {
        MPI_Status status;
        MPI_Recv(text, 64, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        note("receive", status.MPI_SOURCE, status.MPI_TAG, 10 * status.MPI_SOURCE);
    }
}

static void together(MPI_Comm comm) {
    int rank, size;
    long in[4] = {0}, out[64];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Barrier(comm);
    share("BARRIER", -1, 0, 0);
    MPI_Bcast(in, 4, MPI_LONG, 1, comm);
    share("BCAST", 1, rank == 1 ? 32 * size : 0, 32);
    MPI_Reduce(in, out, 4, MPI_LONG, MPI_SUM, 0, comm);
    share("REDUCE", 0, 32, rank == 0 ? 32 * size : 0);
    MPI_Allreduce(in, out, 1, MPI_LONG, MPI_SUM, comm);
    share("ALLREDUCE", -1, 8 * size, 8 * size);
    MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_LONG, MPI_SUM, comm);
    share("ALLREDUCE", -1, 8 * (size - 1), 8 * (size - 1));
    MPI_Alltoall(out, 1, MPI_LONG, out + 32, 1, MPI_LONG, comm);
    share("ALLTOALL", -1, 8 * size, 8 * size);
    MPI_Request request;
    MPI_Iallreduce(in, out, 2, MPI_LONG, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    share("ALLREDUCE", -1, 16 * size, 16 * size);
}

int main(int argc, char **argv) {
    int turns = argc > 1 ? atoi(argv[1]) : 1;
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char name[32];
    snprintf(name, sizeof name, "talks.%d", rank);
    book = fopen(name, "w");
    around(MPI_COMM_WORLD, turns);
    gather_in(MPI_COMM_WORLD);
    together(MPI_COMM_WORLD);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    share("CREATE_HANDLE", -1, 0, 0);
    around(half, 1);
    together(half);
    MPI_Comm_free(&half);
    fclose(book);
    MPI_Finalize();
    return 0;
}
