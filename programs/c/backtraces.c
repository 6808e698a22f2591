// A handler that prints who called whom, by backtrace() and by _Unwind_Backtrace, on a stack of its own:
//
//   backtraces (call | null | overflow | abort) [none]
//
// With `none` there is no handler. A right recording: the same names in the same order, and the same end.
// build: -rdynamic -fno-omit-frame-pointer
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

static volatile int *volatile nowhere;
static volatile long depth;

__attribute__((noinline)) void name(void *address) {
    Dl_info info;
    // Addresses of libraries differ from run to run, and their names are theirs.
    if (dladdr((char *)address - 1, &info) && info.dli_sname) printf(" %s", info.dli_sname);
}
static _Unwind_Reason_Code one(struct _Unwind_Context *context, void *count) {
    if (++*(int *)count < 24) name((void *)_Unwind_GetIP(context));
    return *(int *)count < 24 ? _URC_NO_REASON : _URC_END_OF_STACK;
}
__attribute__((noinline)) void print_both(void) {
    void *addresses[24];
    int count = backtrace(addresses, 24);
    printf("backtrace:");
    for (int i = 0; i < count; i++) name(addresses[i]);
    printf("\nunwinder:");
    count = 0;
    _Unwind_Backtrace(one, &count);
    printf("\n");
    fflush(stdout);
}
void handle(int signal) {
    printf("signal %d\n", signal);
    print_both();
    _exit(50 + signal);
}
__attribute__((noinline)) long overflow(long n) {
    // Down to the middle of a page, and the lowest byte first: the stack ends here, not among the first
    // instructions of a call, where a recorder's code may stand.
    volatile char *room = __builtin_alloca(4096 + ((unsigned long)__builtin_frame_address(0) + 2048) % 4096);
    room[0] = (char)n;
    depth++;
    return overflow(n + 1) + room[1];
}
__attribute__((noinline)) long inner(const char *way) {
    if (!strcmp(way, "call")) print_both();
    if (!strcmp(way, "null")) *nowhere = 1;
    if (!strcmp(way, "overflow")) return overflow(0);
    if (!strcmp(way, "abort")) abort();
    return depth;
}
__attribute__((noinline)) int compare(const void *a, const void *b) {
    static int once;
    if (!once++) inner("call");
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline)) long outer(const char *way) {
    long result = inner(way);
    __asm__ volatile("");
    return result + 1;
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "call";
    if (count < 3) {
        stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = handle;
        action.sa_flags = SA_ONSTACK;
        sigaltstack(&stack, NULL);
        sigaction(SIGSEGV, &action, NULL);
        sigaction(SIGABRT, &action, NULL);
    }
    print_both();
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof *numbers, compare);
    printf("%ld\n", outer(way));
    return 0;
}
