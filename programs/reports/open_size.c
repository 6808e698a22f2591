// After HDFGroup/hdf5 issue 118: the first rank asks for a file's size, and cleans up by itself when that fails.
//
// `bug`: rank 0 cannot tell the size of the third file and jumps to MPI_File_close, which is collective; the others
// wait for the size in MPI_Bcast. Rank 0 left out the MPI_Bcast.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct store {
    MPI_File file;
    MPI_Offset size;
    int rank, is_open;
};

static int bug;

static int ask_size(struct store *store, int number) {
    if (bug && number == 2) return -1;
    return MPI_File_get_size(store->file, &store->size) == MPI_SUCCESS ? 0 : -1;
}

static int store_open(struct store *store, const char *name, int number) {
    int status = -1;
    int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    if (MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &store->file) != MPI_SUCCESS) return -1;
    store->is_open = 1;
    if (store->rank == 0 && ask_size(store, number) < 0) {
        fprintf(stderr, "no size of file %d\n", number);
        goto done;
    }
    MPI_Bcast(&store->size, sizeof store->size, MPI_BYTE, 0, MPI_COMM_WORLD); /* HERE */
    status = 0;
done:
    if (status < 0) {
        MPI_File_close(&store->file); /* HERE */
        store->is_open = 0;
    }
    return status;
}

static void store_write(struct store *store, int number) {
    double data[64];
    for (int i = 0; i < 64; i++) data[i] = number + i;
    MPI_Offset at = store->size + store->rank * (MPI_Offset)sizeof data;
    MPI_File_write_at(store->file, at, data, 64, MPI_DOUBLE, MPI_STATUS_IGNORE);
}

static void store_close(struct store *store) {
    if (store->is_open) MPI_File_close(&store->file);
    store->is_open = 0;
}

static void name_file(char *name, size_t length, int number, int rank) {
    const char *directory = getenv("SCRATCH");
    if (rank == 0)
        snprintf(name, length, "%s/open_size.%ld.%d", directory ? directory : "/tmp", (long)(MPI_Wtime() * 1e6), number);
    MPI_Bcast(name, (int)length, MPI_CHAR, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    struct store store = {0};
    char name[256];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &store.rank);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    for (int number = 0; number < 4; number++) {
        name_file(name, sizeof name, number, store.rank);
        if (store_open(&store, name, number) == 0) store_write(&store, number);
        store_close(&store);
    }
    if (store.rank == 0) printf("4 files\n");
    MPI_Finalize();
    return 0;
}
