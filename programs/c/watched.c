// For a debugger: stops inside a leaf, inside a function whose returns are patched, inside one that is recorded by
// call-through, and inside a callback of a library call; or waits there for a debugger to attach (`watched wait`).
// build: -g
// A right trace shows callback 4 times, leaf 4 times.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile int waits;

__attribute__((noinline)) int leaf(int x) {
    __asm__ volatile("nop");
    return x + 1;
}
__attribute__((noinline)) void stop(void) {
    while (waits) usleep(1000);
    __asm__ volatile("");
}
// A computed goto: where it leads is not known, so that its returns are not patched.
__attribute__((noinline)) int through(int x) {
    static const void *places[] = {&&even, &&odd};
    void *place = (void *)places[x & 1];
    __asm__ volatile("" : "+r"(place));
    goto *place;
even:
    stop();
    return leaf(x);
odd:
    stop();
    return leaf(x) + 1;
}
__attribute__((noinline)) int patched(int x) {
    int result = through(x);
    __asm__ volatile("");
    return result * 2;
}
static int order(const void *a, const void *b) {
    return patched(*(const int *)a) - patched(*(const int *)b);
}
__attribute__((noinline)) int callback(int x) {
    int numbers[2] = {x, x + 1};
    qsort(numbers, 2, sizeof *numbers, order);
    return numbers[0];
}

int main(int count, char **words) {
    int sum = callback(1) + callback(2);
    waits = count > 1 && strcmp(words[1], "wait") == 0;
    if (waits) {
        puts("waiting");
        fflush(stdout);
    }
    sum += callback(3) + callback(4);
    printf("%d\n", sum);
    return 0;
}
