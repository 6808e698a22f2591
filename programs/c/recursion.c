// Deep recursion: 100,000 frames (or the number given), more than any shadow stack of fixed size.
// A right trace shows main > down > down > ... and all the returns, or counts the calls that were too
// deep as lost; the output is the same in both.
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) long down(long n) {
    volatile long here = n;
    if (n == 0) return 0;
    return down(n - 1) + (here & 1);
}

int main(int argc, char **argv) {
    printf("%ld\n", down(argc > 1 ? atol(argv[1]) : 100000));
    return 0;
}
