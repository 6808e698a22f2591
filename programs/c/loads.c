// Loads a library again and again: `loads PLUGIN TIMES [moved|apart|beside]`. With `moved` something else
// takes its place every other time; with `apart` it comes into a namespace of its own; with `beside` a much
// larger one is loaded after each. Says what the library answered, how many mappings there are more than
// after the first time, and whether any child was ever to be seen.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static volatile sig_atomic_t children;

static void on_child(int signal) {
    (void)signal;
    children++;
}

static int mappings(void) {
    static char buffer[1 << 20];
    FILE *file = fopen("/proc/self/maps", "r");
    int lines = 0;
    while (fgets(buffer, sizeof buffer, file))
        lines++;
    fclose(file);
    return lines;
}

static int beside;

static long load(const char *path, int moved, int apart, int number) {
    void *library = apart ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW) : dlopen(path, RTLD_NOW);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    int (*work)(int) = (int (*)(int))dlsym(library, "plugin_work");
    int *calls = dlsym(library, "plugin_calls");
    long answer = work(number) + *calls;
    struct link_map *map;
    dlinfo(library, RTLD_DI_LINKMAP, &map);
    void *place = (void *)map->l_addr;
    dlclose(library);
    if (beside) {
        void *large = dlopen("libm.so.6", RTLD_NOW);
        if (large)
            dlclose(large);
    }
    static void *taken;
    if (moved && taken) {
        munmap(taken, 4096);
        taken = 0;
    } else if (moved)
        taken = mmap(place, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return answer;
}

int main(int argc, char **argv) {
    signal(SIGCHLD, on_child);
    int times = atoi(argv[2]);
    int moved = argc > 3 && !strcmp(argv[3], "moved");
    int apart = argc > 3 && !strcmp(argv[3], "apart");
    beside = argc > 3 && !strcmp(argv[3], "beside");
    long sum = load(argv[1], moved, apart, 0) + load(argv[1], moved, apart, 1);
    int before = mappings();
    for (int i = 2; i < times; i++)
        sum += load(argv[1], moved, apart, i);
    int grown = mappings() - before;
    int nobody = waitpid(-1, 0, __WALL & 0) == -1 && errno == ECHILD;
    printf("%ld, %s, %d signals, %s\n", sum, grown <= 8 ? "no more mappings" : "more mappings", (int)children,
           nobody ? "no child" : "a child");
    return 0;
}
