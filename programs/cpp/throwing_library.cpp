// A library with an unwinder of its own (-static-libgcc -static-libstdc++), and a program that calls it. It
// throws through its own frames, and through frames of the program that called back into it.
//
// One source, two builds: the library (-DLIBRARY), and the program.
// A right recording: the same output; `callback` called twice.
#ifdef LIBRARY
#include <cstdio>
extern "C" void fail(int value) { throw value; }
extern "C" int guarded(int (*callback)(int), int value) {
    try {
        return callback(value);
    } catch (int caught) {
        return -caught;
    }
}
#else
#include <cstdio>
#include <cstdlib>
extern "C" void fail(int value);
extern "C" int guarded(int (*callback)(int), int value);

__attribute__((noinline)) int deeper(int value) {
    if (value > 1) fail(value);
    return value + 1;
}
__attribute__((noinline)) int callback(int value) {
    int result = deeper(value);
    return result + 1;
}

int main() {
    std::printf("%d\n", guarded(callback, 1));
    std::printf("%d\n", guarded(callback, 5));
    return 0;
}
#endif
