// A thread leaves a function early with the mutex that it locked; it locks and unlocks others before and after. Another thread wants
// that mutex within a guard, and holds one of its own.
//
//   guards back   it unlocks the mutex
//
// A right answer names the thread that left (0.1), and the line with the comment `kept`.
// build: -pthread

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

static std::mutex outer, inner, queue;
static std::condition_variable filled;
static int items;
static bool gives_back;

__attribute__((noinline)) static void count() {
    std::lock_guard<std::mutex> guard(queue);
    items++;
    filled.notify_one();
}

__attribute__((noinline)) static bool push(int round) {
    inner.lock(); // kept
    if (round == 2 && !gives_back) return false;
    items++;
    inner.unlock();
    return true;
}

__attribute__((noinline)) static void report() {
    std::lock_guard<std::mutex> first(outer);
    std::unique_lock<std::mutex> second(inner);
    items--;
}

int main(int argc, char **) {
    gives_back = argc > 1;
    std::thread producer([] {
        for (int round = 0; round < 3; round++) {
            count();
            push(round);
        }
        count();
    });
    std::thread reporter([] {
        std::unique_lock<std::mutex> lock(queue);
        filled.wait(lock, [] { return items >= 4; });
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        report();
    });
    producer.join();
    reporter.join();
    std::printf("%d\n", items);
}
