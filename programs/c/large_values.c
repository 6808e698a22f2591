// Values that do not fit the usual registers: a struct returned through memory, one in two registers,
// variable arguments (al counts the vector registers), long double, vectors, _Complex.
// A right trace shows box, pair, sum, extended, shift and turn, each once; the output tells whether a
// register was lost on the way.
#include <complex.h>
#include <stdarg.h>
#include <stdio.h>

struct box { long side[6]; };
struct pair { long a; double b; };
typedef float vector __attribute__((vector_size(16)));

__attribute__((noinline)) struct box box(long first) {
    struct box b;
    for (int i = 0; i < 6; i++) b.side[i] = first + i;
    return b;
}
__attribute__((noinline)) struct pair pair(long a) { return (struct pair){a, (double)a / 2}; }
__attribute__((noinline)) double sum(int count, ...) {
    double total = 0;
    va_list list;
    va_start(list, count);
    for (int i = 0; i < count; i++) total += i % 2 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return total;
}
__attribute__((noinline)) long double extended(long double x) { return x * x; }
__attribute__((noinline)) vector shift(vector v) { return v + (vector){1, 2, 3, 4}; }
__attribute__((noinline)) double complex turn(double complex z) { return z * I; }

int main(void) {
    struct box b = box(10);
    struct pair p = pair(7);
    vector v = shift((vector){1, 1, 1, 1});
    double complex z = turn(3 + 4 * I);
    printf("%ld %ld\n", b.side[0], b.side[5]);
    printf("%ld %.1f\n", p.a, p.b);
    printf("%.2f\n", sum(4, 1, 2.5, 3, 4.25));
    printf("%.3Lf\n", extended(1.5L));
    printf("%.0f %.0f %.0f %.0f\n", v[0], v[1], v[2], v[3]);
    printf("%.0f %.0f\n", creal(z), cimag(z));
    return 0;
}
