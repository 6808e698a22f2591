// Vectors of 16, 32 and 64 bytes by value, as arguments and results, where the machine has them; eight of
// them at once; large structures and _Complex long double by value. Their upper halves must survive every
// kind of event: also those on which a batch is encoded, of which there is one each few thousand.
// A right trace shows each function 20,000 times (sse and big, always); the sums tell whether a register
// was lost.
#include <complex.h>
#include <stdio.h>

typedef double v2 __attribute__((vector_size(16)));
typedef double v4 __attribute__((vector_size(32)));
typedef double v8 __attribute__((vector_size(64)));
struct big { long part[12]; };
struct mixed { double a; long b; };

#define AVX __attribute__((noinline, target("avx")))
#define WIDE __attribute__((noinline, target("avx512f")))
enum { TIMES = 20000 };

__attribute__((noinline)) v2 sse(v2 a, v2 b, v2 c, v2 d, v2 e, v2 f, v2 g, v2 h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
AVX v4 avx(v4 a, v4 b, v4 c, v4 d, v4 e, v4 f, v4 g, v4 h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
WIDE v8 avx512(v8 a, v8 b, v8 c, v8 d, v8 e, v8 f, v8 g, v8 h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
__attribute__((noinline)) struct big big(struct big x, long by) {
    for (int i = 0; i < 12; i++) x.part[i] += by * i;
    return x;
}
__attribute__((noinline)) struct mixed mixed(struct mixed x, long double y) {
    return (struct mixed){x.a + (double)y, x.b + 1};
}
__attribute__((noinline)) complex long double turn(complex long double z) { return z * I; }

AVX static void with_avx(void) {
    v4 sum = {0};
    for (int i = 0; i < TIMES; i++) {
        v4 x = {i, i + 1, i + 2, i + 3};
        sum = sum + avx(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7);
    }
    printf("avx %.0f %.0f %.0f %.0f\n", sum[0], sum[1], sum[2], sum[3]);
}
WIDE static void with_avx512(void) {
    v8 sum = {0};
    for (int i = 0; i < TIMES; i++) {
        v8 x = {i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7};
        sum = sum + avx512(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7);
    }
    printf("avx512 %.0f %.0f %.0f %.0f %.0f\n", sum[0], sum[1], sum[3], sum[4], sum[7]);
}

int main(void) {
    v2 sum = {0};
    struct big b = {{0}};
    struct mixed m = {0, 0};
    complex long double z = 1;
    for (int i = 0; i < TIMES; i++) {
        v2 x = {i, i + 1};
        sum = sum + sse(x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7);
        b = big(b, i);
        m = mixed(m, i * 0.5L);
        z = turn(z);
    }
    printf("sse %.0f %.0f\n", sum[0], sum[1]);
    printf("big %ld %ld, mixed %.1f %ld, turn %.0Lf %.0Lf\n", b.part[1], b.part[11], m.a, m.b, creall(z), cimagl(z));
    if (__builtin_cpu_supports("avx")) with_avx();
    if (__builtin_cpu_supports("avx512f")) with_avx512();
    return 0;
}
