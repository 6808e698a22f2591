// Loads and unloads a library over and over: at the same address each time, at alternating ones (something
// else takes its place meanwhile), and in a namespace of its own.
//
//   loads_often LIBRARY (same | alternating | namespace)
//
// A right trace shows answer once for each time, and the program's calls all ended; of the library's own
// functions what was chosen, each time.
// build: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) int answer(int x) {
    __asm__ volatile("");
    return x + 1;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    int moves = !strcmp(arguments[2], "alternating"), times = 1000;
    int apart = !strcmp(arguments[2], "namespace");
    long sum = 0, moved = 0;
    void *last = NULL, *block = NULL;
    if (apart) times = 12;
    for (int i = 0; i < times; i++) {
        void *library = apart ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW) : dlopen(arguments[1], i & 1 ? RTLD_NOW : RTLD_LAZY);
        if (!library) return puts(dlerror());
        int (*value)(int (*)(int), int) = (int (*)(int (*)(int), int))dlsym(library, "plugin_value");
        sum += value(answer, i);
        moved += last != (void *)value;
        last = (void *)value;
        dlclose(library);
        if (moves) {
            if (block) munmap(block, 65536), block = NULL;
            else block = mmap((void *)((unsigned long)last & ~0xfffUL), 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        }
    }
    printf("%ld, %s\n", sum, moves ? (moved > 1 ? "moved" : "stayed") : "done");
    return 0;
}
