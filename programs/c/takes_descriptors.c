// Takes all descriptors that it may have but one, and then loads a library: `takes_descriptors PLUGIN`.
// None of them is closed on exec: what starts another program from here leaves it nothing.
// A right recording: the same output; the library is recorded.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **words) {
    struct rlimit limit = {24, 24};
    int last = -1, next;
    if (count < 2 || setrlimit(RLIMIT_NOFILE, &limit)) return 1;
    while ((next = open("/dev/null", O_RDONLY)) >= 0) last = next;
    close(last);
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) return puts(dlerror());
    int (*work)(int) = (int (*)(int))dlsym(library, "plugin_work");
    printf("%d %d\n", last, work ? work(3) : -1);
    return 0;
}
