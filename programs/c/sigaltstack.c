// A handler on an alternate stack of the smallest size that leaves by siglongjmp, and one that returns.
// A right trace shows handle > step inside crash, the open calls healed after the jump, and main going on.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sigjmp_buf back;
static int steps;
__attribute__((noinline)) void step(void) { steps++; }
void handle_fault(int signal) {
    (void)signal;
    step();
    siglongjmp(back, 1);
}
void handle_mark(int signal) { (void)signal; step(); }
__attribute__((noinline)) int crash(volatile int *where) { return *where + 1; }

int main(void) {
    stack_t stack = {.ss_sp = malloc((size_t)SIGSTKSZ), .ss_size = (size_t)SIGSTKSZ, .ss_flags = 0};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigaltstack(&stack, NULL);
    action.sa_flags = SA_ONSTACK;
    action.sa_handler = handle_fault;
    sigaction(SIGSEGV, &action, NULL);
    action.sa_handler = handle_mark;
    sigaction(SIGUSR1, &action, NULL);
    for (volatile int i = 0; i < 3; i++) {
        raise(SIGUSR1);
        if (sigsetjmp(back, 1) == 0) crash(NULL);
    }
    printf("%d steps\n", steps);
    return 0;
}
