// Faults in instructions that a recorder has moved elsewhere: the handler must find the program's own addresses, and where it
// lets the program go on must be right.
//
//   fault_address skip       the handler goes on behind the faulting load, wherever in its function that stands
//   fault_address retry      it makes the memory readable and returns
//   fault_address fixup      it goes on at a label among the last instructions of the function, or among the first
//   fault_address trap       ud2, int3 and a division by zero: si_addr is the instruction
//   fault_address plain      a handler without siginfo jumps away
//   fault_address nested     on an alternate stack, a second fault in the handler of the first
//   fault_address former     what sigaction gives back is what was set
//   fault_address timer      a profiler's timer: addresses of the program, but for a few
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

extern char __executable_start, etext;
static volatile int inside, outside, told;
static int *page;

static int is_own(const void *at) { return (char *)at >= &__executable_start && (char *)at < &etext; }

static char **pc_of(void *context) { return (char **)&((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]; }

static void note(const void *at) { is_own(at) ? inside++ : outside++; }

// A load of two bytes, first, after five bytes, behind a branch that becomes longer elsewhere, before a return, and alone.
#define FUNCTION(name, text) __attribute__((naked, noinline)) int name(int *at) { __asm__(text); }
FUNCTION(first, "mov (%rdi),%eax; nop; nop; nop; ret")
FUNCTION(alone, "mov (%rdi),%eax; ret")
FUNCTION(second, "xor %ecx,%ecx; mov (%rdi),%eax; add %ecx,%eax; ret")
FUNCTION(branched, "xor %ecx,%ecx; jrcxz 1f; ud2; 1: mov (%rdi),%eax; nop; nop; nop; nop; nop; ret")
FUNCTION(last, "push %rbx; call 2f; nop; nop; nop; nop; nop; pop %rbx; mov (%rdi),%eax; ret; 2: ret")
static int (*const loads[])(int *) = {first, alone, second, branched, last};
#define LOADS (sizeof loads / sizeof *loads)

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    sigaction(signal, &action, NULL);
}

static void skips(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    if (inside + outside > 1000) _exit(9);
    note(*pc_of(context));
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 7;
    *pc_of(context) += 2;
}

static void skip(void) {
    set(SIGSEGV, skips, 0);
    int sum = 0;
    for (int round = 0; round < 5; round++)
        for (unsigned i = 0; i < LOADS; i++) sum += loads[i](NULL);
    printf("sum %d, inside %d, outside %d\n", sum, inside, outside);
}

static void opens(int signal, siginfo_t *info, void *context) {
    (void)signal;
    note(*pc_of(context));
    told += info->si_addr == page;
    mprotect(page, 4096, PROT_READ);
}

static void retry(void) {
    set(SIGSEGV, opens, 0);
    int sum = 0;
    *page = 5;
    for (unsigned i = 0; i < LOADS; i++) {
        mprotect(page, 4096, PROT_NONE);
        sum += loads[i](page);
    }
    printf("sum %d, inside %d, outside %d, told %d\n", sum, inside, outside, told);
}

// Goes on at what a table says, as a kernel does: in the middle of what was overwritten.
extern char fault_1[], fixup_1[], fault_2[], fixup_2[];
__attribute__((naked, noinline)) int late(int *at) {
    __asm__("push %rbx; call 2f; nop; .globl fault_1; fault_1: mov (%rdi),%eax; nop; nop; nop; nop; nop; nop; pop %rbx\n"
            "lea 1(%rax),%eax; ret; .globl fixup_1; fixup_1: pop %rbx; mov $3,%eax; ret; 2: ret");
}
__attribute__((naked, noinline)) int early(int *at) {
    __asm__("jmp 1f; .globl fixup_2; fixup_2: mov $4,%eax; ret\n"
            "1: nop; nop; nop; nop; nop; nop; nop; .globl fault_2; fault_2: mov (%rdi),%eax; ret");
}

static void fixes(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    char **pc = pc_of(context);
    if (*pc == fault_1) *pc = fixup_1;
    else if (*pc == fault_2) *pc = fixup_2;
    else _exit(8);
}

static void fixup(void) {
    set(SIGSEGV, fixes, 0);
    int sum = 0;
    for (int round = 0; round < 3; round++) sum += late(NULL) + early(NULL);
    printf("sum %d\n", sum);
}

FUNCTION(undefined, "ud2; ret")
FUNCTION(breaks, "int3; nop; ret")
FUNCTION(divides, "xor %ecx,%ecx; mov $1,%eax; cltd; idiv %ecx; ret")

static void traps(int signal, siginfo_t *info, void *context) {
    char **pc = pc_of(context);
    note(*pc);
    told += signal == SIGTRAP || info->si_addr == *pc;
    if (signal != SIGTRAP) *pc += 2;
}

static void trap(void) {
    int signals[] = {SIGILL, SIGTRAP, SIGFPE};
    for (int i = 0; i < 3; i++) set(signals[i], traps, 0);
    for (int round = 0; round < 4; round++) undefined(NULL), breaks(NULL), divides(NULL);
    printf("inside %d, outside %d, told %d\n", inside, outside, told);
}

static sigjmp_buf back;
static void leaves(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void plain(void) {
    signal(SIGSEGV, leaves);
    volatile int left = 0;
    for (volatile unsigned i = 0; i < 20; i++)
        if (sigsetjmp(back, 1)) left++;
        else loads[i % LOADS](NULL);
    printf("left %d\n", left);
}

static void nests(int signal, siginfo_t *info, void *context) {
    int here;
    (void)info;
    note(*pc_of(context));
    if (signal == SIGSEGV) undefined(&here);
    *pc_of(context) += 2;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 1;
}

static void nested(void) {
    stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&stack, NULL);
    set(SIGSEGV, nests, SA_ONSTACK);
    set(SIGILL, nests, SA_ONSTACK);
    int sum = 0;
    for (unsigned i = 0; i < LOADS; i++) sum += loads[i](NULL);
    printf("sum %d, inside %d, outside %d\n", sum, inside, outside);
}

static void former(void) {
    struct sigaction first, second, found;
    memset(&first, 0, sizeof first);
    first.sa_handler = leaves;
    sigaddset(&first.sa_mask, SIGUSR2);
    first.sa_flags = SA_RESTART;
    second = first;
    second.sa_sigaction = skips;
    second.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGUSR1, &first, &found);
    printf("default %d", found.sa_handler == SIG_DFL);
    sigaction(SIGUSR1, &second, &found);
    printf(", first %d %d", found.sa_handler == leaves, (found.sa_flags & SA_RESTART) != 0 && sigismember(&found.sa_mask, SIGUSR2));
    sigaction(SIGUSR1, NULL, &found);
    printf(", second %d %d", found.sa_sigaction == skips, (found.sa_flags & SA_SIGINFO) != 0);
    printf(", by signal %d", signal(SIGUSR1, SIG_IGN) == (void (*)(int))skips);
    printf(", ignored %d, bad %d\n", signal(SIGUSR1, SIG_DFL) == SIG_IGN, sigaction(SIGKILL, &first, NULL));
}

static volatile int ticks, strange;
static void ticked(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    char *pc = *pc_of(context);
    ticks++;
    strange += !is_own(pc);
}

// Long enough to be recorded in place: where a call goes through a routine of the recorder, the timer may meet that.
__attribute__((noinline)) static int mixes(volatile int *state) {
    int sum = *state;
    for (int i = 0; i < 4; i++) {
        sum = sum * 3 + i;
        *state = sum ^ 5;
        sum += *state & 1023;
    }
    *state = sum & 0xffff;
    return sum;
}

static void timer(void) {
    struct itimerval every = {{0, 1000}, {0, 1000}};
    set(SIGPROF, ticked, SA_RESTART);
    setitimer(ITIMER_PROF, &every, NULL);
    volatile int state = 0;
    while (ticks < 100)
        for (int i = 0; i < 1000; i++) mixes(&state);
    printf("%s\n", strange * 5 < ticks ? "addresses of the program" : "strange addresses");
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "skip";
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#define CASE(name) \
    if (strcmp(what, #name) == 0) name();
    CASE(skip) CASE(retry) CASE(fixup) CASE(trap) CASE(plain) CASE(nested) CASE(former) CASE(timer)
    return 0;
}
