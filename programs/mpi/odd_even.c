// Odd/even transposition sort over MPI; a run-time switch puts one of two bugs into one rank.
//
//   odd_even [--bug swap|deadlock] [--rank N]        (the rank defaults to 5)
//
// R ranks sort R chunks in R phases. In each phase a rank exchanges its chunk with a neighbour and
// keeps the lower or the higher half; even ranks send first, odd ranks receive first, and the border
// ranks sit out every other phase. After 7 iterations the bug begins:
//   swap      the rank changes the order of its Send and Recv (works, as long as messages are eager);
//   deadlock  the rank sends a long message that nobody receives and never comes back.
// A build with -DBUG_SWAP or -DBUG_DEADLOCK has the bug from the start, without any switch.
//
// A right trace shows, among the MPI calls, MPI_Init MPI_Comm_rank MPI_Comm_size, then
// [MPI_Send MPI_Recv] (even) or [MPI_Recv MPI_Send] (odd) once for each phase with a partner, then
// MPI_Finalize. With 4 ranks: 2, 4, 4 and 2 times. With 16 ranks rank 5 shows 16 iterations when
// healthy; 7 and then 9 the other way round with swap; 7 and then an open MPI_Send with deadlock.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, HEALTHY_ITERATIONS = 7, TAG = 1, TAG_NOBODY_WANTS = 77, LONG_MESSAGE = 4 << 20 };

enum bug { NONE, SWAP, DEADLOCK };

#if defined BUG_SWAP
static enum bug bug = SWAP;
#elif defined BUG_DEADLOCK
static enum bug bug = DEADLOCK;
#else
static enum bug bug = NONE;
#endif
static int buggy_rank = 5;

// The numbers that rank `rank` starts with: the same in every run, so that every rank can check the
// result alone, without another message.
void fill_chunk(int *chunk, int rank) {
    unsigned state = 2463534242u + 7919u * (unsigned)rank;
    for (int i = 0; i < CHUNK; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        chunk[i] = (int)(state % 1000000);
    }
}

void sort_numbers(int *numbers, int count) {
    for (int i = 1; i < count; i++) {
        int number = numbers[i], j = i;
        for (; j > 0 && numbers[j - 1] > number; j--) numbers[j] = numbers[j - 1];
        numbers[j] = number;
    }
}

// Who exchanges with `rank` in this phase, or -1.
int find_partner(int phase, int rank, int ranks) {
    int partner = (phase + rank) % 2 == 0 ? rank + 1 : rank - 1;
    return partner >= 0 && partner < ranks ? partner : -1;
}

void send_chunk(int *chunk, int partner) {
    MPI_Send(chunk, CHUNK, MPI_INT, partner, TAG, MPI_COMM_WORLD);
}

void receive_chunk(int *chunk, int partner) {
    MPI_Recv(chunk, CHUNK, MPI_INT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The message is above every eager limit: the call waits for a receiver, and there is none.
__attribute__((noinline)) void send_to_nobody(int partner) {
    char *message = calloc(LONG_MESSAGE, 1);
    MPI_Send(message, LONG_MESSAGE, MPI_CHAR, partner, TAG_NOBODY_WANTS, MPI_COMM_WORLD);
    free(message);
}

void exchange(int *mine, int *theirs, int partner, int rank, int iteration) {
    int send_first = rank % 2 == 0;
    if (rank == buggy_rank && iteration > HEALTHY_ITERATIONS) {
        if (bug == SWAP) send_first = !send_first;
        if (bug == DEADLOCK) send_to_nobody(partner);
    }
    if (send_first) {
        send_chunk(mine, partner);
        receive_chunk(theirs, partner);
    } else {
        receive_chunk(theirs, partner);
        send_chunk(mine, partner);
    }
}

void keep_low(int *mine, const int *theirs) {
    int kept[CHUNK];
    for (int i = 0, m = 0, t = 0; i < CHUNK; i++) kept[i] = mine[m] <= theirs[t] ? mine[m++] : theirs[t++];
    for (int i = 0; i < CHUNK; i++) mine[i] = kept[i];
}

void keep_high(int *mine, const int *theirs) {
    int kept[CHUNK];
    for (int i = CHUNK - 1, m = i, t = i; i >= 0; i--) kept[i] = mine[m] > theirs[t] ? mine[m--] : theirs[t--];
    for (int i = 0; i < CHUNK; i++) mine[i] = kept[i];
}

void odd_even_sort(int *chunk, int rank, int ranks) {
    int theirs[CHUNK], iteration = 0;
    for (int phase = 0; phase < ranks; phase++) {
        int partner = find_partner(phase, rank, ranks);
        if (partner < 0) continue;
        exchange(chunk, theirs, partner, rank, ++iteration);
        if (partner > rank) keep_low(chunk, theirs);
        else keep_high(chunk, theirs);
    }
}

// Whether `chunk` is the part of the sorted whole that belongs to `rank`.
int is_right(const int *chunk, int rank, int ranks) {
    int *all = malloc(sizeof(int) * CHUNK * (size_t)ranks);
    for (int r = 0; r < ranks; r++) fill_chunk(all + r * CHUNK, r);
    sort_numbers(all, CHUNK * ranks);
    int right = memcmp(all + rank * CHUNK, chunk, sizeof(int) * CHUNK) == 0;
    free(all);
    return right;
}

// Looks at single letters (--bug s.., --bug d.., --rank N), so that a healthy and a faulty run make the
// same calls up to the bug itself.
static void read_arguments(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        if (argv[i][2] == 'b') bug = argv[i + 1][0] == 's' ? SWAP : argv[i + 1][0] == 'd' ? DEADLOCK : NONE;
        if (argv[i][2] == 'r') buggy_rank = atoi(argv[i + 1]);
    }
}

int main(int argc, char **argv) {
    int rank, ranks, chunk[CHUNK];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_arguments(argc, argv);
    fill_chunk(chunk, rank);
    sort_numbers(chunk, CHUNK);
    odd_even_sort(chunk, rank, ranks);
    int right = is_right(chunk, rank, ranks);
    if (rank == 0) printf("%d numbers on %d ranks: %s\n", CHUNK * ranks, ranks, right ? "sorted" : "not sorted");
    MPI_Finalize();
    return right ? 0 : 1;
}
