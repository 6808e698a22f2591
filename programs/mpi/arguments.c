// Calls with arguments of every kind, each of which says what it was given and what it gave back:
// point to point, nonblocking with Waitall, MPI_ANY_SOURCE with a status, Sendrecv, Probe, Test,
// collectives, Comm_split (odd ranks apart, in descending order), Comm_dup, Cart_create.
//
// A right trace has these calls with these arguments in this order: the lines that rank R writes to
// the file ARGUMENT.R ("MPI_Send(count=3, ...)" and, where something is given back, "return(...)")
// are compared with what `lockstep events --arguments` says of trace R.0. Needs at least 2 ranks; all ranks do the same
// calls in the same order, so their control flow is the same.

#include <mpi.h>
#include <stdio.h>

static int rank, ranks;

static FILE *said;

#define SAY(...) (fprintf(said, __VA_ARGS__), fprintf(said, "\n"))

static void point_to_point(void) {
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    int sent[3] = {1, 2, 3}, got[3], more[2];
    MPI_Request requests[2];
    MPI_Status status, statuses[2];

    SAY("MPI_Irecv(count=3, datatype=MPI_INT, source=%d, tag=7, comm=MPI_COMM_WORLD)", before);
    MPI_Irecv(got, 3, MPI_INT, before, 7, MPI_COMM_WORLD, &requests[0]);
    SAY("MPI_Isend(count=3, datatype=MPI_INT, dest=%d, tag=7, comm=MPI_COMM_WORLD)", next);
    MPI_Isend(sent, 3, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[1]);
    SAY("MPI_Waitall(count=2)");
    MPI_Waitall(2, requests, statuses);
    SAY("return(source=%d, tag=%d)", statuses[0].MPI_SOURCE, statuses[0].MPI_TAG);

    SAY("MPI_Isend(count=2, datatype=MPI_BYTE, dest=%d, tag=100000, comm=MPI_COMM_WORLD)", next);
    MPI_Isend(sent, 2, MPI_BYTE, next, 100000, MPI_COMM_WORLD, &requests[0]);
    SAY("MPI_Recv(count=2, datatype=MPI_INT, source=MPI_ANY_SOURCE, tag=MPI_ANY_TAG, "
        "comm=MPI_COMM_WORLD)");
    MPI_Recv(more, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    SAY("return(source=%d, tag=%d, bytes=2)", status.MPI_SOURCE, status.MPI_TAG);
    SAY("MPI_Wait()");
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);

    SAY("MPI_Sendrecv(sendcount=1, sendtype=MPI_INT, dest=%d, sendtag=1, recvcount=2, "
        "recvtype=MPI_INT, source=%d, recvtag=1, comm=MPI_COMM_WORLD)", next, before);
    MPI_Sendrecv(sent, 1, MPI_INT, next, 1, got, 2, MPI_INT, before, 1, MPI_COMM_WORLD, &status);
    SAY("return(source=%d, tag=1, bytes=4)", status.MPI_SOURCE);

    SAY("MPI_Send(count=1, datatype=MPI_DOUBLE, dest=MPI_PROC_NULL, tag=3, comm=MPI_COMM_WORLD)");
    double number = 0;
    MPI_Send(&number, 1, MPI_DOUBLE, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
}

static void collectives(void) {
    int one = rank, sum, all[64];
    SAY("MPI_Allreduce(count=1, datatype=MPI_INT, op=MPI_SUM, comm=MPI_COMM_WORLD)");
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    SAY("MPI_Bcast(count=1, datatype=MPI_INT, root=1, comm=MPI_COMM_WORLD)");
    MPI_Bcast(&one, 1, MPI_INT, 1, MPI_COMM_WORLD);
    SAY("MPI_Reduce(count=1, datatype=MPI_INT, op=MPI_MAX, root=0, comm=MPI_COMM_WORLD)");
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    SAY("MPI_Allgather(sendcount=1, sendtype=MPI_INT, recvcount=1, recvtype=MPI_INT, "
        "comm=MPI_COMM_WORLD)");
    MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    SAY("MPI_Barrier(comm=MPI_COMM_WORLD)");
    MPI_Barrier(MPI_COMM_WORLD);
}

static void communicators(void) {
    MPI_Comm half, copy, line;
    int own, size, flag, dimensions[1] = {ranks}, periodic[1] = {1};
    MPI_Status status;
    SAY("MPI_Comm_split(comm=MPI_COMM_WORLD, color=%d, key=%d)", rank % 2, -rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    SAY("MPI_Comm_rank()");
    MPI_Comm_rank(half, &own);
    SAY("return(rank=%d)", own);
    SAY("MPI_Comm_size()");
    MPI_Comm_size(half, &size);
    SAY("return(size=%d)", size);
    SAY("MPI_Bcast(count=1, datatype=MPI_INT, root=%d (world %d))", size - 1, rank % 2);
    MPI_Bcast(&own, 1, MPI_INT, size - 1, half);
    SAY("MPI_Comm_dup()");
    MPI_Comm_dup(half, &copy);
    SAY("MPI_Barrier()");
    MPI_Barrier(copy);
    SAY("MPI_Cart_create(comm_old=MPI_COMM_WORLD, ndims=1, reorder=0)");
    MPI_Cart_create(MPI_COMM_WORLD, 1, dimensions, periodic, 0, &line);
    SAY("MPI_Iprobe(source=0 (world 0), tag=9)");
    MPI_Iprobe(0, 9, line, &flag, &status);
    SAY("return(flag=0)");
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&line);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    // A launcher mixes what several ranks print.
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", argv[1], rank);
    said = fopen(name, "w");
    if (!said) MPI_Abort(MPI_COMM_WORLD, 2);
    point_to_point();
    collectives();
    communicators();
    fclose(said);
    MPI_Finalize();
    return 0;
}
