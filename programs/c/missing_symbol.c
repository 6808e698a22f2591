// A program that is bound lazily and mentions a function that its library no longer has, without ever
// calling it. Who forces all symbols to be bound at the start (LD_BIND_NOW) breaks it.
// A right trace shows main > puts; the program exits with 0.
//
// One source, three builds: a library with the function (-DLIBRARY -DWHOLE) to link against, the program,
// and then a library without it (-DLIBRARY) in the first one's place.
#ifdef LIBRARY
int present(void) { return 1; }
#ifdef WHOLE
int function_that_the_library_lost(void) { return 2; }
#endif
#else
#include <stdio.h>

int present(void);
int function_that_the_library_lost(void);

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 100) return function_that_the_library_lost();
    puts(present() ? "not called" : "absent");
    return 0;
}
#endif
