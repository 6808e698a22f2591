/* Library calls in every form: through the PLT, through the GOT, as a tail call, hoisted out of a
   loop, by address. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) int tail(const char *text) { return puts(text); }

__attribute__((noinline)) long hoisted(char *text, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) {
        sum += atol(text);
        sum += (long)strlen(text + i % 2);
    }
    return sum;
}

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline, cold)) static void fail(const char *why) {
    fprintf(stderr, "%s\n", why);
    abort();
}

__attribute__((noinline)) static int checked(int n) {
    if (n < 0) fail("negative");
    if (n > 100000) {
        fprintf(stderr, "too large: %d\n", n);
        exit(3);
    }
    return n * 2;
}

static int choose(int n) {
    switch (n) {
    case 0: return 10;
    case 1: return checked(3);
    case 2: return (int)strlen("abc") + n;
    case 3: return abs(n);
    case 4: return 77;
    case 5: return n * n * n;
    case 6: return checked(n) + checked(n + 1);
    default: return -1;
    }
}

int (*pointer)(const char *) = puts;

int main(int count, char **arguments) {
    jmp_buf buffer;
    int values[] = {3, 1, 2};
    if (setjmp(buffer) == 0 && count > 10) longjmp(buffer, 1);
    qsort(values, 3, sizeof *values, by_value);
    int sum = checked(count);
    for (int i = 0; i < 8; i++) sum += choose(i + count - 1);
    printf("%d %d %ld\n", values[0], sum, hoisted(arguments[0], count));
    pointer("by pointer");
    return tail("end") < 0;
}
