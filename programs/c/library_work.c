// Works in one call of a library for hours: nothing is recorded meanwhile, and it hangs not.
// build: -lcrypt
// A right trace shows main > crypt.
#include <crypt.h>
#include <stdio.h>

int main(void) {
    const char *key = crypt("lockstep", "$6$rounds=999999999$salt$");
    puts(key ? key : "none");
    return 0;
}
