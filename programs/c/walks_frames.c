// Walks its own stack by frame pointers, as profilers do, and prints the names it finds.
// build: -rdynamic -fno-omit-frame-pointer -ldl
// A right trace shows main > outer > inner > walk. The names are the same where the return addresses are:
// functions whose returns are patched; others show nothing in the place of a name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

__attribute__((noinline)) void walk(void) {
    void **frame = __builtin_frame_address(0);
    for (int i = 0; i < 4; i++) {
        Dl_info info;
        printf(" %s", dladdr((char *)frame[1] - 1, &info) && info.dli_sname ? info.dli_sname : "?");
        if ((void **)frame[0] <= frame) break;
        frame = frame[0];
    }
    printf("\n");
}
__attribute__((noinline)) long inner(long x) {
    walk();
    return x + 1;
}
__attribute__((noinline)) long outer(long x) {
    long result = inner(x);
    __asm__ volatile("");
    return result + 1;
}

int main(void) {
    long sum = 0;
    for (int i = 0; i < 3; i++) sum += outer(i);
    printf("%ld\n", sum);
    return 0;
}
