// An exception that nobody catches: terminate handler, abort, SIGABRT.
// A right trace shows leave > __cxa_throw, `last_words`, and abort open at the end; signal 6.
#include <cstdio>
#include <cstdlib>
#include <exception>

static void last_words() {
    std::puts("last words");
    std::fflush(stdout);
    std::abort();
}
__attribute__((noinline)) void leave(int n) { throw n; }

int main() {
    std::set_terminate(last_words);
    leave(1);
    return 0;
}
