// After hpc/ior issue 210: an I/O benchmark stops writing when its time is over, and each rank looks at its own clock.
//
// `bug`: the clock of rank 2 is ahead, so rank 2 leaves the loop of collective writes three blocks early and stands in
// the MPI_Allreduce of total(); the others wait for it in MPI_File_write_at_all.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, BLOCKS = 12 };

struct test {
    MPI_File file;
    int rank, size;
    double deadline;
    char *data;
};

static double clock_of(const struct test *test, int block) {
    (void)test;
    return 0.25 * (block + 1);
}

static int hit_stonewall(const struct test *test, int block) {
    return clock_of(test, block) > test->deadline;
}

static void transfer(struct test *test, int block) {
    MPI_Offset at = ((MPI_Offset)block * test->size + test->rank) * BLOCK;
    memset(test->data, 'a' + block % 26, BLOCK);
    MPI_File_write_at_all(test->file, at, test->data, BLOCK, MPI_CHAR, MPI_STATUS_IGNORE); /* HERE */
}

static int write_blocks(struct test *test) {
    int block = 0;
    while (block < BLOCKS && !hit_stonewall(test, block)) { /* HERE */
        transfer(test, block);
        block++;
    }
    return block;
}

static long total(int mine) {
    long blocks = mine, all = 0;
    MPI_Allreduce(&blocks, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD); /* HERE */
    return all;
}

static void open_file(struct test *test) {
    char name[256];
    const char *directory = getenv("SCRATCH");
    if (test->rank == 0)
        snprintf(name, sizeof name, "%s/stonewall.%d", directory ? directory : "/tmp", rand() ^ (int)(MPI_Wtime() * 1e3));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &test->file);
}

int main(int argc, char **argv) {
    struct test test = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    int bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    test.deadline = 2.0 - (bug && test.rank == 2 ? 0.75 : 0.0);
    test.data = malloc(BLOCK);
    open_file(&test);
    for (int repetition = 0; repetition < 2; repetition++) {
        int blocks = write_blocks(&test);
        long all = total(blocks);
        if (test.rank == 0) printf("repetition %d: %ld blocks\n", repetition, all);
    }
    MPI_File_close(&test.file);
    free(test.data);
    MPI_Finalize();
    return 0;
}
