// After pmodels/mpich issue 1997: a barrier inside of an epoch that holds an exclusive lock.
//
// A table of counters lives in a window of rank 0. `bug`: rank 0 locks the window and goes into MPI_Barrier before it
// unlocks; ranks 1 and 2 wait for the lock before they come to that barrier. Rank 0 is to blame: it has to unlock first.

#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size, bug;
static MPI_Win window;

static void add(int slot, long amount) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Accumulate(&amount, 1, MPI_LONG, 0, slot, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_unlock(0, window);
}

static long read_slot(int slot) {
    long value = 0;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&value, 1, MPI_LONG, 0, slot, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
    return value;
}

// Rank 0 alone takes stock, while nobody may add.
static void take_stock(long *counters, int is_late) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    for (int slot = 0; slot < size; slot++) counters[slot] += 1;
    if (bug && is_late) {
        MPI_Barrier(MPI_COMM_WORLD); // The others have locked by now: everybody may go on.
        MPI_Barrier(MPI_COMM_WORLD); /* HERE */
        MPI_Win_unlock(0, window);
    } else {
        MPI_Win_unlock(0, window);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void step(int number, long *counters) {
    if (rank == 0) {
        take_stock(counters, number == 3);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        add(rank, 10 + number);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    long *counters;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    bug = argc > 1 && strcmp(argv[1], "bug") == 0;
    MPI_Aint bytes = rank == 0 ? size * (MPI_Aint)sizeof(long) : 0;
    MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &window);
    if (rank == 0) memset(counters, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int number = 0; number < 5; number++) step(number, counters);
    long mine = read_slot(rank);
    printf("rank %d: %ld\n", rank, mine);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
