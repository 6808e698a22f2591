// An exception thrown four frames deep, caught, thrown again, and caught by main; destructors on the way.
// A right trace shows deep > deep > deep > __cxa_throw, all ended when the handler calls `caught`, Guard's
// destructor for each frame left, __cxa_rethrow, and streams that are balanced.
#include <cstdio>
#include <stdexcept>

static int guards;
struct Guard {
    Guard() { ++guards; }
    __attribute__((noinline)) ~Guard() { --guards; }
};
__attribute__((noinline)) int deep(int depth) {
    Guard guard;
    if (depth == 0) throw std::runtime_error("deep");
    return deep(depth - 1) + 1;
}
__attribute__((noinline)) void caught(const char *where) { std::printf("caught in %s, %d guards\n", where, guards); }
__attribute__((noinline)) int middle() {
    try {
        return deep(3);
    } catch (const std::exception &) {
        caught("middle");
        throw;
    }
}

int main() {
    for (int round = 0; round < 3; round++) {
        try {
            middle();
        } catch (const std::runtime_error &error) {
            caught(error.what());
        }
    }
    try {
        throw 1;
    } catch (int one) {
        caught(one == 1 ? "main" : "nowhere");
    }
    return 0;
}
