// A function with an unlikely part, which gcc -O2 moves to another section (work.cold).
// A right trace shows work four times and give_up once, inside the third; no function work.cold.
#include <stdio.h>

__attribute__((cold, noinline)) void give_up(int n) { printf("gave up at %d\n", n); }
__attribute__((noinline)) int work(int n) {
    if (__builtin_expect(n == 3, 0)) {
        give_up(n);
        printf("went on\n");
        return -n;
    }
    return n * n;
}

int main(void) {
    int sum = 0;
    for (volatile int n = 1; n <= 4; n++) sum += work(n);
    printf("%d\n", sum);
    return 0;
}
