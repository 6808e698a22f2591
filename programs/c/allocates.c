// Allocates 100 blocks of 4,321 bytes, and looks whether they are what malloc says they are.
// A right trace shows allocate 100 times, malloc and free below it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) long allocate(int value) {
    unsigned char *block = malloc(4321);
    memset(block, value, 4321);
    long sum = block[0] + block[4320];
    free(block);
    return sum;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += allocate(i);
    printf("%ld\n", sum);
    return 0;
}
