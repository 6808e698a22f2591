// Everything that runs before and after main: constructors with priorities, destructors, atexit,
// at_quick_exit, a handler that registers another; and an end by `quick_exit` or `exit` where it is asked.
//
//   lifetimes [return | exit | quick | inside]
//
// A right trace shows early and late before main, and after it what the way of ending runs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(const char *what) { puts(what); fflush(stdout); }
__attribute__((constructor(101))) void early(void) { say("early"); }
__attribute__((constructor)) void late(void) { say("late"); }
__attribute__((destructor(101))) void last(void) { say("last"); }
__attribute__((destructor)) void first_down(void) { say("first down"); }
void registered_late(void) { say("registered late"); }
void at_end(void) { say("at end"); atexit(registered_late); }
void at_quick_end(void) { say("at quick end"); }
__attribute__((noinline)) void leave(const char *way) {
    if (!strcmp(way, "exit")) exit(3);
    if (!strcmp(way, "quick")) quick_exit(4);
    say("returning");
}

int main(int argc, char **argv) {
    atexit(at_end);
    at_quick_exit(at_quick_end);
    leave(argc > 1 ? argv[1] : "return");
    return 2;
}
