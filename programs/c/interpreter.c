// A byte code interpreter of computed gotos; jumps out of the loop go to a label at its end.
// A right trace shows run 50 times, and operate once for each multiplication: 50 * 20.
#include <stdio.h>

enum { PUSH, ADD, MUL, DEC, JNZ, HALT };
__attribute__((noinline)) long operate(long a, long b) { return (a * b) % 1000003; }
__attribute__((noinline)) long run(const signed char *code, long input) {
    static void *const labels[] = {&&push, &&add, &&mul, &&dec, &&jnz, &&halt};
    long stack[16], *top = stack, count = 20;
    const signed char *at = code;
    *top = input;
#define NEXT goto *labels[(int)*at++]
    NEXT;
push: *++top = *at++; NEXT;
add: top--; top[0] += top[1]; NEXT;
mul: top--; top[0] = operate(top[0], top[1]); NEXT;
dec: count--; NEXT;
jnz: { int by = *at++; if (count) at += by; } NEXT;
halt: return *top;
}

int main(void) {
    static const signed char code[] = {PUSH, 3, ADD, PUSH, 7, MUL, DEC, JNZ, -9, HALT};
    long sum = 0;
    for (long i = 0; i < 50; i++) sum += run(code, i);
    printf("%ld\n", sum);
    return 0;
}
