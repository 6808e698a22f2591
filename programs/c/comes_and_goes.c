// A library that is loaded and unloaded: with constructor and destructor, and calls back and forth.
#include <stdio.h>

int plugin_value(int (*callback)(int), int x);
static int loaded;
__attribute__((constructor)) static void begin(void) { loaded = 1; }
__attribute__((destructor)) static void end(void) { loaded = 0; }
__attribute__((noinline)) static int helper(int x) {
    __asm__ volatile("");
    return x * 2 + loaded;
}
int plugin_value(int (*callback)(int), int x) { return helper(x) + callback(x) + helper(x + 1); }
