// Message progress by polling: a loop that asks until something has come, a random number of times.
// usage: polling [MESSAGES]
//
// A right trace has runs of polls of random length between messages that are handled alike.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state = 88172645463325252u;
static unsigned left, handled;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static int test(void) { return left-- == 0; }
__attribute__((noinline)) static int poll_once(void) { return test(); }
__attribute__((noinline)) static void unpack(void) { handled++; }
__attribute__((noinline)) static void dispatch(void) { unpack(); }
__attribute__((noinline)) static void acknowledge(void) { handled++; }

int main(int argc, char **argv) {
    int messages = argc > 1 ? atoi(argv[1]) : 20000;
    for (int i = 0; i < messages; i++) {
        left = draw() % 128;
        while (!poll_once()) {}
        dispatch();
        acknowledge();
    }
    printf("%u\n", handled);
    return 0;
}
