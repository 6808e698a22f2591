// A library: with a constructor and a destructor that call its own functions, to be linked or loaded.
#include <unistd.h>

int plugin_calls;

__attribute__((noinline)) static int plugin_helper(int x) {
    __asm__ volatile("");
    return x + 1;
}

__attribute__((noinline)) static void plugin_setup(void) {
    plugin_calls = plugin_helper(plugin_calls);
}

__attribute__((constructor)) static void plugin_begin(void) {
    plugin_setup();
    __asm__ volatile("");
}

__attribute__((destructor)) static void plugin_end(void) {
    plugin_setup();
    __asm__ volatile("");
}

__attribute__((noinline)) int plugin_work(int x) {
    getppid();
    int y = plugin_helper(x) + plugin_helper(x);
    __asm__ volatile("");
    return y;
}
