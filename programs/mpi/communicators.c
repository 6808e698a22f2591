// Calls on communicators that the program made itself, and what MPI says of them: each rank asks with
// MPI_Group_translate_ranks who is behind a rank. MPI_Comm_split, _dup, _free (handles come back),
// _create, _create_group, _split_type, MPI_Cart_create, MPI_Intercomm_create and _merge.
//
// A right trace says the same: the lines that rank R writes to the file ARGUMENT.R
// ("MPI_Bcast(root=1 (world 3), comm={5,3,1})") stand in this order in `lockstep events --arguments` of
// trace R.0, where a communicator has a number besides. Needs 6 ranks.

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, ranks;
static FILE *said;
static MPI_Group everybody;

// The world's rank behind a rank of the side that messages go to.
static int world(MPI_Comm comm, int of, int remote) {
    MPI_Group group;
    int is_inter, found;
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter && remote) MPI_Comm_remote_group(comm, &group);
    else MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, 1, &of, everybody, &found);
    MPI_Group_free(&group);
    return found;
}

static char *members(MPI_Comm comm) {
    static char text[4][256];
    static int next;
    char *at = text[next = (next + 1) % 4];
    MPI_Group group;
    int size;
    MPI_Comm_group(comm, &group);
    MPI_Group_size(group, &size);
    MPI_Group_free(&group);
    strcpy(at, "{");
    for (int of = 0; of < size; of++)
        sprintf(at + strlen(at), "%s%d", of ? "," : "", world(comm, of, 0));
    return strcat(at, "}");
}

#define SAY(...) (fprintf(said, __VA_ARGS__), fprintf(said, "\n"))

// Everybody sends to the next one and receives from anybody.
static void ring(MPI_Comm comm) {
    int own, size, sent = rank, got, next;
    MPI_Request request;
    MPI_Status status;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    next = (own + 1) % size;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 5, comm, &request);
    SAY("MPI_Send(dest=%d (world %d), tag=5, comm=%s)", next, world(comm, next, 1), members(comm));
    MPI_Send(&sent, 1, MPI_INT, next, 5, comm);
    MPI_Wait(&request, &status);
    SAY("return(source=%d (world %d), tag=5)", status.MPI_SOURCE,
        world(comm, status.MPI_SOURCE, 1));
}

static void root(MPI_Comm comm, int of) {
    int value = rank;
    SAY("MPI_Bcast(root=%d (world %d), comm=%s)", of, world(comm, of, 0), members(comm));
    MPI_Bcast(&value, 1, MPI_INT, of, comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_group(MPI_COMM_WORLD, &everybody);
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", argv[1], rank);
    said = fopen(name, "w");
    if (!said || ranks != 6) MPI_Abort(MPI_COMM_WORLD, 2);

    MPI_Comm half, copy, third, chosen, alone, grid, node, both, all;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    SAY("return(newcomm=%s)", members(half));
    ring(half);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_free(&half);
    ring(copy);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 4 ? rank / 2 : MPI_UNDEFINED, 0, &third);
    if (third != MPI_COMM_NULL) root(third, 1);
    // A communicator of a communicator of one's own.
    MPI_Comm_split(copy, 0, rank, &half);
    root(half, 0);

    int few[3] = {5, 0, 3};
    MPI_Group group;
    MPI_Group_incl(everybody, 3, few, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &chosen);
    if (chosen != MPI_COMM_NULL) {
        root(chosen, 2);
        MPI_Comm_create_group(chosen, group, 7, &alone);
        ring(alone);
        MPI_Comm_free(&alone);
    }
    MPI_Group_free(&group);

    int dimensions[2] = {3, 2}, periodic[2] = {1, 0}, before, next, got;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dimensions, periodic, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &before, &next);
    SAY("return(rank_source=%d (world %d), rank_dest=%d (world %d))", before,
        world(grid, before, 1), next, world(grid, next, 1));
    SAY("MPI_Sendrecv(dest=%d (world %d), source=%d (world %d), comm=%s)", next,
        world(grid, next, 1), before, world(grid, before, 1), members(grid));
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, &got, 1, MPI_INT, before, 1, grid, MPI_STATUS_IGNORE);

    // Even ranks and odd ranks; the leaders know each other in the world.
    MPI_Intercomm_create(copy, 0, MPI_COMM_WORLD, rank % 2 ? 4 : 5, 3, &both);
    int own, size;
    MPI_Comm_rank(both, &own);
    MPI_Comm_remote_size(both, &size);
    next = (own + 1) % size;
    before = (own + size - 1) % size;
    SAY("MPI_Sendrecv(dest=%d (world %d), source=%d (world %d))", next, world(both, next, 1),
        before, world(both, before, 1));
    MPI_Sendrecv(&rank, 1, MPI_INT, next, 1, &got, 1, MPI_INT, before, 1, both, MPI_STATUS_IGNORE);
    MPI_Intercomm_merge(both, rank % 2 == 0, &all);
    root(all, 4);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    root(node, 3);
    fclose(said);
    MPI_Finalize();
    return 0;
}
