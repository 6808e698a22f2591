// Forty threads that throw, rethrow and catch at many depths, and return from frames whose return
// addresses were put back.
// build: -pthread
// A right trace is balanced in every thread: each call of `body`, `rethrow` and `deep` has ended.
#include <cstdio>
#include <thread>
#include <vector>

static thread_local int ended;
struct Guard {
    ~Guard() { ended++; }
};
__attribute__((noinline)) int deep(int depth, int what) {
    Guard guard;
    if (depth == 0) {
        if (what % 2) throw what;
        return what;
    }
    return deep(depth - 1, what) + 1;
}
__attribute__((noinline)) int rethrow(int depth, int what) {
    try {
        return deep(depth, what);
    } catch (int caught) {
        if (caught % 3 == 0) throw;
        return caught;
    }
}
__attribute__((noinline)) long body(int rounds) {
    long sum = 0;
    for (int round = 0; round < rounds; round++) {
        try {
            sum += rethrow(round % 13, round);
        } catch (int caught) {
            sum -= caught;
        }
    }
    return sum + ended;
}

int main() {
    std::vector<long> sums(40);
    std::vector<std::thread> threads;
    for (int i = 0; i < 40; i++) threads.emplace_back([&sums, i] { sums[i] = body(100 + i); });
    for (auto &thread : threads) thread.join();
    long total = 0;
    for (long sum : sums) total += sum;
    std::printf("%ld\n", total);
}
