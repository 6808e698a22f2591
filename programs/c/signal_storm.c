// A timer that fires as fast as it can, while the main flow recurses; the handler recurses itself.
// Arguments: plain | alternate (a signal stack of its own) | jump (siglongjmp out of the handler, 200 times).
// With -DSIGNAL=SIGSEGV: one that a thread seldom gets from others. With -DUNWINDS it asks the loader for images, as a program that
// unwinds the stack by itself, so that nobody sees its library calls return; and each leaf makes one.
// A right trace shows every call or counts it as lost, is balanced, and is whole after each jump.
#define _GNU_SOURCE
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef SIGNAL
#define SIGNAL SIGALRM
#endif

#ifdef UNWINDS
static const char *volatile text = "text";
static int image(struct dl_phdr_info *info, size_t size, void *data) {
    (void)info, (void)size, (void)data;
    return 1;
}
#define LOOK() dl_iterate_phdr(image, NULL)
#define WORK() (int)strlen(text)
#else
#define LOOK() 0
#define WORK() 1
#endif

static sigjmp_buf back;
static volatile sig_atomic_t may_jump, jumps, handled;

__attribute__((noinline)) int leaf(int n) {
    __asm__ volatile("");
    return n + WORK();
}
__attribute__((noinline)) long tree(int depth) {
    __asm__ volatile("");
    long sum = leaf(depth);
    return depth ? tree(depth - 1) + tree(depth - 1) + sum : 1;
}
__attribute__((noinline)) void handle(int signal) {
    (void)signal;
    handled++;
    tree(2);
    if (may_jump) siglongjmp(back, 1);
}

int main(int count, char **arguments) {
    const char *kind = count > 1 ? arguments[1] : "plain";
    int looked = LOOK();
    struct sigaction action;
    struct itimerspec often = {{0, 100000}, {0, 100000}}, stop = {{0, 0}, {0, 0}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGNAL};
    timer_t timer;
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    if (strcmp(kind, "alternate") == 0) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        sigaltstack(&stack, NULL);
        action.sa_flags = SA_ONSTACK;
    }
    sigaction(SIGNAL, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &often, NULL);
    if (strcmp(kind, "jump") == 0) {
        while (jumps < 200) {
            if (sigsetjmp(back, 1)) {
                may_jump = 0;
                jumps++;
                continue;
            }
            may_jump = 1;
            tree(14);
            may_jump = 0;
        }
    } else {
        long sum = 0;
        while (handled < 200) sum = tree(12);
        printf("%ld\n", sum);
    }
    timer_settime(timer, 0, &stop, NULL);
    puts(handled >= 200 ? "stormy" : "calm");
    return looked < 0;
}
