// Eighty threads, one after the other, each with thousands of calls of its own kind, some of them deep.
// build: -pthread
// A right trace shows 81 threads. Thread n calls dive n % 3 * 1,000 deep, then odd and even 3,000 times, as the bits
// of a sequence of its own have it: 79,000 calls of dive, 240,000 of odd and even together.
#include <pthread.h>
#include <stdio.h>

static volatile unsigned sum;
__attribute__((noinline, noclone)) void odd(void) { sum += 1; }
__attribute__((noinline, noclone)) void even(void) { sum += 2; }
__attribute__((noinline, noclone)) int dive(int depth) {
    if (depth > 1) return dive(depth - 1) + (sum & 1);
    return (int)sum & 1;
}

void *run(void *argument) {
    unsigned number = *(unsigned *)argument, bits = number * 2654435761u + 1;
    if (number % 3) dive((int)(number % 3) * 1000);
    for (int i = 0; i < 3000; i++) {
        bits = bits * 1664525u + 1013904223u;
        if (bits >> 31) odd();
        else even();
    }
    return NULL;
}

int main(void) {
    for (unsigned number = 0; number < 80; number++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run, &number)) return 1;
        pthread_join(thread, NULL);
    }
    printf("done\n");
    return 0;
}
