// Odd/even transposition sort on threads: what mpi/odd_even.c does, where there is no MPI. Send and
// receive are a mailbox in each direction between two neighbours.
// build: -pthread
//
//   odd_even [--bug swap|deadlock] [--thread N] [--number R]      (thread 5 of 16)
//
// A right trace shows one trace a thread. Of the R threads that sort, even ones show
// [send_chunk receive_chunk] and odd ones [receive_chunk send_chunk] once for each phase with a
// partner. From iteration 8 on, thread 5 (trace 0.6: 0.0 is main) shows the other order with swap,
// and with deadlock an open send_and_wait that never returns.

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64, HEALTHY_ITERATIONS = 7, MOST_THREADS = 64 };

enum bug { NONE, SWAP, DEADLOCK };
static enum bug bug = NONE;
static int buggy_thread = 5, threads = 16;

// From a thread to its neighbour. One message waits in it, as an eager message does. Semaphores, so
// that the calls of a thread are the same in every run, however long it has to wait.
struct mailbox {
    sem_t empty, full;
    int message[CHUNK];
};
static struct mailbox upward[MOST_THREADS], downward[MOST_THREADS];
static int chunks[MOST_THREADS][CHUNK];

void fill_chunk(int *chunk, int thread) {
    unsigned state = 2463534242u + 7919u * (unsigned)thread;
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

int find_partner(int phase, int thread) {
    int partner = (phase + thread) % 2 == 0 ? thread + 1 : thread - 1;
    return partner >= 0 && partner < threads ? partner : -1;
}

static struct mailbox *mailbox(int from, int to) { return to > from ? &upward[from] : &downward[from]; }

void send_chunk(const int *chunk, int from, int to) {
    struct mailbox *box = mailbox(from, to);
    sem_wait(&box->empty);
    memcpy(box->message, chunk, sizeof box->message);
    sem_post(&box->full);
}

void receive_chunk(int *chunk, int from, int to) {
    struct mailbox *box = mailbox(from, to);
    sem_wait(&box->full);
    memcpy(chunk, box->message, sizeof box->message);
    sem_post(&box->empty);
}

// Waits for the receipt of a message that nobody takes.
__attribute__((noinline)) void send_and_wait(void) {
    static sem_t receipt;
    sem_init(&receipt, 0, 0);
    sem_wait(&receipt);
}

void exchange(int *mine, int *theirs, int partner, int thread, int iteration) {
    int send_first = thread % 2 == 0;
    if (thread == buggy_thread && iteration > HEALTHY_ITERATIONS) {
        if (bug == SWAP) send_first = !send_first;
        if (bug == DEADLOCK) send_and_wait();
    }
    if (send_first) {
        send_chunk(mine, thread, partner);
        receive_chunk(theirs, partner, thread);
    } else {
        receive_chunk(theirs, partner, thread);
        send_chunk(mine, thread, partner);
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

void *odd_even_sort(void *argument) {
    int thread = (int)(long)argument, theirs[CHUNK], iteration = 0;
    int *chunk = chunks[thread];
    fill_chunk(chunk, thread);
    sort_numbers(chunk, CHUNK);
    for (int phase = 0; phase < threads; phase++) {
        int partner = find_partner(phase, thread);
        if (partner < 0) continue;
        exchange(chunk, theirs, partner, thread, ++iteration);
        if (partner > thread) keep_low(chunk, theirs);
        else keep_high(chunk, theirs);
    }
    return NULL;
}

int is_sorted(const int *numbers, int count) {
    for (int i = 1; i < count; i++)
        if (numbers[i - 1] > numbers[i]) return 0;
    return 1;
}

int main(int argc, char **argv) {
    // Single letters, so that a healthy and a faulty run make the same calls up to the bug itself.
    for (int i = 1; i + 1 < argc; i += 2) {
        if (argv[i][2] == 'b') bug = argv[i + 1][0] == 's' ? SWAP : argv[i + 1][0] == 'd' ? DEADLOCK : NONE;
        if (argv[i][2] == 't') buggy_thread = atoi(argv[i + 1]);
        if (argv[i][2] == 'n') threads = atoi(argv[i + 1]);
    }
    if (threads < 1 || threads > MOST_THREADS) return 2;
    for (int i = 0; i < threads; i++) {
        sem_init(&upward[i].empty, 0, 1);
        sem_init(&upward[i].full, 0, 0);
        sem_init(&downward[i].empty, 0, 1);
        sem_init(&downward[i].full, 0, 0);
    }
    pthread_t thread[MOST_THREADS];
    for (long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, odd_even_sort, (void *)i);
    for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
    int sorted = is_sorted(chunks[0], CHUNK * threads);
    printf("%d numbers on %d threads: %s\n", CHUNK * threads, threads, sorted ? "sorted" : "not sorted");
    return sorted ? 0 : 1;
}
