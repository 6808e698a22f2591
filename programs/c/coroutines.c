// Coroutines that switch stacks by a few instructions of their own, as Boost.Context does: no library
// call that a tracer could notice. Stacks lie side by side in one block, or in mappings of their own that
// are removed when a coroutine is done.
// A right recording: the same output; the traces are whole (which frames end when is a matter of taste).
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { COROUTINES = 4, STACK = 64 * 1024, TURNS = 50 };

// switch_stack(save, load): keeps the stack pointer in *save and goes on where `load` was kept.
void switch_stack(void **save, void *load);
__asm__(".text\n.globl switch_stack\n.type switch_stack,@function\nswitch_stack:\n.cfi_startproc\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".cfi_endproc\n.size switch_stack,.-switch_stack\n");

static void *scheduler, *kept[COROUTINES];
static int current, done[COROUTINES];
static long sum;

__attribute__((noinline)) void yield_now(void) { switch_stack(&kept[current], scheduler); }
__attribute__((noinline)) void work(int depth, int turn) {
    if (depth > 0) {
        work(depth - 1, turn);
        __asm__ volatile("");
        return;
    }
    sum += turn * (current + 1);
    yield_now();
}
static void run(void) {
    for (int turn = 0; turn < TURNS; turn++) work(turn % 7, turn);
    done[current] = 1;
    switch_stack(&kept[current], scheduler);
    abort();
}
static void start(int which, char *stack) {
    void **top = (void **)(stack + STACK);
    *--top = NULL;
    *--top = NULL;
    *--top = (void *)run;
    for (int i = 0; i < 6; i++) *--top = NULL;
    kept[which] = top;
}
static long all(char *stacks[]) {
    sum = 0;
    for (int i = 0; i < COROUTINES; i++) {
        done[i] = 0;
        start(i, stacks[i]);
    }
    for (int left = COROUTINES; left > 0;) {
        left = 0;
        for (current = 0; current < COROUTINES; current++) {
            if (done[current]) continue;
            switch_stack(&scheduler, kept[current]);
            left += !done[current];
        }
    }
    return sum;
}

int main(void) {
    char *stacks[COROUTINES], *block = malloc(COROUTINES * STACK);
    for (int i = 0; i < COROUTINES; i++) stacks[i] = block + i * STACK;
    printf("%ld\n", all(stacks));
    for (int i = 0; i < COROUTINES; i++) stacks[COROUTINES - 1 - i] = block + i * STACK;
    printf("%ld\n", all(stacks));
    free(block);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COROUTINES; i++)
            stacks[i] = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sum = all(stacks);
        for (int i = 0; i < COROUTINES; i++) munmap(stacks[i], STACK);
    }
    printf("%ld\n", sum);
    // Not `return`: exit has all return addresses put back, also those of stacks that are gone.
    exit(0);
}
