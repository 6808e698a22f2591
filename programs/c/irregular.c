// Calls that hardly compress: `irregular ROUNDS [FORKS]` calls step ROUNDS times, which calls one of eight
// functions as a pseudo-random sequence says, in FORKS children at the same time as in itself.
// A right trace is known event by event: step, a function f0..f7 by the top three bits of the state, two returns.
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define FUNCTION(name) __attribute__((noinline)) void name(void) { __asm__ volatile("" ::: "memory"); }
FUNCTION(f0) FUNCTION(f1) FUNCTION(f2) FUNCTION(f3) FUNCTION(f4) FUNCTION(f5) FUNCTION(f6) FUNCTION(f7)

static uint32_t state = 1;
__attribute__((noinline)) void step(void) {
    state = state * 1664525u + 1013904223u;
    switch (state >> 29) {
    case 0: f0(); break;
    case 1: f1(); break;
    case 2: f2(); break;
    case 3: f3(); break;
    case 4: f4(); break;
    case 5: f5(); break;
    case 6: f6(); break;
    default: f7();
    }
    __asm__ volatile("");
}
__attribute__((noinline)) void walk(long rounds) {
    for (long round = 0; round < rounds; round++) step();
}

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 1000;
    int forks = count > 2 ? atoi(words[2]) : 0;
    for (int child = 0; child < forks; child++)
        if (fork() == 0) {
            walk(rounds);
            _exit(0);
        }
    walk(rounds);
    while (forks-- > 0) wait(NULL);
    return 0;
}
