// The address of a library function is the same wherever it is asked for, and calling through it works.
// build: -ldl
// A right trace shows puts called directly twice; a call through the pointer may show too (in a program
// that is not position independent) or not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    int (*volatile pointer)(const char *) = puts;
    puts("direct");
    puts(pointer == (int (*)(const char *))dlsym(RTLD_DEFAULT, "puts") ? "same" : "different");
    pointer("through the pointer");
    return 0;
}
