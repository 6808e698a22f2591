// After Sandia-OpenSHMEM/SOS pull request 332: a broadcast along a tree of messages; a root without children falls into
// the code of the leaves.
//
// Ranks broadcast in groups of four. `bug`: rank 4 is alone in its group and waits in the MPI_Recv of tree_bcast() for a
// message from its parent, which is itself; the others wait for it in MPI_Barrier.

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int bug;

struct node {
    int parent, children[2], degree;
};

static struct node place_in_tree(int rank, int size, int root) {
    int position = (rank - root + size) % size;
    struct node node = {.parent = ((position - 1) / 2 + root) % size};
    if (position == 0) node.parent = rank;
    for (int child = 2 * position + 1; child <= 2 * position + 2 && child < size; child++)
        node.children[node.degree++] = (child + root) % size;
    return node;
}

static void tree_bcast(long *value, int root, MPI_Comm group) {
    int rank, size;
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    struct node node = place_in_tree(rank, size, root);
    if (!bug && size == 1) return;
    if (node.degree > 0) {
        if (rank != root) MPI_Recv(value, 1, MPI_LONG, node.parent, 3, group, MPI_STATUS_IGNORE);
        for (int i = 0; i < node.degree; i++) MPI_Send(value, 1, MPI_LONG, node.children[i], 3, group);
    } else {
        MPI_Recv(value, 1, MPI_LONG, node.parent, 3, group, MPI_STATUS_IGNORE); /* HERE */
    }
}

static long compute(int rank, int step) {
    long value = rank;
    for (int i = 0; i < 1000; i++) value = value * 31 + step;
    return value;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Comm group;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 4, rank, &group);
    for (int step = 0; step < 3; step++) {
        long value = compute(rank, step);
        tree_bcast(&value, 0, group);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) printf("step %d: %ld\n", step, value);
    }
    MPI_Comm_free(&group);
    MPI_Finalize();
    return 0;
}
