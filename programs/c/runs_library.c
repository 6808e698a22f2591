// Loads a library and runs its main: as an interpreter does with what calls MPI.
//
//   runs_library LIBRARY [ARGUMENT...]
//
// A right trace shows main > dlopen, dlsym.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    int (*run)(int, char **) = library ? (int (*)(int, char **))dlsym(library, "main") : NULL;
    if (!run) {
        fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no library");
        return 1;
    }
    return run(argc - 1, argv + 1);
}
