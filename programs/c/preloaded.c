// A library that somebody preloads: it says that it is there.
#include <unistd.h>

__attribute__((constructor)) static void begin(void) { (void)!write(2, "preloaded\n", 10); }
