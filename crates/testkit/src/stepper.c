// Runs a program one instruction at a time and tells where it was.
//
//   stepper ENTRY LOW HIGH OUTPUT PROGRAM [ARGUMENT]...
//
// ENTRY is the program's entry point, LOW to HIGH its code, all as addresses in the file. To OUTPUT it
// writes pairs of 64-bit numbers, instruction pointer and stack pointer before an instruction, for every
// instruction of the program itself; and in between, for the first one elsewhere and whenever the stack
// pointer is higher than it has been since. Instruction pointers are moved to addresses in the file. Only
// the first thread is followed, and no child.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(125);
}

// The entry point as the kernel tells it to the process.
static unsigned long loaded_entry(pid_t child) {
    char name[64];
    Elf64_auxv_t pair;
    snprintf(name, sizeof name, "/proc/%d/auxv", child);
    FILE *file = fopen(name, "r");
    if (!file) fail(name);
    while (fread(&pair, sizeof pair, 1, file) == 1 && pair.a_type != AT_NULL)
        if (pair.a_type == AT_ENTRY) {
            fclose(file);
            return pair.a_un.a_val;
        }
    fail("no AT_ENTRY");
    return 0;
}

// Lets the dynamic loader run at full speed up to the entry point.
static void run_to(pid_t child, unsigned long address) {
    int status;
    errno = 0;
    long word = ptrace(PTRACE_PEEKTEXT, child, address, 0);
    if (errno) fail("peek");
    ptrace(PTRACE_POKETEXT, child, address, (word & ~0xffL) | 0xcc);
    ptrace(PTRACE_CONT, child, 0, 0);
    if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) fail("the program never reached its entry");
    ptrace(PTRACE_POKETEXT, child, address, word);
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, 0, &registers);
    registers.rip = address;
    ptrace(PTRACE_SETREGS, child, 0, &registers);
}

int main(int argc, char **argv) {
    if (argc < 6) return 125;
    unsigned long entry = strtoul(argv[1], NULL, 0), low = strtoul(argv[2], NULL, 0), high = strtoul(argv[3], NULL, 0);
    FILE *output = fopen(argv[4], "w");
    if (!output) fail(argv[4]);
    pid_t child = fork();
    if (child == 0) {
        // Without this a step might lead through the loader's symbol search again and again.
        setenv("LD_BIND_NOW", "1", 1);
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        execv(argv[5], argv + 5);
        fail(argv[5]);
    }
    int status, inside = 0, signal = 0;
    unsigned long highest = 0;
    if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) fail("start");
    unsigned long bias = loaded_entry(child) - entry;
    run_to(child, entry + bias);
    for (;;) {
        struct user_regs_struct registers;
        if (ptrace(PTRACE_GETREGS, child, 0, &registers)) fail("registers");
        unsigned long step[2] = {registers.rip - bias, registers.rsp};
        int now = step[0] >= low && step[0] < high;
        if (now || inside || step[1] > highest) {
            fwrite(step, sizeof step, 1, output);
            highest = step[1];
        }
        inside = now;
        ptrace(PTRACE_SINGLESTEP, child, 0, signal);
        if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
    if (fclose(output)) fail(argv[4]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
