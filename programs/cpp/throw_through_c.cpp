// Throws through a frame of the C library passes_on.c: caught where the library has unwind tables, and
// std::terminate where it has none.
// A right recording: the same end, and `thrower` called.
#include <cstdio>

extern "C" int pass_on(int (*)(int), int);
__attribute__((noinline)) static int thrower(int value) {
    if (value) throw value;
    return 0;
}
__attribute__((noinline)) static int attempt(int value) {
    try {
        return pass_on(thrower, value);
    } catch (int caught) {
        std::printf("caught %d\n", caught);
        return -caught;
    }
}

int main() {
    std::printf("%d\n", attempt(0));
    std::fflush(stdout);
    std::printf("%d\n", attempt(7));
}
