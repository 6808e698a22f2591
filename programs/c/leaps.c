// Forty thousand times: some calls deep, then longjmp back. How deep follows from the round.
//
// A right trace marks the returns that nobody saw, those of the calls that were jumped over and of
// longjmp, and no others; where only the last events are kept, it ends as the whole trace does.
#include <setjmp.h>
#include <stdio.h>

static jmp_buf surface;
static volatile int rounds;

__attribute__((noinline)) int dive(int depth) {
    if (depth == 0) longjmp(surface, 1);
    return dive(depth - 1) + 1;
}

int main(void) {
    setjmp(surface);
    if (rounds++ < 40000) dive(rounds % 5);
    puts("done");
    return 0;
}
