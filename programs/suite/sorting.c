// The C library's sort with a comparator of the program's: calls that depend on random data.
// usage: sorting [NUMBERS] [TIMES]
//
// A right trace shows two kinds of comparisons (the comparator looks twice where the first keys are
// equal), in the order that the data dictates: about one bit of surprise a call.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct item { unsigned major, minor; };
static uint64_t state = 88172645463325252u;

static inline unsigned draw(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (unsigned)(state >> 33);
}

__attribute__((noinline)) static int order(unsigned a, unsigned b) { return (a > b) - (a < b); }

static int compare(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    int major = order(x->major, y->major);
    return major ? major : order(x->minor, y->minor);
}

int main(int argc, char **argv) {
    int numbers = argc > 1 ? atoi(argv[1]) : 20000, times = argc > 2 ? atoi(argv[2]) : 5;
    struct item *items = calloc(numbers, sizeof *items);
    unsigned check = 0;
    for (int time = 0; time < times; time++) {
        for (int i = 0; i < numbers; i++) items[i] = (struct item){draw() % 4, draw()};
        qsort(items, numbers, sizeof *items, compare);
        check += items[numbers / 2].minor;
    }
    printf("%u\n", check);
    return 0;
}
