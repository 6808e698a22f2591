// Compiled with -fnon-call-exceptions: a bad access becomes an exception, wherever in its function it stands. Handlers count the
// frames that they can see above them, too.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <execinfo.h>
#include <stdexcept>

static int frames;

static void throws(int signal, siginfo_t *, void *) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    void *all[64];
    frames += backtrace(all, 64) > 4;
    throw std::runtime_error("a bad access");
}

struct Counted {
    static int alive;
    Counted() { alive++; }
    ~Counted() { alive--; }
};
int Counted::alive;

// The faulting load is moved from the function's beginning, or from before its return.
__attribute__((noinline)) int first(const volatile int *at) { return *at; }

__attribute__((noinline)) int last(const volatile int *at, int (*f)(const volatile int *), const volatile int *good) {
    Counted counted;
    int sum = f(good);
    sum += f(good);
    return sum + *at;
}

__attribute__((noinline)) int through(const volatile int *at) {
    Counted counted;
    return first(at) + 1;
}

int main() {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = throws;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, nullptr);
    const volatile int good = 1;
    const volatile int *volatile bad = nullptr;
    int caught = 0;
    for (int i = 0; i < 30; i++) try {
            if (i % 3 == 0) first(bad);
            if (i % 3 == 1) through(bad);
            if (i % 3 == 2) last(bad, first, &good);
        } catch (const std::runtime_error &) {
            caught++;
        }
    printf("caught %d, alive %d, frames %d\n", caught, Counted::alive, frames);
}
