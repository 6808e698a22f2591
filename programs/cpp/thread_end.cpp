// Threads that end by pthread_exit and by cancellation, with objects in three frames: their destructors
// run, `catch (...)` sees what passes, and thread-local objects are destroyed last.
// build: -pthread
// A right trace shows Guard::~Guard six times in all, and leave and wait once each.
#include <cstdio>
#include <pthread.h>
#include <unistd.h>

static volatile int waiting;
struct Guard {
    const char *name;
    __attribute__((noinline)) explicit Guard(const char *n) : name(n) {}
    __attribute__((noinline)) ~Guard() { std::printf("%s gone\n", name); }
};
struct Local {
    int value = 1;
    __attribute__((noinline)) ~Local() { std::printf("local %d gone\n", value); }
};
static thread_local Local local;

__attribute__((noinline)) void leave() {
    Guard guard("innermost");
    pthread_exit(nullptr);
}
__attribute__((noinline)) void wait() {
    Guard guard("innermost");
    waiting = 1;
    for (;;) pause();
}
__attribute__((noinline)) void middle(bool exits) {
    Guard guard("middle");
    try {
        exits ? leave() : wait();
    } catch (...) {
        std::puts("passing");
        throw;
    }
}
static void *run(void *exits) {
    Guard guard("outermost");
    local.value++;
    middle(exits != nullptr);
    return nullptr;
}

int main() {
    pthread_t thread;
    void *result;
    pthread_create(&thread, nullptr, run, &thread);
    pthread_join(thread, &result);
    pthread_create(&thread, nullptr, run, nullptr);
    while (!waiting) usleep(1000);
    usleep(10000);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    std::puts(result == PTHREAD_CANCELED ? "cancelled" : "returned");
}
