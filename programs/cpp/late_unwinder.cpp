// A program that loads a library with an unwinder of its own (throwing_library.cpp) while calls are open, and lets
// it throw through its frames: late_unwinder LIBRARY. The calls of callbacks go through the C library's qsort, so
// that frames lie above and below whose return addresses a recorder may have taken away.
// build: -ldl
// A right recording: the same output; `callback` called 40 times, `compare` once before the library is there.
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

using Fail = void (*)(int);
using Guarded = int (*)(int (*)(int), int);
static Fail fail;
static Guarded guarded;
static const char *path;

__attribute__((noinline)) int deeper(int value) {
    char text[20];
    std::snprintf(text, sizeof text, "%d", value);
    if (std::atoi(text) % 2) fail(value);
    return value + 1;
}
static int sorted;
__attribute__((noinline)) int order(const void *a, const void *b) {
    int value = deeper(*static_cast<const int *>(a));
    sorted += value;
    return value < *static_cast<const int *>(b);
}
__attribute__((noinline)) int callback(int value) {
    int numbers[2] = {value, value + 2};
    std::qsort(numbers, 2, sizeof *numbers, order);
    return sorted;
}
__attribute__((noinline)) int compare(const void *, const void *) {
    if (!guarded) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) std::abort();
        fail = reinterpret_cast<Fail>(dlsym(library, "fail"));
        guarded = reinterpret_cast<Guarded>(dlsym(library, "guarded"));
        for (int i = 0; i < 20; i++) std::printf(" %d", guarded(callback, i));
    }
    return 0;
}

int main(int, char **words) {
    int numbers[2] = {1, 2};
    path = words[1];
    std::qsort(numbers, 2, sizeof *numbers, compare);
    for (int i = 20; i < 40; i++) std::printf(" %d", guarded(callback, i));
    std::printf("\n");
    return 0;
}
