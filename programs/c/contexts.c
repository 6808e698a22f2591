// Two user-level stacks (makecontext, swapcontext) that hand over to each other in the middle of calls.
// A right trace shows ping and pong alternate ten times without a loss of balance and with all calls of
// main ended.
#include <stdio.h>
#include <ucontext.h>

static ucontext_t home, left, right;
static char left_stack[65536], right_stack[65536];
static int turns;
__attribute__((noinline)) void pass(ucontext_t *from, ucontext_t *to) {
    turns++;
    swapcontext(from, to);
}
void ping(void) { for (int i = 0; i < 5; i++) pass(&left, &right); }
void pong(void) { for (int i = 0; i < 5; i++) pass(&right, &left); }

int main(void) {
    getcontext(&left);
    left.uc_stack.ss_sp = left_stack;
    left.uc_stack.ss_size = sizeof left_stack;
    left.uc_link = &home;
    makecontext(&left, ping, 0);
    getcontext(&right);
    right.uc_stack.ss_sp = right_stack;
    right.uc_stack.ss_size = sizeof right_stack;
    right.uc_link = &home;
    makecontext(&right, pong, 0);
    swapcontext(&home, &left);
    printf("%d turns\n", turns);
    return 0;
}
