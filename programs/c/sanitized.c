// To be built with -fsanitize=address,undefined: overflows an int (told, and goes on), throws memory away
// properly, and with an argument writes behind a block (told, and ends).
// A right trace shows work 100 times, and the same complaints.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) int work(int x) {
    char *block = malloc(32);
    memset(block, x, 32);
    int y = block[3] + x;
    free(block);
    return y;
}
__attribute__((noinline)) void spoil(char *block, int at) { block[at] = 1; }

int main(int count, char **arguments) {
    (void)arguments;
    int sum = 0;
    volatile int large = 2147483647;
    for (int i = 0; i < 100; i++) sum += work(i);
    large += 1;
    printf("%d %d\n", sum, large);
    fflush(stdout);
    char *block = malloc(16);
    if (count > 1) spoil(block, 16);
    free(block);
    return 0;
}
