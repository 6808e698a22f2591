// longjmp over four own frames and a library's (qsort), and then on as if nothing had happened.
// A right trace shows dive > dive > dive > dive > longjmp with all five ended before `after` is called,
// the same from inside by_value under qsort, and balanced streams at the end.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf surface;
__attribute__((noinline)) int dive(int depth) {
    if (depth == 0) longjmp(surface, 1);
    return dive(depth - 1) + 1;
}
__attribute__((noinline)) int after(int n) { return printf("after %d\n", n); }
int by_value(const void *a, const void *b) {
    if (*(const int *)a == 3 || *(const int *)b == 3) longjmp(surface, 2);
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    volatile int rounds = 0;
    int came = setjmp(surface);
    after(came);
    if (rounds++ < 3) dive(3);
    if (rounds++ < 6) {
        int numbers[] = {4, 3, 2, 1};
        qsort(numbers, 4, sizeof(int), by_value);
    }
    puts("done");
    return 0;
}
