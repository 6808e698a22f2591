// State of the processor that no call changes, and that calls must find as it was: rounding of both floating-point
// units, a stack of x87 registers that is in use, the direction flag. Also on events on which a batch is encoded, of
// which there is one each few thousand.
// A right trace shows outer 60,000 times, and inner as often; the program says what it did not find again.
#include <stdint.h>
#include <stdio.h>

enum { TIMES = 20000, UPWARDS = 0x5f80, SINGLE_DOWN = 0x047f };

__attribute__((noinline)) long inner(long x) {
    __asm__ volatile("");
    return x + 1;
}
__attribute__((noinline)) long outer(long x) {
    long result = inner(x);
    __asm__ volatile("");
    return result + 1;
}

static uint32_t vector_control(void) {
    uint32_t value;
    __asm__ volatile("stmxcsr %0" : "=m"(value));
    return value & ~0x3fu;
}
static uint16_t x87_control(void) {
    uint16_t value;
    __asm__ volatile("fnstcw %0" : "=m"(value));
    return value;
}

#define CALL_OUTER "mov %%rsp, %%r12\nsub $128, %%rsp\nand $-16, %%rsp\ncall outer\nmov %%r12, %%rsp\n"
#define CHANGES "r12", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory"

static long with_x87_stack(long x, int *wrong) {
    long result;
    double top = 0, below = 0;
    __asm__ volatile("fldl %4\nfldl %5\n" CALL_OUTER "fstpl %1\nfstpl %2"
                     : "=a"(result), "=m"(top), "=m"(below), "+D"(x)
                     : "m"((double){7}), "m"((double){11})
                     : CHANGES);
    *wrong += top != 11 || below != 7;
    return result;
}
// What the call leaves in the other flags is not looked at.
static long backwards(long x, int *wrong) {
    long result, flags;
    __asm__ volatile("std\n" CALL_OUTER "test %%rsp, %%rsp\npushfq\npop %1\ncld" : "=a"(result), "=&b"(flags), "+D"(x) : : CHANGES);
    *wrong += !(flags & 0x400);
    return result;
}

int main(void) {
    uint32_t vector = UPWARDS, usual = 0x1f80;
    uint16_t x87 = SINGLE_DOWN, usual_x87 = 0x037f;
    int rounding = 0, stack = 0, direction = 0;
    long sum = 0;
    __asm__ volatile("ldmxcsr %0\nfldcw %1" : : "m"(vector), "m"(x87));
    for (int i = 0; i < TIMES; i++) {
        sum += outer(i) + with_x87_stack(i, &stack) + backwards(i, &direction);
        rounding += vector_control() != UPWARDS || x87_control() != SINGLE_DOWN;
    }
    __asm__ volatile("ldmxcsr %0\nfldcw %1" : : "m"(usual), "m"(usual_x87));
    printf("%ld; not found again: rounding %d, x87 stack %d, direction %d\n", sum, rounding, stack, direction);
    return 0;
}
