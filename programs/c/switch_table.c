// A dense switch in a loop (a jump table inside the function) that calls other functions.
// A right trace shows one call of step for each character of the program "++>+<-.": 7, and inside them
// up, up, right, up, left, down, show.
#include <stdio.h>

static int tape[4], at;
__attribute__((noinline)) void up(void) { tape[at]++; }
__attribute__((noinline)) void down(void) { tape[at]--; }
__attribute__((noinline)) void right(void) { at++; }
__attribute__((noinline)) void left(void) { at--; }
__attribute__((noinline)) void show(void) { printf("cell %d: %d\n", at, tape[at]); }
__attribute__((noinline)) int unknown(int c) { return fprintf(stderr, "unknown %c\n", c); }

__attribute__((noinline)) void step(char c) {
    switch (c) {
    case '+': up(); break;
    case ',': at = 0; break;
    case '-': down(); break;
    case '.': show(); break;
    case '/': at = 1; break;
    case '<': left(); break;
    case '=': tape[at] = 0; break;
    case '>': right(); break;
    default: unknown(c);
    }
}

int main(void) {
    for (const char *c = "++>+<-."; *c; c++) step(*c);
    return 0;
}
