/* Static arrays that make the image span far more than its code: 3 x 480 MB, of which a few pages are touched.
   -DELEMENTS=N: other sizes (-mcmodel=medium or large where data lies farther than 2 GiB).
   -DLIBRARY: the arrays and what works on them are a library's. */
#include <stdio.h>
#ifndef ELEMENTS
#define ELEMENTS 60000000L
#endif
#define STRIDE (ELEMENTS / 8)

#ifdef PROGRAM
double triad(long at, double scalar);
void fill(void);
double sum(void);
#else
static double a[ELEMENTS], b[ELEMENTS], c[ELEMENTS];

__attribute__((noinline)) double triad(long at, double scalar) { return a[at] = b[at] + scalar * c[at]; }

__attribute__((noinline)) void fill(void) {
    for (long at = 0; at < ELEMENTS; at += STRIDE) {
        b[at] = (double)(at % 7);
        c[at] = 1.0;
    }
    c[ELEMENTS - 1] = 5.0;
}

/* The last element lies at the far end of the image. */
__attribute__((noinline)) double sum(void) {
    double total = c[ELEMENTS - 1];
    for (long at = 0; at < ELEMENTS; at += STRIDE) total += a[at];
    return total;
}
#endif

#ifndef LIBRARY
int main(void) {
    fill();
    for (long at = 0; at < ELEMENTS; at += STRIDE) triad(at, 3.0);
    printf("%g\n", sum());
    return 0;
}
#endif
