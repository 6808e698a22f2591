// A C library that calls back: built with -fno-asynchronous-unwind-tables nothing can be thrown through it.
int pass_on(int (*callback)(int), int value);
int pass_on(int (*callback)(int), int value) {
    int result = callback(value) + 1;
    return result;
}
