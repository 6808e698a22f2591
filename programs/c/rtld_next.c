// A program that wraps malloc itself with dlsym(RTLD_NEXT), which asks who its caller is.
// build: -ldl -rdynamic
// A right trace shows dlsym returned at once, and malloc (the program's own function) under puts_twice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static int allocations;
void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    allocations++;
    return next(size);
}
__attribute__((noinline)) void puts_twice(void) {
    char *text = malloc(16);
    snprintf(text, 16, "text");
    puts(text);
    puts(text);
    free(text);
}

int main(void) {
    puts_twice();
    puts(allocations > 0 && dlsym(RTLD_DEFAULT, "malloc") == (void *)malloc ? "wrapped" : "not wrapped");
    return 0;
}
