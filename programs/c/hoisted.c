// Library calls in a loop: with -fno-plt, clang -O2 loads the function's address into a register before
// the loop (mov slot(%rip),%reg ... call *%reg).
// A right trace shows strtol 5 times and rand 5 times under main, and puts once, whatever the compiler.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char text[2] = "1";
    long sum = 0;
    srand(1);
    for (int i = 0; i < 5; i++) {
        text[0] = (char)('0' + i);
        sum += strtol(text, NULL, 10) + (rand() < 0);
    }
    puts(sum == 10 ? "ten" : "not ten");
    return 0;
}
