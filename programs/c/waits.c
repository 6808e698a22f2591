// Calls down three levels, says so, and waits there until it may end: something to attach to.
//
//   waits [inline]
//
// By default it waits in a library call; with `inline` in its own code, calling a leaf over and over.
// A right trace shows main > outer > middle > inner.
#include <stdio.h>
#include <unistd.h>

static volatile long turns;
__attribute__((noinline)) void leaf(void) { turns++; }
__attribute__((noinline)) long inner(int busy) {
    puts("ready");
    fflush(stdout);
    if (busy)
        for (int i = 0; i < 1000000000; i++) leaf();
    else
        for (int i = 0; i < 60; i++) sleep(1);
    return turns;
}
__attribute__((noinline)) long middle(int busy) {
    long result = inner(busy);
    __asm__ volatile("");
    return result + 1;
}
__attribute__((noinline)) long outer(int busy) {
    long result = middle(busy);
    __asm__ volatile("");
    return result + 1;
}

int main(int count, char **arguments) {
    (void)arguments;
    return outer(count > 1) == 0;
}
