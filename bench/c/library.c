/* Calls into a library, of a function that does next to nothing. Prints the number of calls. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    long count = argc > 1 ? atol(argv[1]) : 0;
    int x = 'a';
    for (long i = 0; i < count; i++)
        x += (toupper)(x & 127) & 1;
    printf("%ld\n", count);
    return x == 0;
}
