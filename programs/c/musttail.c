// A state machine of tail calls that the compiler must make jumps of: a million hops in one frame.
// Needs clang. A right trace shows one frame that is handed over a million times, in no more memory than
// one hop takes.
#include <stdio.h>

#define MUSTTAIL __attribute__((musttail))
struct machine { long left, sum; };
static long red(struct machine *m);
static long green(struct machine *m);
static long blue(struct machine *m);

__attribute__((noinline)) static long red(struct machine *m) {
    m->sum += 1;
    if (--m->left <= 0) return m->sum;
    MUSTTAIL return (m->sum & 4 ? blue : green)(m);
}
__attribute__((noinline)) static long green(struct machine *m) {
    m->sum += 2;
    if (--m->left <= 0) return m->sum;
    MUSTTAIL return blue(m);
}
__attribute__((noinline)) static long blue(struct machine *m) {
    m->sum += 3;
    if (--m->left <= 0) return m->sum;
    MUSTTAIL return red(m);
}

int main(void) {
    struct machine machine = {1000000, 0};
    printf("%ld\n", red(&machine));
    return 0;
}
