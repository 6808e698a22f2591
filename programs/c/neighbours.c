// Calls that follow each other in one frame, to be exchanged: of own functions and of library functions, with
// arguments in integer and floating-point registers and on the stack.
// Prints "a 1 2.50" "b 3 4.50" "x1 2 3 4 5 6 7 8" "y" "z".
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) void show(const char *name, int number, double value) {
    printf("%s %d %.2f\n", name, number, value);
    fflush(stdout);
}

__attribute__((noinline)) void many(const char *name, int a, int b, int c, int d, int e, int f, int g, int h) {
    printf("%s%d %d %d %d %d %d %d %d\n", name, a, b, c, d, e, f, g, h);
    fflush(stdout);
}

__attribute__((noinline)) void pairs(void) {
    show("a", 1, 2.5);
    show("b", 3, 4.5);
}

__attribute__((noinline)) void stacked(void) {
    many("x", 1, 2, 3, 4, 5, 6, 7, 8);
    puts("y");
}

// Nothing follows in its frame.
__attribute__((noinline)) int alone(void) { return puts("z") + 1; }

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    pairs();
    stacked();
    return alone() > 0 ? 0 : 1;
}
