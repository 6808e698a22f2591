// A library with functions of each sort that a call may be a leaf or not: `closed_*` call nothing outside, loop nowhere and
// wait for nothing; the others do one of these. The library that stands before it (-DCALLS_BACK) has a `closed_sum` that calls the
// program back. `calls_leaves.c` is linked with it.
#include <stddef.h>
#include <unistd.h>

#define FAR __attribute__((noinline, noclone))

#ifdef CALLS_BACK
void called_back(void);
long closed_sum(long a, long b) {
    called_back();
    return a + b;
}
#else
static long errors;

FAR static long failed(long value) {
    errors++;
    return value;
}

long closed_sum(long a, long b) { return a + b; }

// Calls a function that is closed, on a way that is seldom gone; and returns from several places.
long closed_divide(long a, long b) {
    if (__builtin_expect(b == 0, 0)) return failed(-1) + 1;
    return a > 100 ? a / b + errors : a / b;
}

static long chosen_plain(long a) { return a + 3; }
static long (*choose(void))(long) { return chosen_plain; }
// The image chooses what it leads to while it is loaded.
long closed_choice(long a) __attribute__((ifunc("choose")));

long loops(const char *text) {
    long length = 0;
    while (text[length]) {
        __asm__ volatile("");
        length++;
    }
    return length;
}

long calls_back(long (*other)(long), long a) { return other(a) + 1; }

long enters_kernel(void) { return getppid() > 0; }

long locks(long *place) { return __atomic_add_fetch(place, 1, __ATOMIC_SEQ_CST); }

FAR long recurs(long depth) { return depth == 0 ? 0 : recurs(depth - 1) + depth; }
#endif
