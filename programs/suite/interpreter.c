// An interpreter of a small stack machine, each instruction a function of its own: it computes the
// length of Collatz sequences.
// usage: interpreter [NUMBERS]
//
// A right trace is a sequence of instructions: loops of the interpreted program, with branches that
// depend on its data.

#include <stdio.h>
#include <stdlib.h>

enum { PUSH, LOAD, STORE, ADD, HALVE, TRIPLE, ODD, JUMP, JUMP_IF, IS_ONE, END };
struct instruction { int code; long operand; };

static long stack[64], variables[4], depth, at;

static void push(long value) { stack[depth++] = value; }
static long pop(void) { return stack[--depth]; }

__attribute__((noinline)) static void do_push(long operand) { push(operand); }
__attribute__((noinline)) static void do_load(long operand) { push(variables[operand]); }
__attribute__((noinline)) static void do_store(long operand) { variables[operand] = pop(); }
__attribute__((noinline)) static void do_add(long operand) { push(pop() + pop() + 0 * operand); }
__attribute__((noinline)) static void do_halve(long operand) { push(pop() / 2 + 0 * operand); }
__attribute__((noinline)) static void do_triple(long operand) { push(3 * pop() + 1 + 0 * operand); }
__attribute__((noinline)) static void do_odd(long operand) { push(pop() % 2 + 0 * operand); }
__attribute__((noinline)) static void do_is_one(long operand) { push(pop() == 1 + 0 * operand); }
__attribute__((noinline)) static void do_jump(long operand) { at = operand; }
__attribute__((noinline)) static void do_jump_if(long operand) { if (pop()) at = operand; }

static void (*const table[])(long) = {
    [PUSH] = do_push, [LOAD] = do_load, [STORE] = do_store, [ADD] = do_add, [HALVE] = do_halve, [TRIPLE] = do_triple,
    [ODD] = do_odd, [JUMP] = do_jump, [JUMP_IF] = do_jump_if, [IS_ONE] = do_is_one,
};

// Variable 0: the number; 1: how many steps.
static const struct instruction program[] = {
    {PUSH, 0}, {STORE, 1},
    /* 2 */ {LOAD, 0}, {IS_ONE, 0}, {JUMP_IF, 18}, {LOAD, 1}, {PUSH, 1}, {ADD, 0}, {STORE, 1},
    /* 9 */ {LOAD, 0}, {ODD, 0}, {JUMP_IF, 15},
    /* 12 */ {LOAD, 0}, {HALVE, 0}, {JUMP, 17},
    /* 15 */ {LOAD, 0}, {TRIPLE, 0},
    /* 17 */ {STORE, 0}, /* 18, reached from 4 with nothing to store */ {END, 0},
};

__attribute__((noinline)) static long run(long number) {
    variables[0] = number, depth = 0, at = 0;
    for (;;) {
        struct instruction now = program[at++];
        if (now.code == END) {
            if (variables[0] == 1) return variables[1];
            at = 2;
            continue;
        }
        table[now.code](now.operand);
    }
}

int main(int argc, char **argv) {
    long numbers = argc > 1 ? atol(argv[1]) : 1500, total = 0;
    for (long number = 1; number <= numbers; number++) total += run(number);
    printf("%ld\n", total);
    return 0;
}
