// An exception thrown out of a callback of qsort: it passes frames of the C library.
// A right trace shows qsort > by_value > __cxa_throw ended before `after` is called.
#include <cstdio>
#include <cstdlib>

static int comparisons;
static int by_value(const void *a, const void *b) {
    if (++comparisons == 4) throw comparisons;
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}
__attribute__((noinline)) void after(int n) { std::printf("after %d comparisons\n", n); }

int main() {
    int numbers[] = {5, 4, 3, 2, 1, 0};
    try {
        std::qsort(numbers, 6, sizeof(int), by_value);
    } catch (int n) {
        after(n);
    }
    std::qsort(numbers, 6, sizeof(int), by_value);
    after(numbers[0]);
    return 0;
}
