// Variadic functions: al says how many vector registers hold arguments; with more than six and eight
// arguments they also lie on the stack.
// A right trace shows mix and forward 3 times each; the sums tell whether a register was lost.
#include <stdarg.h>
#include <stdio.h>

__attribute__((noinline)) double mix(const char *kinds, ...) {
    double total = 0;
    va_list list;
    va_start(list, kinds);
    for (; *kinds; kinds++) {
        switch (*kinds) {
        case 'i': total += va_arg(list, int); break;
        case 'l': total += (double)va_arg(list, long); break;
        case 'd': total += va_arg(list, double); break;
        case 'L': total += (double)va_arg(list, long double); break;
        }
    }
    va_end(list);
    return total;
}
__attribute__((noinline)) int forward(char *text, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(text, size, format, list);
    va_end(list);
    return length;
}

int main(void) {
    char text[200];
    printf("%.3f\n", mix("iii", 1, 2, 3));
    printf("%.3f\n", mix("didididididididididi", 1.5, 1, 2.5, 2, 3.5, 3, 4.5, 4, 5.5, 5, 6.5, 6, 7.5, 7, 8.5, 8, 9.5, 9, 10.5, 10));
    printf("%.3f\n", mix("lLldL", 1L << 40, 2.25L, -(1L << 39), 0.125, 1e6L));
    for (int i = 0; i < 3; i++) {
        int length = forward(text, sizeof text, "%d %s %.2f %ld %.1Lf %c %a %g %g %g %g %g %g %g", i, "word", i * 0.5, 7L, 2.5L, 'x',
                             1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0);
        printf("%d: %s\n", length, text);
    }
    return 0;
}
